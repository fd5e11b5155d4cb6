//! Chooses preemption victims: the set with the least loss, without unnecessary victims.

use std::cmp::Reverse;

use super::World;
use super::decision::PendingReason;
use super::node::{Resident, amount};
use super::unit::{Rank, Spot};
use crate::Time;

/// The loss from preempting a set of units. Fields are compared top to bottom and the lowest wins,
/// so the order of the fields *is* the policy. A superset never has a smaller loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Loss {
    /// Sum of the positive priorities.
    points: i64,
    /// Highest priority, capped at zero.
    highest: i64,
    /// Sum of the run times.
    work_us: u64,
    /// Number of units.
    units: usize,
}

impl Loss {
    pub(super) const NONE: Loss = Loss { points: 0, highest: i64::MIN, work_us: 0, units: 0 };
    const ALL: Loss =
        Loss { points: i64::MAX, highest: i64::MAX, work_us: u64::MAX, units: usize::MAX };

    /// The loss with one more unit.
    pub(super) fn plus(self, priority: i64, started: Time, now: Time) -> Loss {
        let ran = now.0.saturating_sub(started.0).max(0).unsigned_abs();
        Loss {
            points: self.points.saturating_add(priority.max(0)),
            highest: self.highest.max(priority.min(0)),
            work_us: self.work_us.saturating_add(ran),
            units: self.units + 1,
        }
    }
}

/// Preemption victims on one node.
#[derive(Debug, Clone)]
pub(super) struct Victims {
    pub(super) spot: Spot,
    pub(super) units: Vec<usize>,
    pub(super) loss: Loss,
}

impl Victims {
    /// No victim is needed.
    pub(super) fn none(spot: Spot) -> Self {
        Self { spot, units: Vec::new(), loss: Loss::NONE }
    }
}

/// Maximum number of sets that are tried on one node.
const TRIES: usize = 2_000;

impl World {
    /// The victims with the least loss for the head of a class, or why there are none.
    pub(super) fn find_victims(
        &mut self,
        class: usize,
        rank: &Rank,
        now: Time,
    ) -> Result<Victims, PendingReason> {
        if self.never_fits(class) {
            return Err(PendingReason::Never);
        }
        let limit = self.preemptions_left(self.classes[class].key.organization);
        if let Some(victims) = self.least_loss(class, rank, now, limit) {
            return Ok(victims);
        }
        if limit < usize::MAX && self.least_loss(class, rank, now, usize::MAX).is_some() {
            return Err(PendingReason::Budget);
        }
        Err(PendingReason::Short)
    }

    /// The least loss over all pools that a class may use.
    fn least_loss(
        &mut self,
        class: usize,
        rank: &Rank,
        now: Time,
        limit: usize,
    ) -> Option<Victims> {
        let candidates = self.classes[class].candidates.iter().filter(|c| c.demand.is_some());
        let pools: Vec<usize> = candidates.map(|c| c.pool).collect();
        let mut best = None;
        for pool in pools {
            let Some(group) = self.group(class, pool) else { continue };
            let search = Search { world: self, class, rank, now, limit };
            let nodes = self.pools[pool].groups[group].by_loss.iter();
            // The nodes of one cluster are all walked.
            let misses = if group == 0 { MISSES } else { usize::MAX };
            best = match search.walk(pool, group, nodes, best.clone(), misses) {
                Ok(found) => found,
                Err(TooManyMisses) => {
                    self.least_loss_among_few(class, rank, now, limit, pool, best)
                }
            };
        }
        best
    }

    /// The same if most nodes do not fit: finds the fitting nodes first, if they are few.
    fn least_loss_among_few(
        &mut self,
        class: usize,
        rank: &Rank,
        now: Time,
        limit: usize,
        pool: usize,
        best: Option<Victims>,
    ) -> Option<Victims> {
        let demand = self.classes[class].demand(pool)?.clone();
        let few = self.pools[pool].preemption_candidates(&demand, rank.priority.0, FEW);
        let pool_entry = &self.pools[pool];
        let search = Search { world: self, class, rank, now, limit };
        let Some(few) = few else {
            return search
                .walk(pool, 0, pool_entry.groups[0].by_loss.iter(), best, usize::MAX)
                .ok()?;
        };
        let mut few: Vec<LossKey> = few
            .into_iter()
            .filter_map(|position| {
                let node = &pool_entry.nodes[pool_entry.groups[0].order.get(position)?];
                node.cheapest().map(|(priority, started)| (priority, started, position))
            })
            .collect();
        few.sort_unstable();
        search.walk(pool, 0, few.iter(), best, usize::MAX).ok()?
    }
}

