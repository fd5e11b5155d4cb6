//! What one change costs in a large world, and the same change in a small one.
//!
//! Each change is undone before the next, outside of what is timed, so that all find the same.

use std::collections::HashMap;

use model::world::{Cluster, Decisions, Place, Unit, World};
use model::{ClusterId, Time};

use crate::generate::{Random, cluster, unit, xid};
use crate::speed::nodes;
use crate::table::{Row, Sample, sample, spread};

/// On each cluster.
const HELD: u32 = 100;
/// Where the numbers of those who wait begin.
const WAITING: u32 = 2_000_000;

pub(crate) fn rows(is_quick: bool) -> Vec<Row> {
    let (samples, clusters) = if is_quick { (200, 1000) } else { (2000, 10_000) };
    let minutes = |n: i64| Time(n * 60_000_000);
    let worlds = [
        ("10,000 wait a minute", clusters, 10_000, minutes(1)),
        ("10,000 wait an hour", clusters, 10_000, minutes(60)),
        ("10 wait a minute", 10, 10, minutes(1)),
    ];
    let mut rows = Vec::new();
    for (name, clusters, waiting, now) in worlds {
        let mut bench = Bench::new(clusters, waiting, now);
        let world = format!("{} deployments on {clusters} clusters, {name}", clusters * HELD);
        for (what, change) in CHANGES {
            let times = (0..samples).map(|n| change(&mut bench, n)).collect();
            rows.push(Row::new(format!("{world}: {what}"), spread(times), "< 1 ms"));
        }
    }
    rows
}

type Change = fn(&mut Bench, u32) -> Sample;

const CHANGES: [(&str, Change); 10] = [
    ("one comes and waits", |bench, n| bench.arrive_small(n, 0)),
    ("one comes and displaces others", |bench, n| bench.arrive_small(n, 50)),
    ("one comes that no node is large enough for", |bench, n| {
        bench.arrive(n, 50, [33_000 + i64::from(n), 0, 128_000])
    }),
    // Of many priorities, so that what is known for the last few does not help.
    ("one comes that too many would have to yield to", |bench, n| {
        bench.arrive(n, i64::from(n % 8), [30_000 + i64::from(n % 1000), 0, 100_000])
    }),
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
    fn time(&mut self, change: impl FnOnce(&mut World)) -> (Sample, Decisions) {
        sample(|| {
            change(&mut self.world);
            self.world.decide(self.now, usize::MAX)
        })
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

    fn arrive_small(&mut self, n: u32, priority: i64) -> Sample {
        let wants = request(&mut self.random);
        self.arrive(n, priority, wants)
    }

    fn arrive(&mut self, n: u32, priority: i64, wants: [i64; 3]) -> Sample {
        let unit = unit(3_000_000 + n, priority, wants);
        let (took, decided) = self.time(|world| world.wait(&unit));
        self.world.gone(unit.id);
        self.undo(&decided);
        self.decide();
        took
    }

    fn end(&mut self) -> Sample {
        let n = self.pick(self.clusters * HELD);
        let (took, decided) = self.time(|world| world.gone(held(n).id));
        self.undo(&decided);
        self.world.placed(&held(n), home(n), started(n));
        self.decide();
        took
    }

    fn reprioritize_waiting(&mut self) -> Sample {
        let unit = waits(self.pick(self.waiting));
        let higher = Unit { priority: 5, ..unit.clone() };
        let (took, decided) = self.time(|world| world.wait(&higher));
        self.world.gone(unit.id);
        self.undo(&decided);
        self.world.wait(&unit);
        self.decide();
        took
    }

    fn reprioritize_running(&mut self) -> Sample {
        let n = self.pick(self.clusters * HELD);
        let higher = Unit { priority: 12, ..held(n) };
        let (took, decided) = self.time(|world| world.placed(&higher, home(n), started(n)));
        self.undo(&decided);
        self.world.placed(&held(n), home(n), started(n));
        self.decide();
        took
    }

    fn resize(&mut self, amounts: [i64; 3]) -> Sample {
        let n = self.pick(self.clusters);
        let (took, decided) = self.time(|world| world.set_cluster(cluster(n, amounts)));
        self.undo(&decided);
        self.world.set_cluster(cluster(n, [32_000, 0, 128_000]));
        self.decide();
        took
    }

    fn add_cluster(&mut self, n: u32) -> Sample {
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
