//! Who yields: the set with the least loss, and nobody in vain.

use super::World;
use std::cmp::Reverse;

use super::decision::Wait;
use super::node::{Resident, amount};
use super::unit::{Rank, Spot};
use crate::Time;

/// What is lost if some units yield. Fields are compared top to bottom and the lowest wins, so the
/// order of the fields *is* the policy. Losing more units is never a smaller loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Loss {
    /// The sum of their priorities, as far as they are above zero.
    points: i64,
    /// The highest of their priorities, as far as it is below zero.
    highest: i64,
    /// For how long they ran, together.
    work_us: u64,
    /// How many they are.
    units: usize,
}

impl Loss {
    pub(super) const NONE: Loss = Loss { points: 0, highest: i64::MIN, work_us: 0, units: 0 };
    const ALL: Loss =
        Loss { points: i64::MAX, highest: i64::MAX, work_us: u64::MAX, units: usize::MAX };

    /// The loss with one more unit.
    pub(super) fn and(self, priority: i64, started: Time, now: Time) -> Loss {
        let ran = now.0.saturating_sub(started.0).max(0).unsigned_abs();
        Loss {
            points: self.points.saturating_add(priority.max(0)),
            highest: self.highest.max(priority.min(0)),
            work_us: self.work_us.saturating_add(ran),
            units: self.units + 1,
        }
    }
}

/// Who yields, and where.
#[derive(Debug, Clone)]
pub(super) struct Victims {
    pub(super) spot: Spot,
    pub(super) units: Vec<usize>,
    pub(super) loss: Loss,
}

impl Victims {
    /// Nobody has to yield.
    pub(super) fn none(spot: Spot) -> Self {
        Self { spot, units: Vec::new(), loss: Loss::NONE }
    }
}

/// How many sets are tried on one node before the best so far is good enough.
const TRIES: usize = 2_000;

impl World {
    /// Those whose yielding makes room for a head with the least loss, or why nobody can.
    pub(super) fn seek_victims(
        &mut self,
        class: usize,
        rank: &Rank,
        now: Time,
    ) -> Result<Victims, Wait> {
        if self.never_fits(class) {
            return Err(Wait::Never);
        }
        let limit = self.preemptions_left(self.classes[class].key.organization);
        if let Some(victims) = self.least_loss(class, rank, now, limit) {
            return Ok(victims);
        }
        if limit < usize::MAX && self.least_loss(class, rank, now, usize::MAX).is_some() {
            return Err(Wait::Budget);
        }
        Err(Wait::Short)
    }

    /// The least loss over all pools that a class may use.
    fn least_loss(
        &mut self,
        class: usize,
        rank: &Rank,
        now: Time,
        limit: usize,
    ) -> Option<Victims> {
        let seats = self.classes[class].seats.iter().filter(|seat| seat.want.is_some());
        let pools: Vec<usize> = seats.map(|seat| seat.pool).collect();
        let mut best = None;
        for pool in pools {
            let Some(group) = self.group(class, pool) else { continue };
            let search = Search { world: self, class, rank, now, limit };
            let nodes = self.pools[pool].groups[group].yielding.iter();
            // Those of one cluster are walked whole.
            let misses = if group == 0 { MISSES } else { usize::MAX };
            best = match search.each(pool, group, nodes, best.clone(), misses) {
                Ok(found) => found,
                Err(TooMany) => self.least_loss_among_few(class, rank, now, limit, pool, best),
            };
        }
        best
    }

