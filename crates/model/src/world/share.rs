//! Fair shares: how much of a shared cluster or of a machine each organization uses and may keep.
//!
//! An organization's share is its largest share of any kind (dominant resource). Its fair share is
//! its weight by the weights of all organizations that use the cluster or machine or have pending
//! units for it. Units of other organizations are preempted only while their organization is above
//! its fair share; units of the own organization always may be.

use std::collections::HashMap;

use super::World;
use super::node::{Resident, amount};
use super::unit::{Rank, Spot, Target};
use crate::deployment::RESERVED_PRIORITY;
use crate::{ClusterId, OrganizationId};

/// What a share is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// A cluster: a group of a pool.
    Cluster(usize, usize),
    /// A machine.
    Machine(usize),
}

/// Usage of a cluster or a machine by organization. Stopping units and reservations that everybody
/// may preempt do not count.
#[derive(Debug, Clone, Default)]
pub(super) struct Shares {
    total: Vec<i64>,
    usage: HashMap<OrganizationId, Usage>,
    /// Number of classes with pending units by organization.
    requests: HashMap<OrganizationId, usize>,
    /// Sum of the weights of these organizations.
    request_weight: i64,
}

#[derive(Debug, Clone, Default)]
struct Usage {
    used: Vec<i64>,
    units: usize,
}

impl Shares {
    /// Adds `row` times `sign` to the capacity.
    pub(super) fn grow(&mut self, row: &[i64], sign: i64) {
        if self.total.len() < row.len() {
            self.total.resize(row.len(), 0);
        }
        for (total, amount) in self.total.iter_mut().zip(row) {
            *total = total.saturating_add(sign.saturating_mul(*amount));
        }
    }

    /// Counts a resident that came (1) or went (-1).
    pub(super) fn count(&mut self, resident: &Resident, sign: i64) {
        if resident.priority <= RESERVED_PRIORITY {
            return;
        }
        let usage = self.usage.entry(resident.organization).or_default();
        for &(column, amount) in &*resident.demand {
            if usage.used.len() <= column {
                usage.used.resize(column + 1, 0);
            }
            usage.used[column] = usage.used[column].wrapping_add(sign * amount);
        }
        if sign > 0 {
            usage.units += 1;
        } else {
            usage.units -= 1;
            if usage.units == 0 {
                self.usage.remove(&resident.organization);
            }
        }
    }

    /// Counts a class that has (1) or no longer has (-1) pending units. Returns whether its
    /// organization is new.
    fn count_request(&mut self, organization: OrganizationId, weight: i64, sign: i64) -> bool {
        let count = self.requests.entry(organization).or_default();
        if sign > 0 {
            *count += 1;
            if *count == 1 {
                self.request_weight += weight;
                return true;
            }
            return false;
        }
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.requests.remove(&organization);
            self.request_weight -= weight;
        }
        false
    }
}

impl World {
    /// Sets the weight of an organization in fair shares; 1 unless set.
    pub fn set_weight(&mut self, organization: OrganizationId, weight: i64) {
        let weight = weight.max(1);
        let change = weight - self.weight(organization);
        if change == 0 {
            return;
        }
        self.weights.insert(organization, weight);
        let shared = self.pools.iter_mut().filter_map(|pool| pool.shares.as_mut());
        for shares in shared.chain(&mut self.machines.pool.shares).flatten() {
            if shares.requests.contains_key(&organization) {
                shares.request_weight += change;
            }
        }
        self.are_shares_stale = true;
    }

    pub(super) fn weight(&self, organization: OrganizationId) -> i64 {
        self.weights.get(&organization).copied().unwrap_or(1)
    }

    /// Counts the pending units of a class as a request for the clusters and machines it may use.
    pub(super) fn count_request(&mut self, class: usize, sign: i64) {
        let key = self.classes[class].key.clone();
        let (organization, weight) = (key.organization, self.weight(key.organization));
        let mut is_new = false;
        for candidate in &self.classes[class].candidates {
            let pool = &mut self.pools[candidate.pool];
            if key.target == Target::Any
                && let Some(all) = pool.shares.as_mut().and_then(|shares| shares.first_mut())
            {
                is_new |= all.count_request(organization, weight, sign);
            }
            if let Some(machine) = &candidate.machine {
                let machines = &mut self.machines.pool;
                let group = machines.nodes[machine.slot].group;
                if let Some(shares) = &mut machines.shares {
                    is_new |= shares[group].count_request(organization, weight, sign);
                }
            }
        }
        if let Target::Cluster(cluster) = key.target {
            let requests = self.pinned_requests.entry(cluster).or_default();
            let count = requests.entry(organization).or_default();
            *count = if sign > 0 { *count + 1 } else { count.saturating_sub(1) };
            is_new |= sign > 0 && *count == 1;
            if *count == 0 {
                requests.remove(&organization);
            }
            if requests.is_empty() {
                self.pinned_requests.remove(&cluster);
            }
        }
        self.are_shares_stale |= is_new;
    }

