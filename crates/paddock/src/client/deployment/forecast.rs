//! What `--dry-run` shows: what would happen to each replica.

use serde::Deserialize;

use super::super::error::Error;
use super::super::format;
use super::super::http::{Answer, Api};
use super::super::names::Names;
use super::super::print::Printer;
use super::super::table::Table;
use super::why::{Unit, Why, units};

/// What would happen.
#[derive(Debug, Deserialize)]
struct Forecast {
    replicas: Vec<Replica>,
}

/// What would become of one replica.
#[derive(Debug, Deserialize)]
struct Replica {
    number: u32,
    outcome: String,
    #[serde(default)]
    cluster_id: Option<String>,
    #[serde(default)]
    node: Option<String>,
    #[serde(default)]
    victims: Vec<Unit>,
    #[serde(default)]
    other_victims: u64,
    #[serde(default)]
    waits: Vec<Why>,
}

/// Prints the server's answer to a trial.
pub(super) async fn print(api: &Api, printer: &mut Printer, answer: &Answer) -> Result<(), Error> {
    if printer.is_json() {
        return printer.text(&answer.body);
    }
    let forecast: Forecast = api.read(answer)?;
    let clusters = forecast.replicas.iter().flat_map(Replica::clusters);
    let deployments = forecast.replicas.iter().flat_map(Replica::deployments);
    let names = Names::look_up(api, clusters, deployments).await;
    printer.text(&table(&forecast, &names))?;
    printer.note("nothing was done: without --dry-run it is");
    Ok(())
}

fn table(forecast: &Forecast, names: &Names) -> String {
    let header = ["REPLICA", "OUTCOME", "CLUSTER", "NODE", "VICTIMS", "WHY"];
    let rows = forecast.replicas.iter();
    rows.fold(Table::new(&header), |table, replica| table.row(replica.row(names))).render()
}

impl Replica {
    fn row(&self, names: &Names) -> [String; 6] {
        let cluster = self.cluster_id.as_deref().map(|id| names.of(id).to_owned());
        [
            self.number.to_string(),
            self.outcome.clone(),
            format::optional(cluster.as_ref()),
            format::optional(self.node.as_ref()),
            units(&self.victims, self.other_victims, names),
            self.waits.first().map(|why| why.line(names)).unwrap_or_default(),
        ]
    }

    fn clusters(&self) -> impl Iterator<Item = &str> {
        self.cluster_id.as_deref().into_iter().chain(self.waits.iter().flat_map(Why::clusters))
    }

    fn deployments(&self) -> impl Iterator<Item = &str> {
        let victims = self.victims.iter().map(Unit::deployment);
        victims.chain(self.waits.iter().flat_map(Why::deployments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_replica_has_its_line() {
        let forecast: Forecast = serde_json::from_str(
            r#"{"dry_run":true,"at":"2026-01-02T03:04:05Z","replicas":[
                {"number":0,"outcome":"start","cluster_id":"c","node":"a","victims":[],"other_victims":0,"waits":[]},
                {"number":1,"outcome":"displace","cluster_id":"c","node":"b",
                 "victims":[{"deployment_id":"d","replica":2}],"other_victims":1,"waits":[]},
                {"number":2,"outcome":"wait","cluster_id":null,"node":null,"victims":[],"other_victims":0,
                 "waits":[{"number":2,"verdict":"not_now","wait":"short","position":1}]}]}"#,
        )
        .unwrap();
        let want = "\
REPLICA  OUTCOME   CLUSTER  NODE  VICTIMS                             WHY
0        start     prod     a     -                                   -
1        displace  prod     b     batch/2, 1 of another organization  -
2        wait      -        -     -                                   waits: there is too little room now; position in the queue: 1
";
        assert_eq!(table(&forecast, &Names::from([("c", "prod"), ("d", "batch")])), want);
    }
}
