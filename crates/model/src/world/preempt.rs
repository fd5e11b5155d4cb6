//! Chooses preemption victims: the set with the least loss, without unnecessary victims.

use std::cmp::Reverse;

use super::World;
use super::decision::PendingReason;
use super::node::{Resident, amount};
use super::share::Guard;
use super::unit::{Rank, Spot};
use super::vector::Amounts;
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
        let terms = Terms { limit, is_fair: true };
        let (victims, mut has_protected) = self.least_loss(class, rank, now, terms);
        if let Some(victims) = victims {
            return Ok(victims);
        }
        if limit < usize::MAX {
            let terms = Terms { limit: usize::MAX, is_fair: true };
            let (victims, met) = self.least_loss(class, rank, now, terms);
            if victims.is_some() {
                return Err(PendingReason::Budget);
            }
            has_protected |= met;
        }
        let terms = Terms { limit: usize::MAX, is_fair: false };
        if has_protected && self.least_loss(class, rank, now, terms).0.is_some() {
            return Err(PendingReason::FairShare);
        }
        Err(PendingReason::Short)
    }

    /// The least loss over all pools that a class may use, and whether fair shares protected any
    /// unit.
    fn least_loss(
        &mut self,
        class: usize,
        rank: &Rank,
        now: Time,
        terms: Terms,
    ) -> (Option<Victims>, bool) {
        let candidates = self.classes[class].candidates.iter().filter(|c| c.demand.is_some());
        let pools: Vec<usize> = candidates.map(|c| c.pool).collect();
        let (mut best, mut has_protected) = (None, false);
        for pool in pools {
            let Some(group) = self.group(class, pool) else { continue };
            if !self.fits_machine_preempting(class, pool, rank) {
                continue;
            }
            let search = Search::new(self, class, rank, now, terms);
            best = search.machine_victims(pool, best);
            let nodes = self.pools[pool].groups[group].by_loss.iter();
            // The nodes of one cluster are all walked.
            let misses = if group == 0 { MISSES } else { usize::MAX };
            let found = search.walk(pool, group, nodes, best.clone(), misses);
            has_protected |= search.guard.has_protected.get();
            best = match found {
                Ok(found) => found,
                Err(TooManyMisses) => {
                    let (few, met) = self.least_loss_among_few(class, rank, now, terms, pool, best);
                    has_protected |= met;
                    few
                }
            };
        }
        (best, has_protected)
    }

    /// The same if most nodes do not fit: finds the fitting nodes first, if they are few.
    fn least_loss_among_few(
        &mut self,
        class: usize,
        rank: &Rank,
        now: Time,
        terms: Terms,
        pool: usize,
        best: Option<Victims>,
    ) -> (Option<Victims>, bool) {
        let Some(demand) = self.classes[class].demand(pool).cloned() else { return (best, false) };
        let few = self.pools[pool].preemption_candidates(&demand, rank.priority.0, FEW);
        let pool_entry = &self.pools[pool];
        let search = Search::new(self, class, rank, now, terms);
        let all = usize::MAX;
        let Some(few) = few else {
            let nodes = pool_entry.groups[0].by_loss.iter();
            let found = search.walk(pool, 0, nodes, best, all).ok().flatten();
            return (found, search.guard.has_protected.get());
        };
        let mut few: Vec<LossKey> = few
            .into_iter()
            .filter_map(|position| {
                let node = &pool_entry.nodes[pool_entry.groups[0].order.get(position)?];
                node.cheapest().map(|(priority, started)| (priority, started, position))
            })
            .collect();
        few.sort_unstable();
        let found = search.walk(pool, 0, few.iter(), best, all).ok().flatten();
        (found, search.guard.has_protected.get())
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
    terms: Terms,
    guard: Guard<'a>,
}

/// What a search may propose.
#[derive(Debug, Clone, Copy)]
struct Terms {
    /// Maximum number of victims.
    limit: usize,
    /// Are organizations within their fair share spared?
    is_fair: bool,
}