/// Sort key of a node by its cheapest victim: priority, start, position.
type LossKey = (i64, Reverse<Time>, usize);

/// The walk met too many nodes that do not fit.
struct TooManyMisses;

/// Number of nodes that do not fit after which a walk is aborted.
const MISSES: usize = if cfg!(test) { 0 } else { 128 };
/// Maximum number of nodes that are found by index.
const FEW: usize = if cfg!(test) { 3 } else { 256 };

/// The search for the victims of one head.
struct Search<'a> {
    world: &'a World,
    class: usize,
    rank: &'a Rank,
    now: Time,
    limit: usize,
}

impl Search<'_> {
    /// Walks nodes by their cheapest victim and stops when no remaining one can be better than the
    /// best so far.
    fn walk<'k>(
        &self,
        pool: usize,
        group: usize,
        nodes: impl Iterator<Item = &'k LossKey>,
        mut best: Option<Victims>,
        mut misses: usize,
    ) -> Result<Option<Victims>, TooManyMisses> {
        let order = &self.world.pools[pool].groups[group].order;
        let mut left = self.world.settings.preemption_candidates;
        for &(priority, started, position) in nodes {
            let bound = Loss::NONE.plus(priority, started.0, self.now);
            let cutoff = best.as_ref().map_or(Loss::ALL, |best| best.loss);
            if priority >= self.rank.priority.0 || bound >= cutoff || left == 0 {
                break;
            }
            let Some(spot) = order.get(position).map(|slot| Spot { pool, slot }) else { continue };
            if !self.fits_preempting(spot) {
                misses = misses.checked_sub(1).ok_or(TooManyMisses)?;
                continue;
            }
            left -= 1;
            best = self.least_loss_on(spot, cutoff).or(best);
        }
        Ok(best)
    }

    /// Does the head fit if all lower priorities are preempted?
    fn fits_preempting(&self, spot: Spot) -> bool {
        let demand = self.world.classes[self.class].demand(spot.pool);
        demand.is_some_and(|demand| {
            self.world.pools[spot.pool].fits_preempting(spot.slot, demand, self.rank)
        }) && self.world.may_use(self.class, spot)
    }

    /// The least loss on one node, if it is below the cutoff.
    fn least_loss_on(&self, spot: Spot, cutoff: Loss) -> Option<Victims> {
        let pool = &self.world.pools[spot.pool];
        let demand = self.world.classes[self.class].demand(spot.pool)?;
        let node = &pool.nodes[spot.slot];
        let free = |k| pool.future_free_for(spot.slot, k, self.rank);
        let need: Vec<(usize, i64)> = demand
            .iter()
            .map(|&(k, amount)| (k, amount.saturating_sub(free(k))))
            .filter(|(_, missing)| *missing > 0)
            .collect();
        let lower = node.residents.iter().take_while(|r| r.priority < self.rank.priority.0);
        let helpful = lower.filter(|r| need.iter().any(|&(k, _)| amount(&r.demand, k) > 0));
        let mut cover = Cover::new(helpful.collect(), &need, self.now, self.limit, cutoff);
        let missing: Vec<i64> = need.iter().map(|(_, missing)| *missing).collect();
        cover.search(0, Loss::NONE, &missing);
        let chosen = cover.drop_unnecessary(missing)?;
        let loss = cover.loss(&chosen);
        let units = chosen.iter().map(|&i| cover.units[i].unit).collect();
        Some(Victims { spot, units, loss })
    }
}

/// Branch and bound over the victims on one node: take the cheapest, or leave it.
struct Cover<'a> {
    units: Vec<&'a Resident>,
    /// What each unit releases of the needed kinds, row by row.
    releases: Vec<i64>,
    /// Sum of what each unit and all after it release.
    rest: Vec<i64>,
    /// Maximum of what each unit or one after it releases.
    most: Vec<i64>,
    /// Minimum run time of each unit and those after it.
    shortest_us: Vec<u64>,
    width: usize,
    now: Time,
    limit: usize,
    cutoff: Loss,
    best: Option<(Loss, Vec<usize>)>,
    chosen: Vec<usize>,
    tries: usize,
}

