//! `paddock queue`: lists pending deployments in queue order.

use wire::deployment::{Deployment, Queue};

use super::call::Call;
use super::error::Error;
use super::format;
use super::http::Api;
use super::print::Printer;
use super::subject::{self, CLUSTER};
use super::table::Table;

/// `paddock queue`.
#[derive(clap::Args)]
#[command(after_help = "\
Run \"paddock deployment explain NAME-OR-ID\" to see why a deployment is pending.

Example:
  paddock queue
  paddock queue --cluster prod --limit 10")]
pub(crate) struct Args {
    /// Filter by the cluster that deployments are pinned to, by name or id
    #[arg(long, value_name = "NAME-OR-ID")]
    cluster: Option<String>,
    /// Maximum number of items
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

/// Lists the queue.
pub(crate) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let cluster_id = subject::id_if_named(api, &CLUSTER, args.cluster.as_deref()).await?;
    let call =
        Call::get(&["queue"]).query("cluster_id", cluster_id).query("limit", Some(args.limit));
    let response = api.send(&call).await?;
    let queue: Queue = api.read(&response)?;
    printer.response(&response, || Ok(table(&queue)))?;
    if queue.items.len() >= usize::from(args.limit) {
        printer.note(&format!("showing the first {}; use --limit for more", args.limit));
    }
    Ok(())
}

fn table(queue: &Queue) -> String {
    let header = ["#", "ID", "NAME", "STATUS", "PRIORITY", "REPLICAS", "CREATED", "REASON"];
    let rows = (1..).zip(&queue.items);
    rows.fold(Table::new(&header), |table, (position, d)| table.row(row(position, d))).render()
}

fn row(position: usize, deployment: &Deployment) -> [String; 8] {
    [
        position.to_string(),
        deployment.id.to_string(),
        deployment.name.clone(),
        deployment.status.clone(),
        deployment.priority.to_string(),
        deployment.replicas.to_string(),
        format::timestamp(deployment.created_at),
        deployment.status_reason.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::sample;
    use super::*;

    #[test]
    fn table_numbers_pending_deployments() {
        let items = vec![
            sample::deployment(json!({
                "id": sample::id("1"), "name": "a", "priority": 5, "status_reason": "1 cpu short",
            })),
            sample::deployment(json!({"id": sample::id("2"), "status": "preempted"})),
        ];
        let queue = Queue { items };
        let want = "\
#  ID                    NAME  STATUS     PRIORITY  REPLICAS  CREATED               REASON
1  10000000000000000000  a     queued     5         1         2026-01-02T03:04:05Z  1 cpu short
2  20000000000000000000  web   preempted  0         1         2026-01-02T03:04:05Z  -
";
        assert_eq!(table(&queue), want);
    }
}
