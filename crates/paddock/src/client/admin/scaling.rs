//! `paddock admin scaling`: shows autoscaled cluster pools.

use wire::scaling::{Pool, Pools};

use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::format;
use crate::client::http::Api;
use crate::client::print::Printer;
use crate::client::table::Table;

/// Lists the pools.
pub(super) async fn run(api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let response = api.send(&Call::get(&["fleet", "scaling"])).await?;
    let pools: Pools = api.read(&response)?;
    printer.response(&response, || Ok(table(&pools.items)))?;
    if pools.items.is_empty() {
        printer.note("autoscaling is not configured: start the server with --scaling-file");
    }
    Ok(())
}

fn table(pools: &[Pool]) -> String {
    let header =
        ["POOL", "CLUSTERS", "BOUNDS", "PENDING", "DECISION", "SINCE", "NEXT CHECK", "REASON"];
    pools.iter().fold(Table::new(&header), |table, pool| table.row(row(pool))).render()
}

fn row(pool: &Pool) -> [String; 8] {
    let clusters: Vec<String> =
        pool.clusters.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let pending: usize = pool.waiting.iter().map(|waiting| waiting.count).sum();
    let dry_run = if pool.dry_run { " (dry run)" } else { "" };
    [
        pool.name.clone(),
        if clusters.is_empty() { "0".into() } else { clusters.join(", ") },
        format!("{} to {}", pool.settings.at_least, pool.settings.at_most),
        pending.to_string(),
        format!("{}{dry_run}", pool.decision),
        format::timestamp(pool.since),
        format::timestamp(pool.next_look),
        pool.reason.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_one_row_per_pool() {
        let pools = serde_json::json!([{
            "name": "east", "decision": "stay", "reason": "Creating east-2.", "dry_run": true,
            "since": "2026-01-02T03:04:05.6Z", "clusters": {"ready": 1, "accepted": 1},
            "used": {}, "free": {}, "reserved": {},
            "waiting": [
                {"request": {}, "count": 2, "since": "2026-01-02T03:04:05.6Z"},
                {"request": {}, "count": 1, "since": "2026-01-02T03:04:05.6Z"}],
            "settings": {
                "hosts": [], "at_least": 0, "at_most": 50, "limit": {}, "slack": {}, "largest": [],
                "cluster": {"provider": "local", "cloud_provider": "x", "region": "y",
                            "labels": {}, "capacity": {}, "nodes": 1},
                "grow_after_waiting_seconds": 0, "grow_after_seconds": 0, "cool_down_seconds": 0,
                "idle_for_seconds": 0,
            },
        }]);
        let pools: Vec<Pool> = serde_json::from_value(pools).unwrap();
        let want = "\
POOL  CLUSTERS             BOUNDS   PENDING  DECISION        SINCE                 NEXT CHECK  REASON
east  1 accepted, 1 ready  0 to 50  3        stay (dry run)  2026-01-02T03:04:05Z  -           Creating east-2.
";
        assert_eq!(table(&pools), want);
    }
}
