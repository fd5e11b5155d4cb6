//! Clusters as people see them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::format::{self, Usage};
use super::super::hint;
use super::super::table::{self, Table};

/// The part of a cluster that the client shows.
#[derive(Debug, Deserialize)]
pub(super) struct Cluster {
    id: String,
    name: String,
    status: String,
    #[serde(default)]
    status_reason: Option<String>,
    #[serde(default)]
    draining_at: Option<String>,
    #[serde(default)]
    shared: bool,
    #[serde(default)]
    provider: Option<String>,
    #[serde(default)]
    cloud_provider: Option<String>,
    #[serde(default)]
    region: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    capacity: BTreeMap<String, Usage>,
    #[serde(default)]
    nodes: Vec<Node>,
    #[serde(default)]
    deployments: u64,
    #[serde(default)]
    created_at: Option<String>,
}

/// The part of a node that the client shows.
#[derive(Debug, Deserialize)]
struct Node {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    capacity: BTreeMap<String, Usage>,
}

/// One line a cluster.
pub(super) fn table(clusters: &[Cluster]) -> String {
    let header = [
        "ID",
        "NAME",
        "STATUS",
        "CPU",
        "RAM",
        "OTHER",
        "DEPLOYMENTS",
        "SHARED",
        "CREATED",
        "REASON",
    ];
    clusters.iter().fold(Table::new(&header), |table, cluster| table.row(row(cluster))).render()
}

fn row(cluster: &Cluster) -> [String; 10] {
    [
        cluster.id.clone(),
        cluster.name.clone(),
        status(cluster),
        format::usage("cpu", &cluster.capacity),
        format::usage("ram", &cluster.capacity),
        others(&cluster.capacity),
        cluster.deployments.to_string(),
        format::yes_or_no(cluster.shared),
        format::time(cluster.created_at.as_deref()),
        format::optional(cluster.status_reason.as_ref()),
    ]
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
        ("ID", cluster.id.clone()),
        ("NAME", cluster.name.clone()),
        ("STATUS", status(cluster)),
        ("REASON", format::optional(cluster.status_reason.as_ref())),
    ];
    let next = hint::of_cluster(&cluster.id, &cluster.status, cluster.provider.as_deref());
    fields.extend(next.map(|next| ("HINT", next)));
    fields.extend([
        ("SHARED", format::yes_or_no(cluster.shared)),
        ("PROVIDER", format::optional(cluster.provider.as_ref())),
        ("CLOUD", format::optional(cluster.cloud_provider.as_ref())),
        ("REGION", format::optional(cluster.region.as_ref())),
        ("LABELS", format::pairs(&cluster.labels)),
        ("DEPLOYMENTS", cluster.deployments.to_string()),
        ("CREATED", format::time(cluster.created_at.as_deref())),
    ]);
    let fields = table::fields(&fields);
    format!("{fields}\n{}{}", capacity(&cluster.capacity), nodes(&cluster.nodes))
}

/// One line a node; a cluster that is its only node has shown all there is.
fn nodes(nodes: &[Node]) -> String {
    if nodes.len() < 2 {
        return String::new();
    }
    let row = |table: Table, node: &Node| {
        table.row([
            node.name.clone(),
            format::usage("cpu", &node.capacity),
            format::usage("ram", &node.capacity),
            others(&node.capacity),
            format::pairs(&node.labels),
        ])
    };
    let header = ["NODE", "CPU", "RAM", "OTHER", "LABELS"];
    format!("\n{}", nodes.iter().fold(Table::new(&header), row).render())
}

fn capacity(capacity: &BTreeMap<String, Usage>) -> String {
    let row = |table: Table, (kind, usage): (&String, &Usage)| {
        let amount = |n| format::quantity(kind, n);
        table.row([kind.clone(), amount(&usage.total), amount(&usage.used), amount(&usage.free)])
    };
    capacity.iter().fold(Table::new(&["RESOURCE", "TOTAL", "USED", "FREE"]), row).render()
}

fn others(capacity: &BTreeMap<String, Usage>) -> String {
    let others = capacity.keys().filter(|kind| !matches!(kind.as_str(), "cpu" | "ram"));
    format::join(others.map(|kind| format!("{kind}={}", format::usage(kind, capacity))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Cluster {
        serde_json::from_str(
            r#"{"id":"9m4e2mr0ui3e8a215n4g","name":"prod","status":"ready","status_reason":null,
                "shared":true,"provider":"local","labels":{"team":"web"},"deployments":2,
                "capacity":{"cpu":{"total":4,"used":0.5,"free":3.5},
                            "gpu":{"total":1,"used":0,"free":1},
                            "ram":{"total":8589934592,"used":0,"free":8589934592}},
                "created_at":"2026-01-02T03:04:05.123456Z"}"#,
        )
        .unwrap()
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
        let bare = r#"{"id":"1","name":"a","status":"new","more":[1]}"#;
        let cluster: Cluster = serde_json::from_str(bare).unwrap();
        assert!(table(&[cluster]).contains("1   a     new"));
    }
}