    /// The same when most nodes turn out not to do: finds those that do first, if they are few.
    fn least_loss_among_few(
        &mut self,
        class: usize,
        rank: &Rank,
        now: Time,
        limit: usize,
        pool: usize,
        best: Option<Victims>,
    ) -> Option<Victims> {
        let want = self.classes[class].want(pool)?.clone();
        let few = self.pools[pool].reachable(&want, rank.priority.0, FEW);
        let inside = &self.pools[pool];
        let search = Search { world: self, class, rank, now, limit };
        let Some(few) = few else {
            return search
                .each(pool, 0, inside.groups[0].yielding.iter(), best, usize::MAX)
                .ok()?;
        };
        let mut few: Vec<Yielding> = few
            .into_iter()
            .filter_map(|position| {
                let node = &inside.nodes[inside.groups[0].order.get(position)?];
                node.cheapest().map(|(priority, started)| (priority, started, position))
            })
            .collect();
        few.sort_unstable();
        search.each(pool, 0, few.iter(), best, usize::MAX).ok()?
    }
}

/// A node in the order of the least that it could lose.
type Yielding = (i64, Reverse<Time>, usize);

/// The walk met too many nodes that would not do.
struct TooMany;

/// How many nodes that do not do a walk may meet before it asks for those that do.
const MISSES: usize = if cfg!(test) { 0 } else { 128 };
/// How many nodes that do are few.
const FEW: usize = if cfg!(test) { 3 } else { 256 };

/// The search for victims of one head.
struct Search<'a> {
    world: &'a World,
    class: usize,
    rank: &'a Rank,
    now: Time,
    limit: usize,
}

impl Search<'_> {
    /// Walks nodes in the order of the least that each could lose, and stops when none that is left
    /// can be better than the best so far.
    fn each<'y>(
        &self,
        pool: usize,
        group: usize,
        nodes: impl Iterator<Item = &'y Yielding>,
        mut best: Option<Victims>,
        mut misses: usize,
    ) -> Result<Option<Victims>, TooMany> {
        let order = &self.world.pools[pool].groups[group].order;
        let mut left = self.world.settings.loss_candidates;
        for &(priority, started, position) in nodes {
            let bound = Loss::NONE.and(priority, started.0, self.now);
            let cutoff = best.as_ref().map_or(Loss::ALL, |best| best.loss);
            if priority >= self.rank.priority.0 || bound >= cutoff || left == 0 {
                break;
            }
            let Some(here) = order.get(position).map(|slot| Spot { pool, slot }) else { continue };
            if !self.would_do(here) {
                misses = misses.checked_sub(1).ok_or(TooMany)?;
                continue;
            }
            left -= 1;
            best = self.on(here, cutoff).or(best);
        }
        Ok(best)
    }

    /// Would it fit if all lower ones yielded?
    fn would_do(&self, spot: Spot) -> bool {
        let want = self.world.classes[self.class].want(spot.pool);
        want.is_some_and(|w| self.world.pools[spot.pool].fits_after(spot.slot, w, self.rank))
            && self.world.may_use(self.class, spot)
    }

    /// The least loss on one node, if it is below the cutoff.
    fn on(&self, spot: Spot, cutoff: Loss) -> Option<Victims> {
        let pool = &self.world.pools[spot.pool];
        let want = self.world.classes[self.class].want(spot.pool)?;
        let node = &pool.nodes[spot.slot];
        let room = |k| pool.soon(spot.slot, k).saturating_sub(node.held_for(self.rank, k));
        let need: Vec<(usize, i64)> = want
            .iter()
            .map(|&(k, amount)| (k, amount.saturating_sub(room(k))))
            .filter(|(_, missing)| *missing > 0)
            .collect();
        let lower = node.residents.iter().take_while(|r| r.priority < self.rank.priority.0);
        let helpful = lower.filter(|r| need.iter().any(|&(k, _)| amount(&r.want, k) > 0));
        let mut cover = Cover::new(helpful.collect(), &need, self.now, self.limit, cutoff);
        let missing: Vec<i64> = need.iter().map(|(_, missing)| *missing).collect();
        cover.search(0, Loss::NONE, &missing);
        let chosen = cover.spare(missing)?;
        let loss = cover.loss(&chosen);
        let units = chosen.iter().map(|&i| cover.units[i].unit).collect();
        Some(Victims { spot, units, loss })
    }
}