impl<'a> Cover<'a> {
    fn new(
        units: Vec<&'a Resident>,
        need: &[(usize, i64)],
        now: Time,
        limit: usize,
        cutoff: Loss,
    ) -> Self {
        let width = need.len();
        let releases: Vec<i64> = units
            .iter()
            .flat_map(|unit| need.iter().map(|&(k, _)| amount(&unit.demand, k)))
            .collect();
        let mut rest = vec![0i64; releases.len() + width];
        let mut most = rest.clone();
        for i in (0..releases.len()).rev() {
            rest[i] = rest[i + width].saturating_add(releases[i]);
            most[i] = most[i + width].max(releases[i]);
        }
        let mut shortest_us = vec![u64::MAX; units.len() + 1];
        for (i, unit) in units.iter().enumerate().rev() {
            let ran = Loss::NONE.plus(unit.priority, unit.started.0, now).work_us;
            shortest_us[i] = shortest_us[i + 1].min(ran);
        }
        let (best, chosen, tries) = (None, Vec::new(), TRIES);
        Self {
            units,
            releases,
            rest,
            most,
            shortest_us,
            width,
            now,
            limit,
            cutoff,
            best,
            chosen,
            tries,
        }
    }

    fn search(&mut self, i: usize, loss: Loss, missing: &[i64]) {
        if missing.iter().all(|&m| m <= 0) {
            self.cutoff = loss;
            self.best = Some((loss, self.chosen.clone()));
            return;
        }
        let rest = &self.rest[i * self.width..(i + 1) * self.width];
        let is_hopeless = i == self.units.len() || missing.iter().zip(rest).any(|(m, r)| m > r);
        if is_hopeless || self.tries == 0 || self.at_least(i, loss, missing) >= self.cutoff {
            return;
        }
        self.tries -= 1;
        self.search_with(i, loss, missing);
        self.search(i + 1, loss, missing);
    }

    /// Lower bound of the loss of any set that extends `loss` with units from `i` on.
    fn at_least(&self, i: usize, loss: Loss, missing: &[i64]) -> Loss {
        let most = &self.most[i * self.width..(i + 1) * self.width];
        let count = |(&m, &most): (&i64, &i64)| if m > 0 { (m - 1) / most.max(1) + 1 } else { 0 };
        let count = missing.iter().zip(most).map(count).max().unwrap_or(0);
        let first = &self.units[i..];
        let first = &first[..usize::try_from(count).unwrap_or(usize::MAX).min(first.len())];
        let mut least = loss;
        for unit in first {
            least = least.plus(unit.priority, unit.started.0, self.now);
        }
        // The first units have the lowest priorities; they are certain to have the least run time
        // only if no other unit is as low.
        let is_sure = match (first.first(), first.last()) {
            (Some(lowest), Some(highest)) => {
                lowest.priority > 0 || lowest.priority == highest.priority
            }
            _ => true,
        };
        if !is_sure {
            let each = self.shortest_us[i].saturating_mul(first.len() as u64);
            least.work_us = loss.work_us.saturating_add(each);
        }
        least
    }

    /// The best set found, without unnecessary victims, which remain only if not all sets were
    /// tried.
    fn drop_unnecessary(&mut self, mut missing: Vec<i64>) -> Option<Vec<usize>> {
        let (_, mut chosen) = self.best.take()?;
        let release = |i: usize| &self.releases[i * self.width..(i + 1) * self.width];
        for &i in &chosen {
            missing.iter_mut().zip(release(i)).for_each(|(m, g)| *m -= g);
        }
        for at in (0..chosen.len()).rev() {
            let releases = release(chosen[at]);
            if missing.iter().zip(releases).all(|(m, g)| m + g <= 0) {
                missing.iter_mut().zip(releases).for_each(|(m, g)| *m += g);
                chosen.remove(at);
            }
        }
        Some(chosen)
    }

    fn loss(&self, chosen: &[usize]) -> Loss {
        let units = chosen.iter().map(|&i| self.units[i]);
        units.fold(Loss::NONE, |loss, unit| loss.plus(unit.priority, unit.started.0, self.now))
    }

    /// The branch with one more victim, if it helps and can still be the best.
    fn search_with(&mut self, i: usize, loss: Loss, missing: &[i64]) {
        let unit = self.units[i];
        let more = loss.plus(unit.priority, unit.started.0, self.now);
        let releases = &self.releases[i * self.width..(i + 1) * self.width];
        let helps = missing.iter().zip(releases).any(|(&m, &g)| m > 0 && g > 0);
        if !helps || more >= self.cutoff || self.chosen.len() == self.limit {
            return;
        }
        let left: Vec<i64> = missing.iter().zip(releases).map(|(m, g)| m - g).collect();
        self.chosen.push(i);
        self.search(i + 1, more, &left);
        self.chosen.pop();
    }
}
