//! `paddock queue`: what waits, first in line first.

use serde::Deserialize;

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

#[derive(Debug, Deserialize)]
struct Queue {
    items: Vec<Waiting>,
}

/// The part of a waiting deployment that the queue shows.
#[derive(Debug, Deserialize)]
struct Waiting {
    id: String,
    #[serde(default)]
    name: Option<String>,
    status: String,
    #[serde(default)]
    priority: i64,
    #[serde(default)]
    replicas: u32,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    status_reason: Option<String>,
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

fn row(place: usize, waiting: &Waiting) -> [String; 8] {
    [
        place.to_string(),
        waiting.id.clone(),
        format::optional(waiting.name.as_ref()),
        waiting.status.clone(),
        waiting.priority.to_string(),
        waiting.replicas.to_string(),
        format::time(waiting.created_at.as_deref()),
        format::optional(waiting.status_reason.as_ref()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_has_a_place_in_line() {
        let queue: Queue = serde_json::from_str(
            r#"{"items":[{"id":"1","name":"a","status":"queued","priority":5,"replicas":1,
                "created_at":"2026-01-02T03:04:05.6Z","status_reason":"1 cpu short"},
                {"id":"2","status":"preempted"}]}"#,
        )
        .unwrap();
        let want = "\
#  ID  NAME  STATUS     PRIORITY  REPLICAS  CREATED               REASON
1  1   a     queued     5         1         2026-01-02T03:04:05Z  1 cpu short
2  2   -     preempted  0         0         -                     -
";
        assert_eq!(table(&queue), want);
    }
}
