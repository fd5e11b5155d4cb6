//! How many decisions a second, and what one change costs in a large world.

use std::fs;
use std::time::{Duration, Instant};

use model::Time;
use model::world::{Place, Settings, UnitId, World};

use crate::generate::{Random, cluster, unit, xid};

const RUNS: usize = 5;

/// Time that this thread was on a core, where the system says so: others may be at work, too.
struct Busy(Instant, Option<u64>);

impl Busy {
    fn on_core_ns() -> Option<u64> {
        // What the thread is doing is counted at the latest when it gives the core away.
        std::thread::sleep(Duration::from_micros(50));
        let line = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        line.split(' ').next()?.parse().ok()
    }

    fn now() -> Self {
        let on_core = Self::on_core_ns();
        Self(Instant::now(), on_core)
    }

    fn elapsed(self) -> Duration {
        let wall = self.0.elapsed();
        match (self.1, Self::on_core_ns()) {
            (Some(begin), Some(end)) => Duration::from_nanos(end - begin),
            _ => wall,
        }
    }
}

/// How often this thread had to leave its core for another.
fn interruptions() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

pub(crate) fn print() {
    println!("\nSpeed on one core: median of {RUNS} runs (and the slowest)");
    report("5,000 nodes, 50,000 requests, one by one", 100_000, one_by_one);
    report("5,000 nodes, 50,000 requests, all at once", 100_000, at_once);
    report("5,000 nodes full of 20,000 low, 5,000 high preempt, one by one", 20_000, preempting);
    report("  the same, each victim is gone and its displacer starts", 20_000, preempt_and_start);
    one_change();
}

