//! `paddock admin scaling`: what grows and shrinks by itself, and why it does or does not.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::format;
use crate::client::http::Api;
use crate::client::print::Printer;
use crate::client::table::Table;

#[derive(Deserialize)]
struct Pools {
    items: Vec<Pool>,
}

/// The part of a pool that is shown.
#[derive(Deserialize)]
struct Pool {
    name: String,
    decision: String,
    reason: String,
    #[serde(default)]
    since: Option<String>,
    #[serde(default)]
    next_look: Option<String>,
    #[serde(default)]
    dry_run: bool,
    clusters: BTreeMap<String, u64>,
    #[serde(default)]
    waiting: Vec<Waits>,
    settings: Settings,
}

#[derive(Deserialize)]
struct Waits {
    count: u64,
}

#[derive(Deserialize)]
struct Settings {
    at_least: u64,
    at_most: u64,
}

/// Lists the pools.
pub(super) async fn run(api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let answer = api.send(&Call::get(&["fleet", "scaling"])).await?;
    let pools: Pools = api.read(&answer)?;
    printer.answer(&answer, || Ok(table(&pools.items)))?;
    if pools.items.is_empty() {
        printer.note("nothing grows by itself: start the server with --scaling-file");
    }
    Ok(())
}

fn table(pools: &[Pool]) -> String {
    let header =
        ["POOL", "CLUSTERS", "BOUNDS", "WAITING", "DECISION", "SINCE", "NEXT LOOK", "REASON"];
    pools.iter().fold(Table::new(&header), |table, pool| table.row(row(pool))).render()
}

fn row(pool: &Pool) -> [String; 8] {
    let clusters: Vec<String> =
        pool.clusters.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let waiting: u64 = pool.waiting.iter().map(|one| one.count).sum();
    let dry_run = if pool.dry_run { " (dry run)" } else { "" };
    [
        pool.name.clone(),
        if clusters.is_empty() { "0".into() } else { clusters.join(", ") },
        format!("{} to {}", pool.settings.at_least, pool.settings.at_most),
        waiting.to_string(),
        format!("{}{dry_run}", pool.decision),
        format::time(pool.since.as_deref()),
        format::time(pool.next_look.as_deref()),
        pool.reason.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_one_line_with_its_reason() {
        let pools = serde_json::json!([{
            "name": "east", "decision": "stay", "reason": "east-2 is on its way.", "dry_run": true,
            "since": "2026-01-02T03:04:05.6Z", "clusters": {"ready": 1, "accepted": 1},
            "waiting": [{"count": 2}, {"count": 1}], "settings": {"at_least": 0, "at_most": 50},
        }]);
        let pools: Vec<Pool> = serde_json::from_value(pools).unwrap();
        let want = "\
POOL  CLUSTERS             BOUNDS   WAITING  DECISION        SINCE                 NEXT LOOK  REASON
east  1 accepted, 1 ready  0 to 50  3        stay (dry run)  2026-01-02T03:04:05Z  -          east-2 is on its way.
";
        assert_eq!(table(&pools), want);
    }
}
