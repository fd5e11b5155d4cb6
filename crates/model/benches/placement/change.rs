//! Cost of one change in large and small worlds.
//!
//! Each change is undone before the next, outside of the measurement, so that all start equal.

use std::collections::HashMap;

use model::world::{Cluster, Decisions, Place, Unit, World};
use model::{ClusterId, Time};

use crate::generate::{Random, cluster, unit, xid};
use crate::speed::nodes;
use crate::table::{Row, Sample, sample, spread};

/// Units on each cluster.
const HELD: u32 = 100;
/// First number of the pending units.
const WAITING: u32 = 2_000_000;

pub(crate) fn rows(is_quick: bool) -> Vec<Row> {
    let (samples, clusters) = if is_quick { (200, 1000) } else { (2000, 10_000) };
    let minutes = |n: i64| Time(n * 60_000_000);
    let worlds = [
        ("10,000 pending for a minute", clusters, 10_000, minutes(1)),
        ("10,000 pending for an hour", clusters, 10_000, minutes(60)),
        ("10 pending for a minute", 10, 10, minutes(1)),
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
    ("unit arrives and is pending", |bench, n| bench.arrive_small(n, 0)),
    ("unit arrives and preempts", |bench, n| bench.arrive_small(n, 50)),
    ("unit arrives that exceeds every node", |bench, n| {
        bench.arrive(n, 50, [33_000 + i64::from(n), 0, 128_000])
    }),
    // Of many priorities, so that cached indexes do not help.
    ("unit arrives that needs too many victims", |bench, n| {
        bench.arrive(n, i64::from(n % 8), [30_000 + i64::from(n % 1000), 0, 100_000])
    }),
    ("unit ends", |bench, _| bench.end()),
    ("priority of a pending unit changes", |bench, _| bench.reprioritize_waiting()),
    ("priority of a running unit changes", |bench, _| bench.reprioritize_running()),
    ("cluster grows", |bench, _| bench.resize([40_000, 0, 160_000])),
    ("cluster shrinks", |bench, _| bench.resize([30_000, 0, 120_000])),
    ("cluster is added", |bench, n| bench.add_cluster(n)),
];

/// A full world with pending units, all with different requests.
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
            world.set_placed(&placed_unit(n), place(n), started(n));
        }
        for n in 0..waiting {
            world.add_pending(&pending_unit(n));
        }
        world.decide(now, usize::MAX);
        let numbers = (0..clusters).map(|n| (ClusterId(xid(n)), n)).collect();
        Self { world, now, clusters, waiting, numbers, random: Random(11) }
    }

    fn decide(&mut self) -> Decisions {
        self.world.decide(self.now, usize::MAX)
    }

    /// Applies a change and runs a scheduling round.
    fn time(&mut self, change: impl FnOnce(&mut World)) -> (Sample, Decisions) {
        sample(|| {
            change(&mut self.world);
            self.world.decide(self.now, usize::MAX)
        })
    }

    fn pick(&mut self, count: u32) -> u32 {
        u32::try_from(self.random.range(0, i64::from(count) - 1)).expect("is below `count`")
    }

    /// Requeues started units and restores preempted ones.
    fn undo(&mut self, decided: &Decisions) {
        for start in &decided.starts {
            self.world.requeue(start.unit);
        }
        for preemption in &decided.preemptions {
            let first = self.numbers[&preemption.place.cluster] * HELD;
            let number = (first..first + HELD).find(|n| xid(*n) == preemption.victim.owner);
            if let Some(n) = number {
                self.world.set_placed(&placed_unit(n), place(n), started(n));
            }
        }
    }

    fn arrive_small(&mut self, n: u32, priority: i64) -> Sample {
        let amounts = request(&mut self.random);
        self.arrive(n, priority, amounts)
    }

    fn arrive(&mut self, n: u32, priority: i64, amounts: [i64; 3]) -> Sample {
        let unit = unit(3_000_000 + n, priority, amounts);
        let (took, decided) = self.time(|world| world.add_pending(&unit));
        self.world.remove(unit.id);
        self.undo(&decided);
        self.decide();
        took
    }

    fn end(&mut self) -> Sample {
        let n = self.pick(self.clusters * HELD);
        let (took, decided) = self.time(|world| world.remove(placed_unit(n).id));
        self.undo(&decided);
        self.world.set_placed(&placed_unit(n), place(n), started(n));
        self.decide();
        took
    }

    fn reprioritize_waiting(&mut self) -> Sample {
        let unit = pending_unit(self.pick(self.waiting));
        let higher = Unit { priority: 5, ..unit.clone() };
        let (took, decided) = self.time(|world| world.add_pending(&higher));
        self.world.remove(unit.id);
        self.undo(&decided);
        self.world.add_pending(&unit);
        self.decide();
        took
    }

    fn reprioritize_running(&mut self) -> Sample {
        let n = self.pick(self.clusters * HELD);
        let higher = Unit { priority: 12, ..placed_unit(n) };
        let (took, decided) = self.time(|world| world.set_placed(&higher, place(n), started(n)));
        self.undo(&decided);
        self.world.set_placed(&placed_unit(n), place(n), started(n));
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

/// A unit that fills a cluster; a tenth of them has a planned end.
fn placed_unit(n: u32) -> Unit {
    let mut random = Random(n.into());
    let priority = random.range(0, 9);
    let ends_at = n.is_multiple_of(10).then(|| Time(random.range(7_200_000_000, 9_000_000_000)));
    Unit { ends_at, ..unit(n, priority, [320, 0, 1280]) }
}

fn place(n: u32) -> Place {
    Place { cluster: ClusterId(xid(n / HELD)), node: "main".into() }
}

fn started(n: u32) -> Time {
    Time(Random(u64::from(n) << 32).range(0, 1_000_000))
}

/// A pending unit.
pub(crate) fn pending_unit(n: u32) -> Unit {
    unit(WAITING + n, 0, request(&mut Random(u64::from(n) << 40)))
}