    fn shares(&self, side: Side) -> Option<&Shares> {
        match side {
            Side::Cluster(pool, group) => self.pools[pool].shares.as_ref()?.get(group),
            Side::Machine(slot) => {
                let machines = &self.machines.pool;
                machines.shares.as_ref()?.get(machines.nodes[slot].group)
            }
        }
    }

    /// The weights of all organizations that use or request a cluster or a machine.
    pub(super) fn active_weight(&self, side: Side, cluster: Option<ClusterId>) -> i64 {
        let Some(shares) = self.shares(side) else { return 0 };
        let all = match side {
            Side::Cluster(pool, _) => self.shares(Side::Cluster(pool, 0)).unwrap_or(shares),
            Side::Machine(_) => shares,
        };
        let is_counted = |organization: &OrganizationId| all.requests.contains_key(organization);
        let users = shares.usage.keys().filter(|user| !is_counted(user));
        let pinned = cluster.and_then(|cluster| self.pinned_requests.get(&cluster));
        let pinned = pinned.into_iter().flat_map(HashMap::keys);
        let pinned = pinned.filter(|o| !is_counted(o) && !shares.usage.contains_key(o));
        all.request_weight + users.chain(pinned).map(|o| self.weight(*o)).sum::<i64>()
    }

    /// Is an organization above its fair share after `taken` of its usage is gone?
    pub(super) fn is_above(
        &self,
        side: Side,
        active_weight: i64,
        organization: OrganizationId,
        taken: &dyn Fn(usize) -> i64,
    ) -> bool {
        let Some(shares) = self.shares(side) else { return false };
        let Some(usage) = shares.usage.get(&organization) else { return false };
        let weight = i128::from(self.weight(organization));
        usage.used.iter().enumerate().any(|(k, used)| {
            let used = i128::from(used.saturating_sub(taken(k)));
            let total = shares.total.get(k).copied().unwrap_or(0);
            used * i128::from(active_weight) > weight * i128::from(total)
        })
    }

    /// Notes that an organization uses more of a cluster or a machine: it may be above its fair
    /// share now, and others below a smaller one.
    pub(super) fn note_growth(&mut self, side: Side) {
        self.are_shares_stale |= !self.share_blocked.is_empty() && self.shares(side).is_some();
    }

    /// Notes that the capacity of a shared cluster has changed.
    pub(super) fn note_shares(&mut self, pool: usize, is_changed: bool) {
        self.are_shares_stale |= is_changed && self.pools[pool].shares.is_some();
    }

    /// Queues the heads that could preempt but for fair shares, if these have changed.
    pub(super) fn recheck_shares(&mut self) -> bool {
        if !std::mem::take(&mut self.are_shares_stale) || self.share_blocked.is_empty() {
            return false;
        }
        let blocked: Vec<usize> = self.share_blocked.iter().copied().collect();
        for class in blocked {
            self.queue_attempt(class);
        }
        true
    }

    pub(super) fn set_share_blocked(&mut self, class: usize, is_blocked: bool) {
        if std::mem::replace(&mut self.classes[class].is_share_blocked, is_blocked) != is_blocked {
            if is_blocked {
                self.share_blocked.insert(class);
            } else {
                self.share_blocked.remove(&class);
            }
        }
    }

    /// Would a touched node fit a class that fair shares keep from preempting? Others are not
    /// examined here: only a search tells whether fair shares matter to them.
    pub(super) fn is_preemption_fair(&self, class: usize, spot: Spot, rank: &Rank) -> bool {
        if !self.classes[class].is_share_blocked {
            return true;
        }
        let Some(demand) = self.classes[class].demand(spot.pool) else { return false };
        let pool = &self.pools[spot.pool];
        let guard = Guard::new(self, class);
        demand.iter().all(|&(k, needed)| {
            let free = pool.future_free_for(spot.slot, k, rank);
            needed <= free || {
                let lower = pool.nodes[spot.slot].residents.iter();
                let lower = lower.take_while(|r| r.priority < rank.priority.0);
                let helping = lower.filter(|r| amount(&r.demand, k) > 0 && guard.allows(r));
                needed <= helping.map(|r| amount(&r.demand, k)).fold(free, i64::saturating_add)
            }
        })
    }