impl<'a> Search<'a> {
    fn new(world: &'a World, class: usize, rank: &'a Rank, now: Time, terms: Terms) -> Self {
        Self { world, class, rank, now, terms, guard: Guard::new(world, class) }
    }

    /// The least loss if only the machine is short: on a node with free capacity.
    fn machine_victims(&self, pool: usize, best: Option<Victims>) -> Option<Victims> {
        let (world, class) = (self.world, self.class);
        if world.fits_machine(class, pool, self.rank, true) {
            return best;
        }
        let Some(candidate) = world.classes[class].candidate(pool) else { return best };
        let Some(demand) = &candidate.demand else { return best };
        let inside = &world.pools[pool];
        let fits = |spot: &Spot| {
            inside.fits_future(spot.slot, demand, self.rank) && world.may_use(class, *spot)
        };
        let held = inside.holds.range::<Rank, _>(self.rank..);
        let held = held.map(|(_, &(_, slot))| Spot { pool, slot });
        let spot = world.first_future_node(class, candidate).or_else(|| held.clone().find(fits));
        let cutoff = best.as_ref().map_or(Loss::ALL, |best| best.loss);
        spot.and_then(|spot| self.least_loss_on(spot, cutoff)).or(best)
    }

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
            best = self.least_loss_on(spot, cutoff).or(best);
            // Where fair shares protect too many, another node may still do.
            if best.is_some() || !self.guard.has_protected.get() {
                left -= 1;
            }
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
        let need = self.need(spot)?;
        let units = self.helpful(spot, &need);
        let releases = units.iter().flat_map(|unit| need.released(unit)).collect();
        let units = units.iter().map(|unit| unit.resident).collect();
        let guard = self.terms.is_fair.then_some(&self.guard);
        let mut cover = Cover::new(units, releases, need.missing.len(), self, guard, cutoff);
        let missing = need.missing.clone();
        cover.search(0, Loss::NONE, &missing);
        let chosen = cover.drop_unnecessary(missing)?;
        let loss = cover.loss(&chosen);
        let units = chosen.iter().map(|&i| cover.units[i].unit).collect();
        Some(Victims { spot, units, loss })
    }
}

impl<'a> Search<'a> {
    /// What a node and its machine lack.
    fn need(&self, spot: Spot) -> Option<Need> {
        let candidate = self.world.classes[self.class].candidate(spot.pool)?;
        let mut need = Need::default();
        let pool = &self.world.pools[spot.pool];
        for &(k, amount) in &**candidate.demand.as_ref()? {
            let missing = amount.saturating_sub(pool.future_free_for(spot.slot, k, self.rank));
            if missing > 0 {
                need.node.push(k);
                need.missing.push(missing);
            }
        }
        if let Some(machine) = &candidate.machine {
            need.machine_slot = Some(machine.slot);
            let pool = &self.world.machines.pool;
            for &(k, amount) in &**machine.demand.as_ref()? {
                let free = pool.future_free_for(machine.slot, k, self.rank);
                let missing = amount.saturating_sub(free);
                if missing > 0 {
                    need.machine.push(k);
                    need.missing.push(missing);
                }
            }
        }
        Some(need)
    }

