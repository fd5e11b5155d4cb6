//! Cost of explanations and dry runs with many pending units.

use model::Time;
use model::world::Outcome;

use crate::change::{Bench, pending_unit};
use crate::generate::unit;
use crate::table::{Row, Sample, sample, spread};

pub(crate) fn rows(is_quick: bool) -> Vec<Row> {
    let (clusters, waiting, samples) =
        if is_quick { (1000, 10_000, 50) } else { (10_000, 100_000, 500) };
    let mut bench = Bench::new(clusters, waiting, Time(60_000_000));
    let name = format!("{clusters} clusters, {waiting} pending");
    let explain = |bench: &mut Bench, n: u32| {
        let id = pending_unit(n * (waiting / samples)).id;
        let (took, explanation) = sample(|| bench.world.explain(id, bench.now));
        assert!(explanation.is_some_and(|explanation| explanation.position.is_some()));
        took
    };
    let explain = (0..samples).map(|n| explain(&mut bench, n)).collect();
    let one = (0..samples).map(|_| dry_run(&mut bench, 1)).collect();
    let many = (0..20).map(|_| dry_run(&mut bench, 100)).collect();
    vec![
        Row::new(format!("{name}: explain one"), spread(explain), "< 50 ms"),
        Row::new(format!("{name}: dry run of one"), spread(one), "< 50 ms"),
        Row::new(format!("{name}: dry run of 100 replicas"), spread(many), ""),
    ]
}

/// Dry run of replicas for which no capacity is free.
fn dry_run(bench: &mut Bench, replicas: u32) -> Sample {
    let replica = |n: u32| unit(5_000_000 + n, 0, [20_000, 0, 100_000]);
    let units: Vec<_> = (0..replicas).map(replica).collect();
    let (took, outcomes) = sample(|| bench.world.dry_run(&units, bench.now));
    assert!(outcomes.iter().all(|(_, outcome)| matches!(outcome, Outcome::Wait { .. })));
    took
}
