//! A simulated day of a region, minute by minute, with changing demand and slow provisioning.

use std::collections::BTreeMap;

use super::*;

/// Deterministic random numbers (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// A workload.
struct Job {
    cpu: i64,
    since: Time,
    ends: Time,
    on: Option<ClusterId>,
}

struct Region {
    pool: Pool,
    now: Time,
    seen: Observed,
    jobs: Vec<Job>,
    /// When a new cluster becomes ready, and since when its cause was pending.
    due: BTreeMap<ClusterId, (Time, Time)>,
    /// Scale-ups (true) and scale-downs.
    changes: Vec<(Time, bool)>,
    created: u32,
    rng: Dice,
}

const DAY: u64 = 24 * 60;

impl Region {
    fn new(pool: Pool, seed: u64) -> Self {
        Self {
            pool,
            now: NOON,
            seen: Observed::default(),
            jobs: Vec::new(),
            due: BTreeMap::new(),
            changes: Vec::new(),
            created: 0,
            rng: Dice(seed),
        }
    }

    /// One minute: jobs end and start, clusters become ready, jobs are placed, the pool decides.
    fn minute(&mut self, demanded_cpu: i64, lifetime: u64) {
        self.jobs.retain(|job| job.ends > self.now);
        let mut requested: i64 = self.jobs.iter().map(|job| job.cpu).sum();
        while requested < demanded_cpu {
            let cpu = 1 + i64::try_from(self.rng.below(4)).unwrap();
            let ends = self.now + minutes(lifetime / 2 + self.rng.below(lifetime));
            self.jobs.push(Job { cpu, since: self.now, ends, on: None });
            requested += cpu;
        }
        self.arrive();
        self.place();
        self.observe();
        self.decide();
        self.now = self.now + minutes(1);
    }

    fn arrive(&mut self) {
        for cluster in &mut self.seen.clusters {
            if self.due.get(&cluster.id).is_some_and(|(at, _)| *at <= self.now) {
                cluster.status = Status::Ready;
            }
        }
    }

    /// Places the oldest jobs first, on the fullest cluster that fits, as the scheduler does.
    fn place(&mut self) {
        self.jobs.sort_by_key(|job| job.since);
        for i in 0..self.jobs.len() {
            if self.jobs[i].on.is_some() {
                continue;
            }
            let ready = self.seen.clusters.iter().filter(|cluster| cluster.is_ready());
            let free = ready.map(|cluster| (8 - self.used(cluster.id), cluster.id));
            let best = free.filter(|(free, _)| *free >= self.jobs[i].cpu).min();
            self.jobs[i].on = best.map(|(_, id)| id);
        }
        // The job that caused a cluster is placed as soon as the cluster is ready.
        for (id, (at, since)) in &self.due {
            let is_pending = self.jobs.iter().any(|job| job.on.is_none() && job.since < *since);
            assert!(
                *at > self.now || !is_pending,
                "{id} is ready, but the job that caused it is pending"
            );
        }
        self.due.retain(|_, (at, _)| *at > self.now);
    }

    fn used(&self, id: ClusterId) -> i64 {
        self.jobs.iter().filter(|job| job.on == Some(id)).map(|job| job.cpu).sum()
    }

    fn observe(&mut self) {
        let used: Vec<i64> = self.seen.clusters.iter().map(|one| self.used(one.id)).collect();
        for (cluster, used) in self.seen.clusters.iter_mut().zip(used) {
            assert!(used <= 8, "{} is oversubscribed", cluster.name);
            cluster.nodes[0].used = cpus(used);
            let empty_since = cluster.empty_since.or(Some(self.now));
            cluster.empty_since = empty_since.filter(|_| used == 0 && cluster.is_ready());
        }
        let jobs = self.jobs.iter().filter(|job| job.on.is_none());
        self.seen.waiting = jobs.map(|job| pending(job.cpu, 1, job.since)).collect();
    }

