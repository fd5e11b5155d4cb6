//! What one change costs in a large world, and the same change in a small one.
//!
//! Each change is undone before the next, outside of what is timed, so that all find the same.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use model::world::{Cluster, Decisions, Place, Unit, World};
use model::{ClusterId, Time};

use crate::generate::{Random, cluster, unit, xid};
use crate::speed::nodes;
use crate::table::{Row, spread};

/// On each cluster.
const HELD: u32 = 100;
/// Where the numbers of those who wait begin.
const WAITING: u32 = 2_000_000;

pub(crate) fn rows(is_quick: bool) -> Vec<Row> {
    let samples = if is_quick { 200 } else { 2000 };
    let minutes = |n: i64| Time(n * 60_000_000);
    let worlds = [
        ("1,000,000 on 10,000 clusters", 10_000, 10_000, minutes(1)),
        ("the same after an hour of waiting", 10_000, 10_000, minutes(60)),
        ("1,000 on 10 clusters", 10, 10, minutes(1)),
    ];
    let mut rows = Vec::new();
    for (name, clusters, waiting, now) in worlds {
        let mut bench = Bench::new(clusters, waiting, now);
        for (what, change) in CHANGES {
            let times = (0..samples).map(|n| change(&mut bench, n)).collect();
            rows.push(Row::new(format!("{name}: {what}"), spread(times), "< 1 ms"));
        }
    }
    rows
}

type Change = fn(&mut Bench, u32) -> Duration;

const CHANGES: [(&str, Change); 8] = [
    ("one comes and waits", |bench, n| bench.arrive(n, 0)),
    ("one comes and displaces others", |bench, n| bench.arrive(n, 50)),
    ("one ends", |bench, _| bench.end()),
    ("priority of one that waits", |bench, _| bench.reprioritize_waiting()),
    ("priority of one that runs", |bench, _| bench.reprioritize_running()),
    ("a cluster grows", |bench, _| bench.resize([40_000, 0, 160_000])),
    ("a cluster shrinks", |bench, _| bench.resize([30_000, 0, 120_000])),
    ("a cluster is added", |bench, n| bench.add_cluster(n)),
];

/// A world that is full, with others who wait, all of them asking for something else.
pub(crate) struct Bench {
    pub(crate) world: World,
    pub(crate) now: Time,
    clusters: u32,
    waiting: u32,
    numbers: HashMap<ClusterId, u32>,
    random: Random,
}

impl Bench {
    pub(crate) fn new(clusters: u32, waiting: u32, now: Time) -> Self {
        let mut world = nodes(clusters);
        for n in 0..clusters * HELD {
            world.placed(&held(n), home(n), started(n));
        }
        for n in 0..waiting {
            world.wait(&waits(n));
        }
        world.decide(now, usize::MAX);
        let numbers = (0..clusters).map(|n| (ClusterId(xid(n)), n)).collect();
        Self { world, now, clusters, waiting, numbers, random: Random(11) }
    }

    fn decide(&mut self) -> Decisions {
        self.world.decide(self.now, usize::MAX)
    }

    /// Tells of a change and decides what follows from it.
    fn time(&mut self, change: impl FnOnce(&mut World)) -> (Duration, Decisions) {
        let begin = Instant::now();
        change(&mut self.world);
        let decided = self.world.decide(self.now, usize::MAX);
        (begin.elapsed(), decided)
    }

    fn pick(&mut self, count: u32) -> u32 {
        u32::try_from(self.random.range(0, i64::from(count) - 1)).expect("it is below")
    }

    /// Who was started waits again, and who was displaced is where it was.
    fn undo(&mut self, decided: &Decisions) {
        for start in &decided.starts {
            self.world.requeue(start.unit);
        }
        for preemption in &decided.preemptions {
            let first = self.numbers[&preemption.place.cluster] * HELD;
            let number = (first..first + HELD).find(|n| xid(*n) == preemption.victim.owner);
            if let Some(n) = number {
                self.world.placed(&held(n), home(n), started(n));
            }
        }
    }

    fn arrive(&mut self, n: u32, priority: i64) -> Duration {
        let unit = unit(3_000_000 + n, priority, request(&mut self.random));
        let (took, decided) = self.time(|world| world.wait(&unit));
        self.world.gone(unit.id);
        self.undo(&decided);
        self.decide();
        took
    }

    fn end(&mut self) -> Duration {
        let n = self.pick(self.clusters * HELD);
        let (took, decided) = self.time(|world| world.gone(held(n).id));
        self.undo(&decided);
        self.world.placed(&held(n), home(n), started(n));
        self.decide();
        took
    }

    fn reprioritize_waiting(&mut self) -> Duration {
        let unit = waits(self.pick(self.waiting));
        let higher = Unit { priority: 5, ..unit.clone() };
        let (took, decided) = self.time(|world| world.wait(&higher));
        self.world.gone(unit.id);
        self.undo(&decided);
        self.world.wait(&unit);
        self.decide();
        took
    }

    fn reprioritize_running(&mut self) -> Duration {
        let n = self.pick(self.clusters * HELD);
        let higher = Unit { priority: 12, ..held(n) };
        let (took, decided) = self.time(|world| world.placed(&higher, home(n), started(n)));
        self.undo(&decided);
        self.world.placed(&held(n), home(n), started(n));
        self.decide();
        took
    }

    fn resize(&mut self, amounts: [i64; 3]) -> Duration {
        let n = self.pick(self.clusters);
        let (took, decided) = self.time(|world| world.set_cluster(cluster(n, amounts)));
        self.undo(&decided);
        self.world.set_cluster(cluster(n, [32_000, 0, 128_000]));
        self.decide();
        took
    }

    fn add_cluster(&mut self, n: u32) -> Duration {
        let new: Cluster = cluster(self.clusters + n, [32_000, 0, 128_000]);
        let id = new.id;
        let (took, decided) = self.time(|world| world.set_cluster(new));
        self.undo(&decided);
        self.world.remove_cluster(id);
        self.decide();
        took
    }
}

fn request(random: &mut Random) -> [i64; 3] {
    [random.range(300, 4000), 0, random.range(1000, 16_000)]
}

/// One of those that fill the clusters; a tenth of them says when it ends.
fn held(n: u32) -> Unit {
    let mut random = Random(n.into());
    let priority = random.range(0, 9);
    let ends_at = n.is_multiple_of(10).then(|| Time(random.range(7_200_000_000, 9_000_000_000)));
    Unit { ends_at, ..unit(n, priority, [320, 0, 1280]) }
}

fn home(n: u32) -> Place {
    Place { cluster: ClusterId(xid(n / HELD)), node: "main".into() }
}

fn started(n: u32) -> Time {
    Time(Random(u64::from(n) << 32).range(0, 1_000_000))
}

/// One of those that wait.
pub(crate) fn waits(n: u32) -> Unit {
    unit(WAITING + n, 0, request(&mut Random(u64::from(n) << 40)))
}
