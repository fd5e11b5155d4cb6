//! Clusters as people see them.

use std::collections::BTreeMap;

use wire::amount::Capacity;
use wire::cluster::{Cluster, Node};

use super::super::format;
use super::super::hint;
use super::super::table::{self, Table};

/// One line a cluster.
pub(super) fn table(clusters: &[Cluster]) -> String {
    table::of(
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

/// Where it is, and whether it is being emptied.
fn status(cluster: &Cluster) -> String {
    match cluster.draining_at {
        Some(_) => format!("{} (draining)", cluster.status),
        None => cluster.status.clone(),
    }
}

/// All of one cluster.
pub(super) fn details(cluster: &Cluster) -> String {
    let mut fields = vec![
        ("ID", cluster.id.to_string()),
        ("NAME", cluster.name.clone()),
        ("STATUS", status(cluster)),
        ("REASON", cluster.status_reason.clone()),
    ];
    let id = cluster.id.to_string();
    let next = hint::of_cluster(&id, &cluster.status, Some(&cluster.provider));
    fields.extend(next.map(|next| ("HINT", next)));
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

/// One line a node; a cluster that is its only node has shown all there is.
fn nodes(nodes: &[Node]) -> String {
    if nodes.len() < 2 {
        return String::new();
    }
    let table = table::of(
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
        let amount = |of_it| format::amount(kind, of_it);
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
    fn a_list_has_one_line_a_cluster() {
        let want = "\
ID                    NAME  STATUS  CPU    RAM    OTHER    DEPLOYMENTS  SHARED  CREATED               REASON
9m4e2mr0ui3e8a215n4g  prod  ready   0.5/4  0/8Gi  gpu=0/1  2            yes     2026-01-02T03:04:05Z  -
";
        assert_eq!(table(&[cluster()]), want);
    }

    #[test]
    fn one_cluster_shows_its_capacity() {
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
    fn a_cluster_of_several_nodes_shows_them() {
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
    fn a_cluster_of_another_version_is_still_shown() {
        let fields = json!({"id": sample::id("1"), "status": "new", "provider": "x", "more": [1]});
        assert!(table(&[sample::cluster(fields)]).contains("  prod  new"));
    }
}