    fn decide(&mut self) {
        let decision = decide(&self.pool, &self.seen, self.now);
        self.seen.memory = self.seen.memory.after(&decision, self.now);
        match decision.action {
            Action::Stay => {}
            Action::Grow => {
                self.created += 1;
                let new = ObservedCluster {
                    empty_since: None,
                    since: self.now,
                    ..cluster(self.created, Status::Accepted, 0)
                };
                let first = self.seen.waiting.iter().map(|one| one.since).min().unwrap_or(self.now);
                let ready = self.now + minutes(2 + self.rng.below(5));
                self.due.insert(new.id, (ready, first));
                self.seen.clusters.push(new);
                self.changes.push((self.now, true));
            }
            Action::Shrink(id) => {
                assert_eq!(self.used(id), 0);
                self.seen.clusters.retain(|cluster| cluster.id != id);
                self.changes.push((self.now, false));
            }
        }
    }

    fn reversals(&self) -> usize {
        self.changes.windows(2).filter(|pair| pair[0].1 != pair[1].1).count()
    }

    fn check_no_flap(&self) {
        for pair in self.changes.windows(2).filter(|pair| pair[0].1 != pair[1].1) {
            let apart = pair[1].0.since(pair[0].0);
            assert!(apart >= self.pool.pace.cool_down, "{pair:?}");
        }
    }
}

/// Demand by minute: none at night, rising in the morning, falling in the evening.
fn curve(minute: u64, peak: i64) -> i64 {
    let minute = i64::try_from(minute).unwrap();
    match minute {
        0..60 | 900.. => 0,
        60..500 => peak * (minute - 60) / 440,
        500..600 => peak,
        _ => peak * (900 - minute) / 300,
    }
}

fn a_day(pool: Pool, seed: u64) -> (Region, usize) {
    let mut region = Region::new(pool, seed);
    let mut most = 0;
    for minute in 0..DAY {
        region.minute(curve(minute, 420), 40);
        most = most.max(region.seen.clusters.len());
        assert!(region.seen.clusters.len() <= region.pool.at_most as usize);
    }
    (region, most)
}

#[test]
fn region_grows_from_0_to_50_and_back_without_flapping() {
    for seed in 1..=8 {
        let (region, most) = a_day(plain(), seed);
        assert_eq!(most, 50, "seed {seed}");
        assert_eq!(region.seen.clusters, [], "seed {seed}");
        assert!(region.jobs.is_empty(), "seed {seed}: jobs are left");
        assert_eq!(
            region.reversals(),
            1,
            "seed {seed}: one reversal of demand: {:?}",
            region.changes
        );
        region.check_no_flap();
    }
}

#[test]
fn region_with_slack_keeps_free_capacity_without_flapping() {
    for seed in 1..=8 {
        let pool = Pool { slack: cpus(10), largest: vec![cpus(4)], ..plain() };
        let (region, most) = a_day(pool, seed);
        assert_eq!(most, 50, "seed {seed}");
        let free = region.seen.free();
        assert!(cpus(10).fits(&free) && region.seen.clusters.len() == 2, "seed {seed}: {free}");
        // Many jobs may end at once in the morning: a cluster is removed and added much later.
        assert!(region.reversals() <= 3, "seed {seed}: {:?}", region.changes);
        region.check_no_flap();
    }
}

#[test]
fn two_peaks_cause_three_reversals() {
    let mut region = Region::new(plain(), 7);
    for minute in 0..2 * DAY {
        region.minute(curve(minute % DAY, 420), 40);
    }
    assert_eq!((region.reversals(), region.seen.clusters.len()), (3, 0), "{:?}", region.changes);
    region.check_no_flap();
}

#[test]
fn bursts_shorter_than_the_cool_down_cause_no_flapping() {
    for seed in 1..=8 {
        let pace = Pace { idle_for: minutes(1), ..Pace::default() };
        let mut region = Region::new(Pool { pace, ..plain() }, seed);
        for minute in 0..DAY {
            region.minute(if minute % 12 < 4 { 30 } else { 0 }, 3);
        }
        assert!(region.reversals() > 10, "seed {seed}: it follows demand: {:?}", region.changes);
        region.check_no_flap();
    }
}
