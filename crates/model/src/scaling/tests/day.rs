//! A day of a region, minute by minute: demand comes and goes, and clusters take their time.

use std::collections::BTreeMap;

use super::*;

/// Repeatable randomness (SplitMix64).
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

/// Something that was asked for.
struct Job {
    cpu: i64,
    since: Time,
    ends: Time,
    on: Option<ClusterId>,
}

struct Region {
    pool: Pool,
    now: Time,
    seen: Seen,
    jobs: Vec<Job>,
    /// When a cluster that was asked for will be there, and for whom it was made.
    due: BTreeMap<ClusterId, (Time, Time)>,
    /// When one was made (true) or removed.
    changes: Vec<(Time, bool)>,
    made: u32,
    dice: Dice,
}

const DAY: u64 = 24 * 60;

impl Region {
    fn new(pool: Pool, seed: u64) -> Self {
        Self {
            pool,
            now: NOON,
            seen: Seen::default(),
            jobs: Vec::new(),
            due: BTreeMap::new(),
            changes: Vec::new(),
            made: 0,
            dice: Dice(seed),
        }
    }

    /// One minute: what ends ends, what was wanted comes, who waits is placed, the pool decides.
    fn minute(&mut self, wanted_cpu: i64, lifetime: u64) {
        self.jobs.retain(|job| job.ends > self.now);
        let mut asked: i64 = self.jobs.iter().map(|job| job.cpu).sum();
        while asked < wanted_cpu {
            let cpu = 1 + i64::try_from(self.dice.below(4)).unwrap();
            let ends = self.now + minutes(lifetime / 2 + self.dice.below(lifetime));
            self.jobs.push(Job { cpu, since: self.now, ends, on: None });
            asked += cpu;
        }
        self.arrive();
        self.place();
        self.look();
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

    /// The first in line first; on the fullest cluster that has room, as placement does.
    fn place(&mut self) {
        self.jobs.sort_by_key(|job| job.since);
        for i in 0..self.jobs.len() {
            if self.jobs[i].on.is_some() {
                continue;
            }
            let ready = self.seen.clusters.iter().filter(|cluster| cluster.is_ready());
            let room = ready.map(|cluster| (8 - self.used(cluster.id), cluster.id));
            let best = room.filter(|(free, _)| *free >= self.jobs[i].cpu).min();
            self.jobs[i].on = best.map(|(_, id)| id);
        }
        // Who caused a cluster has its place as soon as it is there.
        for (id, (at, since)) in &self.due {
            let waits = self.jobs.iter().any(|job| job.on.is_none() && job.since < *since);
            assert!(*at > self.now || !waits, "{id} came, and who it was made for still waits");
        }
        self.due.retain(|_, (at, _)| *at > self.now);
    }

    fn used(&self, id: ClusterId) -> i64 {
        self.jobs.iter().filter(|job| job.on == Some(id)).map(|job| job.cpu).sum()
    }

    fn look(&mut self) {
        let used: Vec<i64> = self.seen.clusters.iter().map(|one| self.used(one.id)).collect();
        for (cluster, used) in self.seen.clusters.iter_mut().zip(used) {
            assert!(used <= 8, "{} is oversubscribed", cluster.name);
            cluster.nodes[0].used = cpus(used);
            let empty_since = cluster.empty_since.or(Some(self.now));
            cluster.empty_since = empty_since.filter(|_| used == 0 && cluster.is_ready());
        }
        let waiting = self.jobs.iter().filter(|job| job.on.is_none());
        self.seen.waiting = waiting.map(|job| waits(job.cpu, 1, job.since)).collect();
    }

    fn decide(&mut self) {
        let decision = decide(&self.pool, &self.seen, self.now);
        self.seen.memory = self.seen.memory.after(&decision, self.now);
        match decision.action {
            Action::Stay => {}
            Action::Grow => {
                self.made += 1;
                let new = SeenCluster {
                    empty_since: None,
                    since: self.now,
                    ..cluster(self.made, Status::Accepted, 0)
                };
                let first = self.seen.waiting.iter().map(|one| one.since).min().unwrap_or(self.now);
                let ready = self.now + minutes(2 + self.dice.below(5));
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

    fn turns(&self) -> usize {
        self.changes.windows(2).filter(|pair| pair[0].1 != pair[1].1).count()
    }

    fn check_no_flap(&self) {
        for pair in self.changes.windows(2).filter(|pair| pair[0].1 != pair[1].1) {
            let apart = pair[1].0.since(pair[0].0);
            assert!(apart >= self.pool.pace.cool_down, "{pair:?}");
        }
    }
}

/// How much is wanted in that minute: nothing, up in the morning, down in the evening.
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
fn a_region_grows_from_0_to_50_and_back_without_one_flap() {
    for seed in 1..=8 {
        let (region, most) = a_day(plain(), seed);
        assert_eq!(most, 50, "seed {seed}");
        assert_eq!(region.seen.clusters, [], "seed {seed}");
        assert!(region.jobs.is_empty(), "seed {seed}: somebody still waits or runs");
        assert_eq!(region.turns(), 1, "seed {seed}: demand turned once: {:?}", region.changes);
        region.check_no_flap();
    }
}

#[test]
fn with_slack_it_keeps_what_it_shall_and_does_not_flap_either() {
    for seed in 1..=8 {
        let pool = Pool { slack: cpus(10), largest: vec![cpus(4)], ..plain() };
        let (region, most) = a_day(pool, seed);
        assert_eq!(most, 50, "seed {seed}");
        let free = region.seen.free();
        assert!(cpus(10).fits(&free) && region.seen.clusters.len() == 2, "seed {seed}: {free}");
        // Much may end at once in the morning, too: then one goes and comes back, long after.
        assert!(region.turns() <= 3, "seed {seed}: {:?}", region.changes);
        region.check_no_flap();
    }
}

#[test]
fn two_peaks_are_three_turns() {
    let mut region = Region::new(plain(), 7);
    for minute in 0..2 * DAY {
        region.minute(curve(minute % DAY, 420), 40);
    }
    assert_eq!((region.turns(), region.seen.clusters.len()), (3, 0), "{:?}", region.changes);
    region.check_no_flap();
}

#[test]
fn bursts_that_come_and_go_faster_than_the_cool_down_do_not_make_it_flap() {
    for seed in 1..=8 {
        let pace = Pace { idle_for: minutes(1), ..Pace::default() };
        let mut region = Region::new(Pool { pace, ..plain() }, seed);
        for minute in 0..DAY {
            region.minute(if minute % 12 < 4 { 30 } else { 0 }, 3);
        }
        assert!(region.turns() > 10, "seed {seed}: it follows: {:?}", region.changes);
        region.check_no_flap();
    }
}
