//! Table and detail views of deployments.

use wire::deployment::{Deployment, ReplicaStatus};

use super::super::format;
use super::super::table;

/// One row per deployment.
pub(super) fn table(deployments: &[Deployment]) -> String {
    table::render(
        deployments,
        &[
            ("ID", |d| d.id.to_string()),
            ("NAME", |d| d.name.clone()),
            ("STATUS", |d| d.status.clone()),
            ("CLUSTER", cluster),
            ("PRIORITY", |d| d.priority.to_string()),
            ("REPLICAS", |d| d.replicas.to_string()),
            ("IMAGE", |d| format::optional(d.image.as_ref())),
            ("ENDPOINTS", |d| format::join(d.endpoints.clone())),
            ("CREATED", |d| format::timestamp(d.created_at)),
            ("REASON", |d| d.status_reason.clone()),
        ],
    )
}

fn cluster(deployment: &Deployment) -> String {
    deployment.cluster_id.map(|id| id.to_string()).unwrap_or_default()
}

/// All fields of one deployment.
pub(super) fn details(deployment: &Deployment) -> String {
    let fields = fields(deployment);
    match deployment.replica_statuses.as_deref() {
        None | Some([]) => fields,
        Some(all) => format!("{fields}\n{}", replicas(all)),
    }
}

fn replicas(replicas: &[ReplicaStatus]) -> String {
    table::render(
        replicas,
        &[
            ("REPLICA", |replica| replica.number.to_string()),
            ("STATUS", |replica| replica.status.clone()),
            ("NODE", |replica| format::optional(replica.node.as_ref())),
            ("ENDPOINTS", |replica| format::join(replica.endpoints.clone())),
            ("REASON", |replica| replica.status_reason.clone()),
        ],
    )
}

fn fields(deployment: &Deployment) -> String {
    table::fields(&[
        ("ID", deployment.id.to_string()),
        ("NAME", deployment.name.clone()),
        ("STATUS", deployment.status.clone()),
        ("REASON", deployment.status_reason.clone()),
        ("CLUSTER", cluster(deployment)),
        ("NODE", format::optional(deployment.node.as_ref())),
        ("IMAGE", format::optional(deployment.image.as_ref())),
        ("COMMAND", deployment.command.join(" ")),
        ("RESOURCES", format::resources(&deployment.resources)),
        ("PRIORITY", deployment.priority.to_string()),
        ("REPLICAS", deployment.replicas.to_string()),
        ("ENV", format::pairs(&deployment.env)),
        ("PORTS", format::join(deployment.ports.iter().map(u16::to_string))),
        ("ENDPOINTS", format::join(deployment.endpoints.clone())),
        ("LABELS", format::pairs(&deployment.labels)),
        ("RESTART", deployment.restart.clone()),
        ("RUN FOR", deployment.run_for.map(|seconds| format!("{seconds} s")).unwrap_or_default()),
        ("ON LABELS", format::pairs(&deployment.node_selector)),
        ("SPREAD", format::yes_or_no(deployment.anti_affinity)),
        ("CREATED", format::timestamp(deployment.created_at)),
        ("STARTED", format::timestamp(deployment.started_at)),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::sample;
    use super::*;

    fn deployment() -> Deployment {
        sample::deployment(json!({
            "id": "9m4e2mr0ui3e8a215n4g", "status_reason": "2 cpu short on prod",
            "image": "nginx:1", "resources": {"cpu": 0.5, "ram": 268_435_456}, "replicas": 2,
            "priority": -1, "env": {"A": "1"}, "command": ["sh", "-c"], "ports": [80, 443],
            "run_for": 90, "node_selector": {"zone": "a"}, "anti_affinity": true,
            "replica_statuses": [
                {"number": 0, "status": "running", "status_reason": "", "node": "a",
                 "endpoints": ["127.0.0.1:80"]},
                {"number": 1, "status": "queued", "status_reason": "2 cpu short", "endpoints": []}],
        }))
    }

    #[test]
    fn table_has_one_row_per_deployment() {
        let want = "\
ID                    NAME  STATUS  CLUSTER  PRIORITY  REPLICAS  IMAGE    ENDPOINTS  CREATED               REASON
9m4e2mr0ui3e8a215n4g  web   queued  -        -1        2         nginx:1  -          2026-01-02T03:04:05Z  2 cpu short on prod
";
        assert_eq!(table(&[deployment()]), want);
    }

    #[test]
    fn details_show_all_fields_and_replicas() {
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
            "\n0        running  a     127.0.0.1:80  -\n",
            "\n1        queued   -     -             2 cpu short\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
    }
}