    /// The units whose end would help, cheapest first: on the node, and elsewhere on its machine.
    fn helpful(&self, spot: Spot, need: &Need) -> Vec<Helper<'a>> {
        let lower = |residents: &'a [Resident]| {
            residents.iter().take_while(|r| r.priority < self.rank.priority.0)
        };
        let world = self.world;
        let node = &world.pools[spot.pool].nodes[spot.slot];
        let is_short = !need.machine.is_empty();
        let mut units: Vec<Helper> = lower(&node.residents)
            .map(|resident| {
                let class = || &world.classes[world.entries[resident.unit].class];
                let class = is_short.then(class).filter(|class| class.key.is_container);
                let on_machine = class.and_then(|class| class.machine_demand.as_ref());
                Helper { resident, on_node: Some(&resident.demand), on_machine }
            })
            .filter(|unit| need.released(unit).any(|n| n > 0))
            .collect();
        if let Some(machine) = need.machine_slot.filter(|_| is_short) {
            let is_elsewhere = |r: &&Resident| world.spot_of(r.unit) != Some(spot);
            let elsewhere = lower(&world.machines.pool.nodes[machine].residents);
            let elsewhere = elsewhere.filter(is_elsewhere).map(|resident| Helper {
                resident,
                on_node: None,
                on_machine: Some(&resident.demand),
            });
            units.extend(elsewhere.filter(|unit| need.released(unit).any(|n| n > 0)));
            units.sort_by_key(|unit| {
                (unit.resident.priority, unit.resident.started, unit.resident.id)
            });
        }
        units.retain(|unit| !self.terms.is_fair || self.guard.allows(unit.resident));
        units
    }
}

impl World {
    fn spot_of(&self, unit: usize) -> Option<Spot> {
        match self.entries[unit].state {
            super::State::Placed { spot, .. } | super::State::Stopping { spot, .. } => spot,
            super::State::Pending { .. } => None,
        }
    }
}

/// A unit whose end would help, with what it has of the node and of the machine.
#[derive(Clone, Copy)]
struct Helper<'a> {
    resident: &'a Resident,
    on_node: Option<&'a Amounts>,
    on_machine: Option<&'a Amounts>,
}

/// What a node and its machine lack: columns of each, and the missing amounts of all.
#[derive(Debug, Default)]
struct Need {
    node: Vec<usize>,
    machine: Vec<usize>,
    missing: Vec<i64>,
    machine_slot: Option<usize>,
}

impl Need {
    /// How much of each missing amount the end of a unit releases.
    fn released<'n>(&'n self, unit: &Helper<'n>) -> impl Iterator<Item = i64> + use<'n> {
        let of = |demand: Option<&'n Amounts>, k: usize| demand.map_or(0, |d| amount(d, k));
        let (on_node, on_machine) = (unit.on_node, unit.on_machine);
        let node = self.node.iter().map(move |&k| of(on_node, k));
        node.chain(self.machine.iter().map(move |&k| of(on_machine, k)))
    }
}

/// Branch and bound over the victims on one node: take the cheapest, or leave it.
struct Cover<'a> {
    units: Vec<&'a Resident>,
    /// Spares organizations within their fair share.
    guard: Option<&'a Guard<'a>>,
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
        releases: Vec<i64>,
        width: usize,
        search: &'a Search<'a>,
        guard: Option<&'a Guard<'a>>,
        cutoff: Loss,
    ) -> Self {
        let (now, limit) = (search.now, search.terms.limit);
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
            guard,
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

    /// Is the unit's organization above its fair share without those chosen so far?
    fn may_take(&self, unit: &Resident) -> bool {
        self.guard.is_none_or(|guard| {
            if guard.is_unprotected(unit) {
                return true;
            }
            let chosen: Vec<&Resident> = self.chosen.iter().map(|&i| self.units[i]).collect();
            guard.allows_after(unit, &chosen)
        })
    }

    /// The branch with one more victim, if it helps and can still be the best.
    fn search_with(&mut self, i: usize, loss: Loss, missing: &[i64]) {
        let unit = self.units[i];
        let more = loss.plus(unit.priority, unit.started.0, self.now);
        let releases = &self.releases[i * self.width..(i + 1) * self.width];
        let helps = missing.iter().zip(releases).any(|(&m, &g)| m > 0 && g > 0);
        if !helps || more >= self.cutoff || self.chosen.len() == self.limit || !self.may_take(unit)
        {
            return;
        }
        let left: Vec<i64> = missing.iter().zip(releases).map(|(m, g)| m - g).collect();
        self.chosen.push(i);
        self.search(i + 1, more, &left);
        self.chosen.pop();
    }
}
