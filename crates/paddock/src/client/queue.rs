//! `paddock queue`: what waits, first in line first.

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
Why one of them waits: paddock deployment explain NAME-OR-ID

Example:
  paddock queue
  paddock queue --cluster prod --limit 10")]
pub(crate) struct Args {
    /// Only those that wait for this cluster alone, by name or id
    #[arg(long, value_name = "NAME-OR-ID")]
    cluster: Option<String>,
    /// The most to list
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

/// Lists what waits.
pub(crate) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let cluster_id = subject::id_if_named(api, &CLUSTER, args.cluster.as_deref()).await?;
    let call =
        Call::get(&["queue"]).query("cluster_id", cluster_id).query("limit", Some(args.limit));
    let answer = api.send(&call).await?;
    let queue: Queue = api.read(&answer)?;
    printer.answer(&answer, || Ok(table(&queue)))?;
    if queue.items.len() >= usize::from(args.limit) {
        printer.note(&format!("listed the first {}; for more see --limit", args.limit));
    }
    Ok(())
}

fn table(queue: &Queue) -> String {
    let header = ["#", "ID", "NAME", "STATUS", "PRIORITY", "REPLICAS", "CREATED", "REASON"];
    let rows = (1..).zip(&queue.items);
    rows.fold(Table::new(&header), |table, (place, one)| table.row(row(place, one))).render()
}

fn row(place: usize, waiting: &Deployment) -> [String; 8] {
    [
        place.to_string(),
        waiting.id.to_string(),
        waiting.name.clone(),
        waiting.status.clone(),
        waiting.priority.to_string(),
        waiting.replicas.to_string(),
        format::timestamp(waiting.created_at),
        waiting.status_reason.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::sample;
    use super::*;

    #[test]
    fn who_waits_has_a_place_in_line() {
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
