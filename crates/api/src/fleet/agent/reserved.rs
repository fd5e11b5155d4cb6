//! Reserved placeholders that a third-party agent keeps warm in advance. They are not stored:
//! agents create them, and drop them when their capacity is needed.

use model::cluster::{Cluster, OperatorVersion, Status};
use model::kind::{InstanceType, Kind};
use model::scaling::Pool;
use serde_json::{Value, json};

use super::list::capacity;

/// Placeholders for the agent of a pool's cluster; none until the cluster is ready and can run a
/// version.
pub(super) fn items(pools: &[Pool], cluster: &Cluster, kind: &Kind) -> Vec<Value> {
    let is_ready = cluster.status == Status::Ready && cluster.hosting.is_foreign;
    let pool = pools.iter().find(|pool| is_ready && cluster.pool.as_ref() == Some(&pool.name));
    let versions = cluster.hosting.versions.get(&kind.name);
    let latest = versions.and_then(|all| all.iter().rfind(|version| version.is_ready));
    let (Some(pool), Some(latest)) = (pool, latest) else { return Vec::new() };
    let own = pool.hosts.iter().filter(|host| host.kind == kind.name);
    let items = own.flat_map(|host| {
        let instance_type = kind.instance_type(&host.instance_type);
        (1..=host.reserved).filter_map(move |n| Some(item(kind, instance_type?, latest, n)))
    });
    items.collect()
}

fn item(kind: &Kind, instance_type: &InstanceType, latest: &OperatorVersion, n: u32) -> Value {
    let (words, domain, size) =
        (&kind.words, &kind.words.agent_domain, instance_type.default_size());
    let id = format!("reserved-{}-{}-{n}", kind.name, instance_type.id);
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
                format!("{profile}Type"): instance_type.id,
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
