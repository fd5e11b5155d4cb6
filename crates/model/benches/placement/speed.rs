//! Decisions per second, by the wall time of whole runs.

use std::time::{Duration, Instant};

use model::Time;
use model::world::{Place, Settings, Unit, World};

use crate::generate::{Random, cluster, unit, xid};
use crate::table::Row;

pub(crate) fn rows(is_quick: bool) -> Vec<Row> {
    let runs = if is_quick { 1 } else { 7 };
    let requests = "5,000 nodes, 50,000 requests";
    let preempt = "5,000 nodes full of 20,000 low priorities, 5,000 high ones preempt them";
    vec![
        report(format!("{requests}, one by one"), "≥ 100,000/s", runs, one_by_one),
        report(format!("{requests}, all at once"), "≥ 100,000/s", runs, at_once),
        report(format!("{preempt}, one by one"), "≥ 20,000/s", runs, preempting),
        report(format!("{preempt}, and start"), "≥ 20,000/s", runs, preempt_and_start),
    ]
}

/// Measures several runs and reports decisions per second.
fn report(what: String, goal: &str, runs: usize, run: impl Fn() -> (usize, Duration)) -> Row {
    let rate = |(decisions, took): (usize, Duration)| decisions as f64 / took.as_secs_f64();
    let mut rates: Vec<f64> = (0..runs).map(|_| rate(run())).collect();
    rates.sort_by(f64::total_cmp);
    let result = format!(
        "{:.0}/s (median of {runs} runs; slowest {:.0}/s, fastest {:.0}/s)",
        rates[runs / 2],
        rates[0],
        rates[runs - 1]
    );
    Row::new(what, result, goal)
}

/// A world of clusters with one node each.
pub(crate) fn nodes(count: u32) -> World {
    let mut world = World::new(Settings::default());
    for n in 0..count {
        world.set_cluster(cluster(n, [32_000, 0, 128_000]));
    }
    world.decide(Time(0), usize::MAX);
    world
}

fn requests() -> Vec<Unit> {
    let mut random = Random(7);
    let mut request = || [random.range(500, 5000), 0, random.range(1000, 20_000)];
    (0..50_000).map(|n| unit(n, 0, request())).collect()
}

fn one_by_one() -> (usize, Duration) {
    let (mut world, units) = (nodes(5000), requests());
    let begin = Instant::now();
    let mut started = 0;
    for unit in &units {
        world.add_pending(unit);
        started += world.decide(Time(0), 1000).starts.len();
    }
    let took = begin.elapsed();
    assert_eq!(started, 50_000, "all fit");
    (started, took)
}

fn at_once() -> (usize, Duration) {
    let (mut world, units) = (nodes(5000), requests());
    let begin = Instant::now();
    for unit in &units {
        world.add_pending(unit);
    }
    let started = world.decide(Time(0), usize::MAX).starts.len();
    let took = begin.elapsed();
    assert_eq!(started, 50_000, "all fit");
    (started, took)
}

/// Four low-priority units on each node, with different priorities and ages, that fill it.
fn full() -> World {
    let (mut world, mut random) = (nodes(5000), Random(8));
    for n in 0..20_000u32 {
        let low = unit(n, random.range(0, 9), [8000, 0, 32_000]);
        let place = Place { cluster: model::ClusterId(xid(n / 4)), node: "main".into() };
        world.set_placed(&low, place, Time(random.range(0, 1_000_000)));
    }
    world.decide(Time(0), usize::MAX);
    world
}

fn high() -> Vec<Unit> {
    let mut random = Random(9);
    let mut request = || [random.range(4000, 16_000), 0, random.range(16_000, 64_000)];
    (0..5000).map(|n| unit(100_000 + n, 100, request())).collect()
}

fn preempting() -> (usize, Duration) {
    let (mut world, units) = (full(), high());
    let begin = Instant::now();
    let mut served = 0;
    for unit in &units {
        world.add_pending(unit);
        served += world.decide(Time(2_000_000), 1000).reservations.len();
    }
    let took = begin.elapsed();
    assert_eq!(served, 5000, "all have victims");
    (served, took)
}

fn preempt_and_start() -> (usize, Duration) {
    let (mut world, units) = (full(), high());
    let begin = Instant::now();
    let mut started = 0;
    for unit in &units {
        world.add_pending(unit);
        let decided = world.decide(Time(2_000_000), 1000);
        started += decided.starts.len();
        for preemption in decided.preemptions {
            world.remove(preemption.victim);
        }
        started += world.decide(Time(2_000_000), 1000).starts.len();
    }
    let took = begin.elapsed();
    assert_eq!(started, 5000, "all start");
    (started, took)
}