    /// The same for a machine.
    pub(super) fn is_machine_preemption_fair(
        &self,
        class: usize,
        machine: usize,
        demand: &[(usize, i64)],
        rank: &Rank,
    ) -> bool {
        if !self.classes[class].is_share_blocked {
            return true;
        }
        let pool = &self.machines.pool;
        let guard = Guard::new(self, class);
        demand.iter().all(|&(k, needed)| {
            let free = pool.future_free_for(machine, k, rank);
            let lower = pool.nodes[machine].residents.iter();
            let lower = lower.take_while(|r| r.priority < rank.priority.0);
            let helping = lower.filter(|r| amount(&r.demand, k) > 0 && guard.allows(r));
            needed <= helping.map(|r| amount(&r.demand, k)).fold(free, i64::saturating_add)
        })
    }
}

/// Decides which units an organization may preempt.
pub(super) struct Guard<'a> {
    world: &'a World,
    organization: OrganizationId,
    /// Active weights, as they do not change during a search.
    weights: std::cell::RefCell<Vec<(Side, i64)>>,
    /// Was any unit protected?
    pub(super) has_protected: std::cell::Cell<bool>,
}

impl<'a> Guard<'a> {
    pub(super) fn new(world: &'a World, class: usize) -> Self {
        let organization = world.classes[class].key.organization;
        Self {
            world,
            organization,
            weights: std::cell::RefCell::default(),
            has_protected: std::cell::Cell::new(false),
        }
    }

    /// May the unit be preempted whatever its organization uses?
    pub(super) fn is_unprotected(&self, victim: &Resident) -> bool {
        victim.organization == self.organization || victim.priority <= RESERVED_PRIORITY
    }

    /// May the unit be preempted, if no other is?
    pub(super) fn allows(&self, victim: &Resident) -> bool {
        self.allows_after(victim, &[])
    }

    /// May the unit be preempted in addition to others?
    pub(super) fn allows_after(&self, victim: &Resident, others: &[&Resident]) -> bool {
        let is_allowed = self.is_unprotected(victim) || self.is_above(victim, others);
        if !is_allowed {
            self.has_protected.set(true);
        }
        is_allowed
    }

    /// Is the unit's organization above its fair share of its cluster or of its machine?
    fn is_above(&self, victim: &Resident, others: &[&Resident]) -> bool {
        let world = self.world;
        let super::State::Placed { spot: Some(spot), .. } = world.entries[victim.unit].state else {
            return false;
        };
        let node = &world.pools[spot.pool].nodes[spot.slot];
        let sides = [
            Some((Side::Cluster(spot.pool, node.group), Some(node.cluster))),
            world.machine_of(victim.unit, spot.pool).map(|m| (Side::Machine(m), None)),
        ];
        let own = || others.iter().filter(|other| other.organization == victim.organization);
        sides.into_iter().flatten().any(|(side, cluster)| {
            let taken = |k: usize| -> i64 {
                own().map(|other| world.usage_of(other.unit, side, k)).fold(0, i64::saturating_add)
            };
            world.is_above(side, self.active_weight(side, cluster), victim.organization, &taken)
        })
    }

    fn active_weight(&self, side: Side, cluster: Option<ClusterId>) -> i64 {
        let mut weights = self.weights.borrow_mut();
        if let Some((_, weight)) = weights.iter().find(|(other, _)| *other == side) {
            return *weight;
        }
        let weight = self.world.active_weight(side, cluster);
        weights.push((side, weight));
        weight
    }
}

impl World {
    /// How much of a column a placed unit uses of a cluster or a machine.
    fn usage_of(&self, unit: usize, side: Side, column: usize) -> i64 {
        let entry = &self.entries[unit];
        let super::State::Placed { spot: Some(spot), .. } = entry.state else { return 0 };
        let class = &self.classes[entry.class];
        match side {
            Side::Cluster(pool, group) => {
                let is_there =
                    pool == spot.pool && self.pools[pool].nodes[spot.slot].group == group;
                let demand = class.resident_demands.iter().find(|(other, _)| *other == pool);
                demand.filter(|_| is_there).map_or(0, |(_, demand)| amount(demand, column))
            }
            Side::Machine(machine) => {
                let is_there = self.machine_of(unit, spot.pool) == Some(machine);
                let demand = class.machine_demand.as_ref().filter(|_| is_there);
                demand.map_or(0, |demand| amount(demand, column))
            }
        }
    }
}
