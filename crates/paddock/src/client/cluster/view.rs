//! Table and detail views of clusters.

use std::collections::BTreeMap;

use wire::amount::Capacity;
use wire::cluster::{Cluster, Node};

use super::super::format;
use super::super::hint;
use super::super::table::{self, Table};

/// One row per cluster.
pub(super) fn table(clusters: &[Cluster]) -> String {
    table::render(
        clusters,
        &[
            ("ID", |c| c.id.to_string()),
            ("NAME", |c| c.name.clone()),
            ("STATUS", status),
            ("CPU", |c| format::usage("cpu", &c.capacity)),
            ("RAM", |c| format::usage("ram", &c.capacity)),
            ("OTHER", |c| others(&c.capacity)),
            ("DEPLOYMENTS", |c| c.deployments.to_string()),
            ("SHARED", |c| format::yes_or_no(c.shared)),
            ("CREATED", |c| format::timestamp(c.created_at)),
            ("REASON", |c| c.status_reason.clone()),
        ],
    )
}

fn status(cluster: &Cluster) -> String {
    match cluster.draining_at {
        Some(_) => format!("{} (draining)", cluster.status),
        None => cluster.status.clone(),
    }
}

/// All fields of one cluster.
pub(super) fn details(cluster: &Cluster) -> String {
    let mut fields = vec![
        ("ID", cluster.id.to_string()),
        ("NAME", cluster.name.clone()),
        ("STATUS", status(cluster)),
        ("REASON", cluster.status_reason.clone()),
    ];
    let id = cluster.id.to_string();
    let hint = hint::for_cluster(&id, &cluster.status, Some(&cluster.provider));
    fields.extend(hint.map(|hint| ("HINT", hint)));
    fields.extend([
        ("SHARED", format::yes_or_no(cluster.shared)),
        ("PROVIDER", cluster.provider.clone()),
        ("CLOUD", cluster.cloud_provider.clone()),
        ("REGION", cluster.region.clone()),
        ("LABELS", format::pairs(&cluster.labels)),
        ("DEPLOYMENTS", cluster.deployments.to_string()),
        ("CREATED", format::timestamp(cluster.created_at)),
    ]);
    let fields = table::fields(&fields);
    format!("{fields}\n{}{}", capacity(&cluster.capacity), nodes(&cluster.nodes))
}

/// One row per node. Empty for a single node, whose capacity is that of the cluster.
fn nodes(nodes: &[Node]) -> String {
    if nodes.len() < 2 {
        return String::new();
    }
    let table = table::render(
        nodes,
        &[
            ("NODE", |node| node.name.clone()),
            ("CPU", |node| format::usage("cpu", &node.capacity)),
            ("RAM", |node| format::usage("ram", &node.capacity)),
            ("OTHER", |node| others(&node.capacity)),
            ("LABELS", |node| format::pairs(&node.labels)),
        ],
    );
    format!("\n{table}")
}

fn capacity(capacity: &BTreeMap<String, Capacity>) -> String {
    let row = |table: Table, (kind, usage): (&String, &Capacity)| {
        let amount = |quantity| format::amount(kind, quantity);
        table.row([kind.clone(), amount(usage.total), amount(usage.used), amount(usage.free)])
    };
    capacity.iter().fold(Table::new(&["RESOURCE", "TOTAL", "USED", "FREE"]), row).render()
}

fn others(capacity: &BTreeMap<String, Capacity>) -> String {
    let others = capacity.keys().filter(|kind| !matches!(kind.as_str(), "cpu" | "ram"));
    format::join(others.map(|kind| format!("{kind}={}", format::usage(kind, capacity))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::sample;
    use super::*;

    fn cluster() -> Cluster {
        sample::cluster(json!({
            "id": "9m4e2mr0ui3e8a215n4g", "labels": {"team": "web"}, "deployments": 2,
            "capacity": {"cpu": {"total": 4, "used": 0.5, "free": 3.5},
                         "gpu": {"total": 1, "used": 0, "free": 1},
                         "ram": {"total": 8_589_934_592_u64, "used": 0, "free": 8_589_934_592_u64}},
        }))
    }

    #[test]
    fn table_has_one_row_per_cluster() {
        let want = "\
ID                    NAME  STATUS  CPU    RAM    OTHER    DEPLOYMENTS  SHARED  CREATED               REASON
9m4e2mr0ui3e8a215n4g  prod  ready   0.5/4  0/8Gi  gpu=0/1  2            yes     2026-01-02T03:04:05Z  -
";
        assert_eq!(table(&[cluster()]), want);
    }

    #[test]
    fn details_include_capacity() {
        let want = "\
ID           9m4e2mr0ui3e8a215n4g
NAME         prod
STATUS       ready
REASON       -
SHARED       yes
PROVIDER     local
CLOUD        -
REGION       -
LABELS       team=web
DEPLOYMENTS  2
CREATED      2026-01-02T03:04:05Z

RESOURCE  TOTAL  USED  FREE
cpu       4      0.5   3.5
gpu       1      0     1
ram       8Gi    0     8Gi
";
        assert_eq!(details(&cluster()), want);
    }

    #[test]
    fn nodes_are_shown_if_there_are_several() {
        let node = |name: &str| {
            let text = format!(
                r#"{{"name":"{name}","labels":{{"zone":"x"}},
                    "capacity":{{"cpu":{{"total":4,"used":1,"free":3}}}}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let want = "
NODE  CPU  RAM  OTHER  LABELS
a     1/4  -    -      zone=x
b     1/4  -    -      zone=x
";
        assert_eq!(nodes(&[node("a"), node("b")]), want);
        assert_eq!(nodes(&[node("a")]), "");
    }

    #[test]
    fn cluster_of_another_server_version_is_shown() {
        let fields = json!({"id": sample::id("1"), "status": "new", "provider": "x", "more": [1]});
        assert!(table(&[sample::cluster(fields)]).contains("  prod  new"));
    }
}
