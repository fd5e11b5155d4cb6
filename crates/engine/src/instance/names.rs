//! The names that lead to an instance.

use model::cluster::Cluster;
use model::instance::{Instance, Route};
use model::kind::Kind;

use super::Instances;
use port::{Dns, Fault};

/// The names of an instance on a cluster, and what they are aliases of.
pub(super) fn routes(all: &Instances, kind: &Kind, host: &str, on: &Cluster) -> Vec<Route> {
    let own = || format!("{}.{}", on.id, all.domain(kind));
    let router = on.hosting.dns.clone().unwrap_or_else(own);
    let domains = kind.routes(host).into_iter();
    domains.map(|domain| Route { domain, router: router.clone() }).collect()
}

/// Has all names lead to it.
pub(super) async fn point(dns: &dyn Dns, routes: &[Route]) -> Result<(), Fault> {
    for route in routes {
        dns.point(&route.domain, &route.router).await?;
    }
    Ok(())
}

/// Mends names that lead elsewhere or nowhere; which.
pub(super) async fn mend(dns: &dyn Dns, routes: &[Route]) -> Result<Vec<String>, Fault> {
    let mut mended = Vec::new();
    for route in routes {
        if dns.find(&route.domain).await?.as_deref() != Some(&route.router) {
            dns.point(&route.domain, &route.router).await?;
            mended.push(route.domain.clone());
        }
    }
    Ok(mended)
}

/// Takes all names away.
pub(super) async fn remove(dns: &dyn Dns, instance: &Instance) -> Result<(), Fault> {
    for route in &instance.detail.routes {
        dns.remove(&route.domain).await?;
    }
    Ok(())
}
