//! DNS records of instances.

use model::cluster::Cluster;
use model::instance::{Instance, Route};
use model::kind::Kind;

use super::InstanceWorker;
use port::{Dns, Fault};

/// The DNS records of an instance on a cluster.
pub(super) fn routes(ctx: &InstanceWorker, kind: &Kind, host: &str, on: &Cluster) -> Vec<Route> {
    let own = || format!("{}.{}", on.id, ctx.domain(kind));
    let router = on.hosting.dns.clone().unwrap_or_else(own);
    let domains = kind.routes(host).into_iter();
    domains.map(|domain| Route { domain, router: router.clone() }).collect()
}

/// Creates or updates all records.
pub(super) async fn point(dns: &dyn Dns, routes: &[Route]) -> Result<(), Fault> {
    for route in routes {
        dns.set_cname(&route.domain, &route.router).await?;
    }
    Ok(())
}

/// Repairs records that are wrong or missing. Returns their names.
pub(super) async fn repair(dns: &dyn Dns, routes: &[Route]) -> Result<Vec<String>, Fault> {
    let mut repaired = Vec::new();
    for route in routes {
        if dns.get_cname(&route.domain).await?.as_deref() != Some(&route.router) {
            dns.set_cname(&route.domain, &route.router).await?;
            repaired.push(route.domain.clone());
        }
    }
    Ok(repaired)
}

/// Removes all records.
pub(super) async fn remove(dns: &dyn Dns, instance: &Instance) -> Result<(), Fault> {
    for route in &instance.detail.routes {
        dns.delete_cname(&route.domain).await?;
    }
    Ok(())
}
