//! What a foreign agent shall keep warm before anybody asks. It is nowhere in the store: agents make it,
//! and drop it when its room is needed.

use model::cluster::{Cluster, Offered, Status};
use model::kind::{InstanceType, Kind};
use model::scaling::Pool;
use serde_json::{Value, json};

use super::list::capacity;

/// Reserved items for the agent of a cluster that a pool made; none until it is ready, or while it can
/// run no version.
pub(super) fn items(pools: &[Pool], cluster: &Cluster, kind: &Kind) -> Vec<Value> {
    let is_ready = cluster.status == Status::Ready && cluster.hosting.is_foreign;
    let pool = pools.iter().find(|pool| is_ready && cluster.pool.as_ref() == Some(&pool.name));
    let versions = cluster.hosting.versions.get(&kind.name);
    let latest = versions.and_then(|all| all.iter().rfind(|version| version.is_ready));
    let (Some(pool), Some(latest)) = (pool, latest) else { return Vec::new() };
    let own = pool.hosts.iter().filter(|host| host.kind == kind.name);
    let items = own.flat_map(|host| {
        let of = kind.type_of(&host.instance_type);
        (1..=host.reserved).filter_map(move |n| Some(item(kind, of?, latest, n)))
    });
    items.collect()
}

fn item(kind: &Kind, of: &InstanceType, latest: &Offered, n: u32) -> Value {
    let (words, domain, size) = (&kind.words, &kind.words.agent_domain, of.default_size());
    let id = format!("reserved-{}-{}-{n}", kind.name, of.id);
    let newest = |all: &[String]| all.last().cloned().unwrap_or_default();
    let mut versions = json!({
        words.version.as_str(): newest(&latest.services),
        words.operator.as_str(): latest.operator,
    });
    if let Some(word) = &words.ibp {
        versions[word] = json!(newest(&latest.protocols));
    }
    let profile = format!("{domain}/{}InstanceProfile", kind.name);
    json!({
        "id": id,
        "kind": words.agent_object,
        "metadata": {
            "name": id,
            "namespace": id,
            "annotations": {
                format!("{domain}/id"): id,
                format!("{domain}/placementId"): id,
            },
            "labels": {
                format!("{profile}Type"): of.id,
                format!("{profile}QuotaConsumed"): size.quota_consumed.to_string(),
                format!("{domain}/suspended"): "false",
                format!("{domain}/deployment"): "reserved",
            },
        },
        "spec": {
            "capacity": capacity(Some(size), None),
            "owners": [],
            "endpoint": {words.agent_host.as_str(): format!("{id}-dummyhost")},
            "versions": versions,
            "deleted": false,
        },
    })
}