/// Runs it a few times and shows how many decisions a second it made.
fn report(name: &str, target: u32, run: impl Fn() -> (usize, Duration)) {
    let mut rates: Vec<f64> = (0..RUNS)
        .map(|_| {
            let (decisions, took) = run();
            decisions as f64 / took.as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    let (median, slowest) = (rates[RUNS / 2], rates[0]);
    println!("{name:66} {median:>10.0}/s  ({slowest:.0}/s)  target {target}/s");
}

fn nodes(count: u32) -> World {
    let mut world = World::new(Settings::default());
    (0..count).for_each(|n| world.set_cluster(cluster(n, [32_000, 0, 128_000])));
    world.decide(Time(0), usize::MAX);
    world
}

fn request(random: &mut Random) -> [i64; 3] {
    [random.range(500, 5000), 0, random.range(1000, 20_000)]
}

fn one_by_one() -> (usize, Duration) {
    let (mut world, mut random) = (nodes(5000), Random(7));
    let units: Vec<_> = (0..50_000).map(|n| unit(n, 0, request(&mut random))).collect();
    let begin = Busy::now();
    let mut started = 0;
    for unit in &units {
        world.wait(unit);
        started += world.decide(Time(0), 1000).starts.len();
    }
    let took = begin.elapsed();
    assert_eq!(started, 50_000, "all fit");
    (started, took)
}

fn at_once() -> (usize, Duration) {
    let (mut world, mut random) = (nodes(5000), Random(7));
    let units: Vec<_> = (0..50_000).map(|n| unit(n, 0, request(&mut random))).collect();
    let begin = Busy::now();
    for unit in &units {
        world.wait(unit);
    }
    let started = world.decide(Time(0), usize::MAX).starts.len();
    (started, begin.elapsed())
}

/// Four low ones on each node, with different priorities and ages, that leave no room.
fn full() -> World {
    let (mut world, mut random) = (nodes(5000), Random(8));
    for n in 0..20_000u32 {
        let low = unit(n, random.range(0, 9), [8000, 0, 32_000]);
        let place = Place { cluster: model::ClusterId(xid(n / 4)), node: "main".into() };
        world.placed(&low, place, Time(random.range(0, 1_000_000)));
    }
    world.decide(Time(0), usize::MAX);
    world
}

fn high(n: u32, random: &mut Random) -> model::world::Unit {
    unit(100_000 + n, 100, [random.range(4000, 16_000), 0, random.range(16_000, 64_000)])
}

fn preempting() -> (usize, Duration) {
    let (mut world, mut random) = (full(), Random(9));
    let units: Vec<_> = (0..5000).map(|n| high(n, &mut random)).collect();
    let begin = Busy::now();
    let mut served = 0;
    for unit in &units {
        world.wait(unit);
        served += world.decide(Time(2_000_000), 1000).reservations.len();
    }
    let took = begin.elapsed();
    assert_eq!(served, 5000, "room is made for all");
    (served, took)
}

fn preempt_and_start() -> (usize, Duration) {
    let (mut world, mut random) = (full(), Random(9));
    let units: Vec<_> = (0..5000).map(|n| high(n, &mut random)).collect();
    let begin = Busy::now();
    let mut started = 0;
    for unit in &units {
        world.wait(unit);
        let decided = world.decide(Time(2_000_000), 1000);
        started += decided.starts.len();
        for preemption in decided.preemptions {
            world.gone(preemption.victim);
        }
        started += world.decide(Time(2_000_000), 1000).starts.len();
    }
    let took = begin.elapsed();
    assert_eq!(started, 5000, "all start");
    (started, took)
}

/// A million units on ten thousand clusters, full, with as many classes waiting.
fn large() -> World {
    let mut world = nodes(10_000);
    let mut random = Random(10);
    for n in 0..1_000_000u32 {
        let held = unit(n, random.range(0, 9), [320, 0, 1280]);
        let place = Place { cluster: model::ClusterId(xid(n / 100)), node: "main".into() };
        world.placed(&held, place, Time(random.range(0, 1_000_000)));
    }
    for n in 0..10_000 {
        world.wait(&unit(
            2_000_000 + n,
            0,
            [random.range(300, 4000), 0, random.range(1000, 16_000)],
        ));
    }
    world.decide(Time(2_000_000), usize::MAX);
    world
}

fn one_change() {
    println!(
        "\nOne change in a world of 1,000,000 units on 10,000 clusters with 10,000 waiting classes"
    );
    let mut world = large();
    let mut random = Random(11);
    let id = |n: i64| UnitId { owner: xid(u32::try_from(n).expect("small")), replica: 0 };
    measure("a unit ends", |_| {
        world.gone(id(random.range(0, 999_999)));
        world.decide(Time(3_000_000), 1000);
    });
    measure("a unit comes, has to wait", |n| {
        world.wait(&unit(
            3_000_000 + n,
            0,
            [random.range(300, 4000), 0, random.range(1000, 16_000)],
        ));
        world.decide(Time(3_000_000), 1000);
    });
    measure("a unit comes and preempts", |n| {
        world.wait(&unit(
            4_000_000 + n,
            50,
            [random.range(300, 4000), 0, random.range(1000, 16_000)],
        ));
        world.decide(Time(3_000_000), 1000);
    });
    measure("a unit comes that is too large for any node", |n| {
        world.wait(&unit(5_000_000 + n, 50, [33_000 + i64::from(n), 0, 128_000]));
        world.decide(Time(3_000_000), 1000);
    });
    measure("a unit comes that higher ones leave no room for", |n| {
        world.wait(&unit(6_000_000 + n, 5, [30_000 + i64::from(n), 0, 100_000]));
        world.decide(Time(3_000_000), 1000);
    });
    measure("a cluster takes or gives back by hand", |n| {
        let taken = model::Resources::from([("ram", i64::from(n % 2))]);
        world.set_cluster(model::world::Cluster {
            nodes: vec![model::world::Node {
                taken,
                ..cluster(n % 100, [32_000, 0, 128_000]).nodes.remove(0)
            }],
            ..cluster(n % 100, [32_000, 0, 128_000])
        });
        world.decide(Time(3_000_000), 1000);
    });
    measure("a cluster is added", |n| {
        world.set_cluster(cluster(20_000 + n, [32_000, 0, 128_000]));
        world.decide(Time(3_000_000), 1000);
    });
}

/// Shows what a change costs, leaving out those during which another process got the core.
fn measure(name: &str, mut change: impl FnMut(u32)) {
    let mut times: Vec<Duration> = Vec::new();
    for n in 0..1000 {
        let before = interruptions();
        let begin = Instant::now();
        change(n);
        let took = begin.elapsed();
        if interruptions() == before {
            times.push(took);
        }
    }
    times.sort();
    let at = |permille: usize| times[(times.len() - 1) * permille / 1000].as_secs_f64() * 1e6;
    let [p50, p99, max] = [500, 990, 1000].map(at);
    println!(
        "{name:52} p50 {p50:>7.1} µs   p99 {p99:>7.1} µs   max {max:>7.1} µs   ({} undisturbed)",
        times.len()
    );
}
