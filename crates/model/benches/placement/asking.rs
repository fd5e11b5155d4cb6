//! What it costs to ask, when many wait.

use std::time::{Duration, Instant};

use model::Time;
use model::world::Outcome;

use crate::change::{Bench, waits};
use crate::generate::unit;
use crate::table::{Row, spread};

pub(crate) fn rows(is_quick: bool) -> Vec<Row> {
    let (clusters, waiting, samples) =
        if is_quick { (1000, 10_000, 50) } else { (10_000, 100_000, 500) };
    let mut bench = Bench::new(clusters, waiting, Time(60_000_000));
    let name = format!("{clusters} clusters, {waiting} wait");
    let explain = (0..samples).map(|n| {
        let id = waits(n * (waiting / samples)).id;
        let begin = Instant::now();
        let explanation = bench.world.explain(id, bench.now);
        let took = begin.elapsed();
        assert!(explanation.is_some_and(|explanation| explanation.position.is_some()));
        took
    });
    let explain: Vec<Duration> = explain.collect();
    let mut dry_run = |replicas: u32, samples: u32| -> Vec<Duration> {
        let ask = |n: u32| unit(5_000_000 + n, 0, [20_000, 0, 100_000]);
        let units: Vec<_> = (0..replicas).map(ask).collect();
        let tries = (0..samples).map(|_| {
            let begin = Instant::now();
            let outcomes = bench.world.dry_run(&units, bench.now);
            let took = begin.elapsed();
            assert!(outcomes.iter().all(|(_, outcome)| matches!(outcome, Outcome::Wait { .. })));
            took
        });
        tries.collect()
    };
    vec![
        Row::new(format!("{name}: explain one"), spread(explain), "< 50 ms"),
        Row::new(format!("{name}: dry run of one"), spread(dry_run(1, samples)), "< 50 ms"),
        Row::new(format!("{name}: dry run of 100 replicas"), spread(dry_run(100, 20)), ""),
    ]
}
