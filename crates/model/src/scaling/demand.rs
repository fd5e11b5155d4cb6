//! Assigns pending workloads to the pools that could host them.

use std::collections::BTreeMap;

use super::{PendingWorkloads, Pool};
use crate::kind::Catalog;
use crate::{Resources, Time};

/// Pending workloads with the same request that fit on no node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// Requested resources of each.
    pub request: Resources,
    /// Node selector.
    pub selector: BTreeMap<String, String>,
    /// Kind, instance type and size in units, for instances.
    pub instance: Option<(String, String, i64)>,
    /// Number of workloads.
    pub count: usize,
    /// Since when the first is pending.
    pub since: Time,
}

impl Pool {
    /// The request to a cluster of the pool, if it could run there.
    pub fn request_for(&self, demand: &Demand, catalog: &Catalog) -> Option<Resources> {
        let request = match &demand.instance {
            None => demand.request.clone(),
            Some((kind, instance_type, units)) => {
                self.host(kind, instance_type)?;
                let kind = catalog.kind(kind)?;
                self.template.request(kind, instance_type, *units, &demand.request)
            }
        };
        self.template.could_run(&request, &demand.selector).then_some(request)
    }
}

/// The pending workloads of the pool `name`. If several pools could host a workload, it counts for
/// the first that may still grow, so that no two pools grow for the same workload.
pub fn share(
    pools: &[Pool],
    name: &str,
    demand: &[Demand],
    catalog: &Catalog,
    may_grow: impl Fn(&Pool) -> bool,
) -> Vec<PendingWorkloads> {
    let mut own = Vec::new();
    for one in demand {
        let eligible = || pools.iter().filter_map(|p| Some((p, p.request_for(one, catalog)?)));
        let first = eligible().find(|(pool, _)| may_grow(pool)).or_else(|| eligible().next());
        if let Some((_, request)) = first.filter(|(pool, _)| pool.name == name) {
            own.push(PendingWorkloads { request, count: one.count, since: one.since });
        }
    }
    own
}
