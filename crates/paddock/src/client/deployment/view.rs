//! Deployments as people see them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Number, Value};

use super::super::format;
use super::super::table::{self, Table};

/// The part of a deployment that the client shows.
#[derive(Debug, Deserialize)]
pub(super) struct Deployment {
    id: String,
    #[serde(default)]
    name: Option<String>,
    status: String,
    #[serde(default)]
    status_reason: Option<String>,
    #[serde(default)]
    cluster_id: Option<String>,
    #[serde(default)]
    node: Option<String>,
    #[serde(default)]
    image: Option<String>,
    #[serde(default)]
    resources: BTreeMap<String, Number>,
    #[serde(default)]
    replicas: Option<u64>,
    #[serde(default)]
    priority: Option<i64>,
    #[serde(default)]
    env: Option<BTreeMap<String, String>>,
    #[serde(default)]
    command: Option<Vec<String>>,
    #[serde(default)]
    ports: Option<Vec<Value>>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    endpoints: Vec<String>,
    #[serde(default)]
    restart: Option<String>,
    #[serde(default)]
    run_for: Option<u64>,
    #[serde(default)]
    node_selector: BTreeMap<String, String>,
    #[serde(default)]
    anti_affinity: bool,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    started_at: Option<String>,
    #[serde(default)]
    replica_statuses: Vec<Replica>,
}

/// The part of a replica that the client shows.
#[derive(Debug, Deserialize)]
struct Replica {
    number: u32,
    status: String,
    #[serde(default)]
    status_reason: Option<String>,
    #[serde(default)]
    node: Option<String>,
    #[serde(default)]
    endpoints: Vec<String>,
}

/// One line a deployment.
pub(super) fn table(deployments: &[Deployment]) -> String {
    let header = [
        "ID",
        "NAME",
        "STATUS",
        "CLUSTER",
        "PRIORITY",
        "REPLICAS",
        "IMAGE",
        "ENDPOINTS",
        "CREATED",
        "REASON",
    ];
    deployments.iter().fold(Table::new(&header), |table, one| table.row(row(one))).render()
}

fn row(deployment: &Deployment) -> [String; 10] {
    [
        deployment.id.clone(),
        format::optional(deployment.name.as_ref()),
        deployment.status.clone(),
        format::optional(deployment.cluster_id.as_ref()),
        number(deployment.priority),
        number(deployment.replicas),
        format::optional(deployment.image.as_ref()),
        format::join(deployment.endpoints.clone()),
        format::time(deployment.created_at.as_deref()),
        format::optional(deployment.status_reason.as_ref()),
    ]
}

/// All of one deployment.
pub(super) fn details(deployment: &Deployment) -> String {
    let fields = fields(deployment);
    if deployment.replica_statuses.is_empty() {
        return fields;
    }
    format!("{fields}\n{}", replicas(&deployment.replica_statuses))
}

fn replicas(replicas: &[Replica]) -> String {
    let header = ["REPLICA", "STATUS", "NODE", "ENDPOINTS", "REASON"];
    let row = |table: Table, replica: &Replica| {
        table.row([
            replica.number.to_string(),
            replica.status.clone(),
            format::optional(replica.node.as_ref()),
            format::join(replica.endpoints.clone()),
            format::optional(replica.status_reason.as_ref()),
        ])
    };
    replicas.iter().fold(Table::new(&header), row).render()
}

fn fields(deployment: &Deployment) -> String {
    let spread = if deployment.anti_affinity { "yes" } else { "no" };
    table::fields(&[
        ("ID", deployment.id.clone()),
        ("NAME", format::optional(deployment.name.as_ref())),
        ("STATUS", deployment.status.clone()),
        ("REASON", format::optional(deployment.status_reason.as_ref())),
        ("CLUSTER", format::optional(deployment.cluster_id.as_ref())),
        ("NODE", format::optional(deployment.node.as_ref())),
        ("IMAGE", format::optional(deployment.image.as_ref())),
        ("COMMAND", deployment.command.as_deref().unwrap_or_default().join(" ")),
        ("RESOURCES", format::quantities(&deployment.resources)),
        ("PRIORITY", number(deployment.priority)),
        ("REPLICAS", number(deployment.replicas)),
        ("ENV", deployment.env.as_ref().map(format::pairs).unwrap_or_default()),
        ("PORTS", ports(deployment.ports.as_deref().unwrap_or_default())),
        ("ENDPOINTS", format::join(deployment.endpoints.clone())),
        ("LABELS", format::pairs(&deployment.labels)),
        ("RESTART", format::optional(deployment.restart.as_ref())),
        ("RUN FOR", deployment.run_for.map(|seconds| format!("{seconds} s")).unwrap_or_default()),
        ("ON LABELS", format::pairs(&deployment.node_selector)),
        ("SPREAD", spread.into()),
        ("CREATED", format::time(deployment.created_at.as_deref())),
        ("STARTED", format::time(deployment.started_at.as_deref())),
    ])
}

fn ports(ports: &[Value]) -> String {
    format::join(ports.iter().map(ToString::to_string))
}

fn number(number: Option<impl ToString>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment() -> Deployment {
        serde_json::from_str(
            r#"{"id":"9m4e2mr0ui3e8a215n4g","name":"web","status":"queued",
                "status_reason":"2 cpu short on prod","cluster_id":null,"node":null,
                "image":"nginx:1","resources":{"cpu":0.5,"ram":268435456},"replicas":2,
                "priority":-1,"env":{"A":"1"},"command":["sh","-c"],"ports":[80,443],
                "labels":{},"endpoints":[],"created_at":"2026-01-02T03:04:05Z","started_at":null,
                "restart":"never","run_for":90,"node_selector":{"zone":"a"},"anti_affinity":true,
                "replica_statuses":[
                    {"number":0,"status":"running","status_reason":"It runs.","node":"a",
                     "endpoints":["127.0.0.1:80"]},
                    {"number":1,"status":"queued","status_reason":"2 cpu short","node":null}]}"#,
        )
        .unwrap()
    }

    #[test]
    fn a_list_has_one_line_a_deployment() {
        let want = "\
ID                    NAME  STATUS  CLUSTER  PRIORITY  REPLICAS  IMAGE    ENDPOINTS  CREATED               REASON
9m4e2mr0ui3e8a215n4g  web   queued  -        -1        2         nginx:1  -          2026-01-02T03:04:05Z  2 cpu short on prod
";
        assert_eq!(table(&[deployment()]), want);
    }

    #[test]
    fn one_deployment_shows_all_it_has() {
        let text = details(&deployment());
        for line in [
            "RESOURCES  cpu=0.5,ram=256Mi\n",
            "COMMAND    sh -c\n",
            "ENV        A=1\n",
            "PORTS      80,443\n",
            "REASON     2 cpu short on prod\n",
            "STARTED    -\n",
            "RESTART    never\n",
            "RUN FOR    90 s\n",
            "ON LABELS  zone=a\n",
            "SPREAD     yes\n",
            "\nREPLICA  STATUS   NODE  ENDPOINTS     REASON\n",
            "\n0        running  a     127.0.0.1:80  It runs.\n",
            "\n1        queued   -     -             2 cpu short\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
    }
}