/// Branch and bound over who could yield on one node: take the one that hurts least, or leave it.
struct Cover<'a> {
    units: Vec<&'a Resident>,
    /// What each gives of what is needed, row by row.
    gives: Vec<i64>,
    /// What each and all after it give.
    rest: Vec<i64>,
    /// The most that each or one after it gives.
    most: Vec<i64>,
    /// The shortest that each or one after it ran.
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
        let gives: Vec<i64> = units
            .iter()
            .flat_map(|unit| need.iter().map(|&(k, _)| amount(&unit.want, k)))
            .collect();
        let mut rest = vec![0i64; gives.len() + width];
        let mut most = rest.clone();
        for i in (0..gives.len()).rev() {
            rest[i] = rest[i + width].saturating_add(gives[i]);
            most[i] = most[i + width].max(gives[i]);
        }
        let mut shortest_us = vec![u64::MAX; units.len() + 1];
        for (i, unit) in units.iter().enumerate().rev() {
            let ran = Loss::NONE.and(unit.priority, unit.started.0, now).work_us;
            shortest_us[i] = shortest_us[i + 1].min(ran);
        }
        let (best, chosen, tries) = (None, Vec::new(), TRIES);
        Self {
            units,
            gives,
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
        self.take(i, loss, missing);
        self.search(i + 1, loss, missing);
    }

    /// No set that has lost `loss` and takes the rest from `i` on can lose less than this.
    fn at_least(&self, i: usize, loss: Loss, missing: &[i64]) -> Loss {
        let most = &self.most[i * self.width..(i + 1) * self.width];
        let count = |(&m, &most): (&i64, &i64)| if m > 0 { (m - 1) / most.max(1) + 1 } else { 0 };
        let count = missing.iter().zip(most).map(count).max().unwrap_or(0);
        let first = &self.units[i..];
        let first = &first[..usize::try_from(count).unwrap_or(usize::MAX).min(first.len())];
        let mut least = loss;
        for unit in first {
            least = least.and(unit.priority, unit.started.0, self.now);
        }
        // The first have the lowest priorities; whether they also ran the shortest is sure only if
        // no others could be as low.
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

    /// The best set that was found, without those who are not needed after all. There are such only
    /// if not all sets could be tried.
    fn spare(&mut self, mut missing: Vec<i64>) -> Option<Vec<usize>> {
        let (_, mut chosen) = self.best.take()?;
        let give = |i: usize| &self.gives[i * self.width..(i + 1) * self.width];
        for &i in &chosen {
            missing.iter_mut().zip(give(i)).for_each(|(m, g)| *m -= g);
        }
        for at in (0..chosen.len()).rev() {
            let gives = give(chosen[at]);
            if missing.iter().zip(gives).all(|(m, g)| m + g <= 0) {
                missing.iter_mut().zip(gives).for_each(|(m, g)| *m += g);
                chosen.remove(at);
            }
        }
        Some(chosen)
    }

    fn loss(&self, chosen: &[usize]) -> Loss {
        let units = chosen.iter().map(|&i| self.units[i]);
        units.fold(Loss::NONE, |loss, unit| loss.and(unit.priority, unit.started.0, self.now))
    }

    /// The branch in which one more yields, if it helps and can still be the best.
    fn take(&mut self, i: usize, loss: Loss, missing: &[i64]) {
        let unit = self.units[i];
        let more = loss.and(unit.priority, unit.started.0, self.now);
        let gives = &self.gives[i * self.width..(i + 1) * self.width];
        let helps = missing.iter().zip(gives).any(|(&m, &g)| m > 0 && g > 0);
        if !helps || more >= self.cutoff || self.chosen.len() == self.limit {
            return;
        }
        let left: Vec<i64> = missing.iter().zip(gives).map(|(m, g)| m - g).collect();
        self.chosen.push(i);
        self.search(i + 1, more, &left);
        self.chosen.pop();
    }
}
