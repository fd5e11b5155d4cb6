//! Who waits for room, and which pool's room that would be.

use std::collections::BTreeMap;

use super::{Pool, Waiting};
use crate::kind::Catalog;
use crate::{Resources, Time};

/// Some who wait and fit nowhere, alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// What each of them asks for.
    pub request: Resources,
    /// Which labels it wants.
    pub selector: BTreeMap<String, String>,
    /// The kind, the type and the size in units, if it is an instance.
    pub instance: Option<(String, String, i64)>,
    /// How many they are.
    pub count: usize,
    /// Since when the first of them waits.
    pub since: Time,
}

impl Pool {
    /// What this would ask of a cluster of the pool, if it could run there.
    pub fn wants(&self, demand: &Demand, catalog: &Catalog) -> Option<Resources> {
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

/// What waits for the pool `name`: of several pools that could take something, it waits for the first
/// that may still grow, so that no two grow for the same. `may_grow` says whether one may.
pub fn share(
    pools: &[Pool],
    name: &str,
    demand: &[Demand],
    catalog: &Catalog,
    may_grow: impl Fn(&Pool) -> bool,
) -> Vec<Waiting> {
    let mut own = Vec::new();
    for one in demand {
        let able = || pools.iter().filter_map(|p| Some((p, p.wants(one, catalog)?)));
        let first = able().find(|(pool, _)| may_grow(pool)).or_else(|| able().next());
        if let Some((_, request)) = first.filter(|(pool, _)| pool.name == name) {
            own.push(Waiting { request, count: one.count, since: one.since });
        }
    }
    own
}
