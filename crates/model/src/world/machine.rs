//! Machines: what runs on several clusters of one machine takes from its capacity, too.
//!
//! A machine is a node of a pool of its own: units that run containers are residents of their node
//! and of their machine. All nodes of an ordinary pool are on the same machine, so that a machine
//! without free capacity excludes the pool at once. A machine has a queue of the classes whose heads
//! would fit on a node but for the machine: freed capacity is offered to these alone.

use std::collections::HashMap;
use std::sync::Arc;

use super::World;
use super::class::MachineDemand;
use super::node::Resident;
use super::pool::Pool;
use super::queue::{Probe, Queue};
use super::round::Item;
use super::share::Side;
use super::unit::{Rank, Spot, Target};
use super::vector::{Amounts, fits};
use crate::{ClusterId, OrganizationId, Resources, Xid};

/// The pool number of machines among touched nodes.
pub(super) const MACHINES: usize = usize::MAX;

/// All machines.
#[derive(Debug, Clone)]
pub(super) struct Machines {
    pub(super) pool: Pool,
    slots: HashMap<String, usize>,
    pub(super) entries: Vec<Machine>,
}

/// A machine.
#[derive(Debug, Clone, Default)]
pub(super) struct Machine {
    /// The pools of its nodes.
    pub(super) pools: Vec<usize>,
    /// Classes whose heads would fit on a node but for the machine.
    pub(super) queue: Queue,
}

impl Default for Machines {
    fn default() -> Self {
        Self { pool: Pool::new(true, None), slots: HashMap::new(), entries: Vec::new() }
    }
}

impl World {
    /// What a request takes from a machine.
    pub(super) fn machine_candidate(&self, slot: usize, request: &Resources) -> MachineDemand {
        let request = (self.settings.container_limits)(request);
        MachineDemand { slot, demand: self.machines.pool.kinds.resolve(&request) }
    }

    /// Registers or updates a machine: what it may give, and how much of it is taken by other than
    /// units. Units that run containers take from it in addition to their node.
    pub fn set_machine(&mut self, name: &str, capacity: &Resources, taken: &Resources) {
        let slot = self.ensure_machine(name);
        let machines = &mut self.machines.pool;
        let (has, taken) = (machines.intern(capacity), machines.intern(taken));
        let is_changed = machines.set_capacity(slot, &has, &taken);
        if is_changed {
            self.rejoin(|_| true);
            self.handle_machine_changed(slot);
        }
        self.touch_machine(slot);
    }

    /// Free capacity of a machine.
    pub fn machine_free(&self, name: &str) -> Option<Resources> {
        let &slot = self.machines.slots.get(name)?;
        let pool = &self.machines.pool;
        let cells = (0..pool.kinds.len()).map(|k| (k, pool.free(slot, k).max(0)));
        Some(pool.kinds.to_resources(cells))
    }

    /// Capacity of a machine.
    pub fn machine_capacity(&self, name: &str) -> Option<Resources> {
        let &slot = self.machines.slots.get(name)?;
        let pool = &self.machines.pool;
        let cells = pool.capacity(slot).iter().copied().enumerate();
        Some(pool.kinds.to_resources(cells))
    }

    pub(super) fn ensure_machine(&mut self, name: &str) -> usize {
        if let Some(&slot) = self.machines.slots.get(name) {
            return slot;
        }
        let number = u32::try_from(self.machines.entries.len()).unwrap_or(u32::MAX);
        // Each machine is a cluster of one node: a group of its own.
        let cluster = ClusterId(Xid::new(0, [0; 5], number));
        let slot = self.machines.pool.add_node(cluster, Arc::from(name));
        self.machines.pool.nodes[slot].is_open = true;
        self.machines.slots.insert(name.to_owned(), slot);
        self.machines.entries.push(Machine::default());
        self.rejoin(|target| target == Target::Any);
        slot
    }

    /// Determines again which pools and machines classes may use.
    fn rejoin(&mut self, is_concerned: impl Fn(Target) -> bool) {
        let classes: Vec<usize> = self.class_of.values().copied().collect();
        for class in classes {
            if is_concerned(self.classes[class].key.target) {
                self.leave_pools(class);
                self.join_pools(class);
            }
        }
    }

    /// The pools that units of an organization may use if they are not pinned, best first.
    pub(super) fn usable_pools(&mut self, organization: OrganizationId) -> Vec<usize> {
        let machines = self.machines.entries.len();
        let mut pools = Vec::with_capacity(2 * (machines + 1));
        for owner in [Some(organization), None] {
            for machine in std::iter::once(None).chain((0..machines).map(Some)) {
                pools.push(self.ensure_pool(owner, machine));
            }
        }
        pools
    }

    /// Rechecks holds and reservations after a machine's capacity changed.
    fn handle_machine_changed(&mut self, slot: usize) {
        let holds = &self.machines.pool.nodes[slot].holds;
        let holders: Vec<usize> = holds.iter().map(|hold| hold.unit).collect();
        for unit in holders {
            let pools = self.machines.entries[slot].pools.clone();
            let class = self.entries[unit].class;
            if !pools.iter().any(|&pool| self.fits_empty_machine(class, pool)) {
                self.revoke_hold(unit);
            }
        }
        for pool in self.machines.entries[slot].pools.clone() {
            self.handle_restructured(pool);
            let due: Vec<usize> = self.pools[pool].due_heads.values().copied().collect();
            for class in due {
                self.recheck_reservation(class, pool);
            }
        }
        self.are_shares_stale = true;
    }

    /// The machine that a unit takes from on a node of the pool.
    pub(super) fn machine_of(&self, unit: usize, pool: usize) -> Option<usize> {
        let is_container = self.classes[self.entries[unit].class].key.is_container;
        self.pools[pool].machine.filter(|_| is_container)
    }

    /// The request of a class in the machines' columns.
    pub(super) fn machine_demand(&mut self, class: usize) -> Amounts {
        if let Some(demand) = &self.classes[class].machine_demand {
            return demand.clone();
        }
        let request = (self.settings.container_limits)(&self.classes[class].key.request);
        let demand = self.machines.pool.intern(&request);
        self.classes[class].machine_demand = Some(demand.clone());
        demand
    }

    pub(super) fn occupy_machine(&mut self, resident: &Resident, pool: usize) {
        let Some(machine) = self.machine_of(resident.unit, pool) else { return };
        let demand = self.machine_demand(self.entries[resident.unit].class);
        self.machines.pool.occupy(machine, Resident { demand, ..resident.clone() });
        self.note_growth(Side::Machine(machine));
        self.recheck_machine_promises(machine);
    }

    /// Does the machine of a pool, if any, have free capacity for a unit of this rank, now or once
    /// the stopping units have stopped?
    pub(super) fn fits_machine(
        &self,
        class: usize,
        pool: usize,
        rank: &Rank,
        future: bool,
    ) -> bool {
        self.machine_allows(class, pool, |machines, slot, demand| {
            if future {
                machines.fits_future(slot, demand, rank)
            } else {
                machines.fits_now(slot, demand, rank)
            }
        })
    }

    /// The same after preempting all lower priorities.
    pub(super) fn fits_machine_preempting(&self, class: usize, pool: usize, rank: &Rank) -> bool {
        self.machine_allows(class, pool, |machines, slot, demand| {
            machines.fits_preempting(slot, demand, rank)
        })
    }

    /// The same when the machine is empty.
    pub(super) fn fits_empty_machine(&self, class: usize, pool: usize) -> bool {
        self.machine_allows(class, pool, |machines, slot, demand| {
            fits(demand, machines.capacity(slot))
        })
    }

    fn machine_allows(
        &self,
        class: usize,
        pool: usize,
        fits: impl Fn(&Pool, usize, &[(usize, i64)]) -> bool,
    ) -> bool {
        if self.pools[pool].machine.is_none() {
            return true;
        }
        let candidate = self.classes[class].candidate(pool);
        match candidate.and_then(|candidate| candidate.machine.as_ref()) {
            None => true,
            Some(MachineDemand { demand: None, .. }) => false,
            Some(MachineDemand { slot, demand: Some(demand) }) => {
                fits(&self.machines.pool, *slot, demand)
            }
        }
    }

    /// Queues a machine whose free capacity may have grown.
    pub(super) fn touch_machine(&mut self, machine: usize) {
        self.work.touch(Spot { pool: MACHINES, slot: machine });
        self.recheck_machine_promises(machine);
    }

    pub(super) fn recheck_machine_promises(&mut self, machine: usize) {
        for hold in &self.machines.pool.nodes[machine].holds {
            self.work.items.insert((hold.rank, Item::Promised(hold.unit)));
        }
    }

    /// Lets the head of a class, which could not be placed, wait for the machines that have a node
    /// for it.
    pub(super) fn join_machine_queues(&mut self, class: usize, rank: &Rank) {
        self.leave_machine_queues(class);
        let waits: Vec<(usize, usize, Amounts)> = self.classes[class]
            .candidates
            .iter()
            .filter_map(|candidate| {
                let machine = candidate.machine.as_ref()?;
                Some((candidate.pool, machine.slot, machine.demand.clone()?))
            })
            .collect();
        let width = self.machines.pool.kinds.len();
        for (pool, machine, demand) in waits {
            if !self.fits_a_node(class, pool, rank) {
                continue;
            }
            let queue = &mut self.machines.entries[machine].queue;
            queue.widen(width);
            let leaf = queue.insert(class);
            queue.widen(width);
            queue.set(leaf, &demand, Some(*rank));
            self.classes[class].machine_leaves.push((machine, leaf));
        }
    }

    pub(super) fn leave_machine_queues(&mut self, class: usize) {
        for (machine, leaf) in std::mem::take(&mut self.classes[class].machine_leaves) {
            self.machines.entries[machine].queue.remove(leaf);
        }
    }

    /// May a node of the pool fit the class, if need be by preemption, were it not for the machine?
    fn fits_a_node(&mut self, class: usize, pool: usize, rank: &Rank) -> bool {
        let Some(group) = self.group(class, pool) else { return false };
        let Some(demand) = self.classes[class].demand(pool).cloned() else { return false };
        let inside = &mut self.pools[pool];
        if group == 0 && inside.groups[0].order.len() > 1 {
            return inside.preemption_candidates(&demand, rank.priority.0, 0).is_none();
        }
        let mut nodes = inside.groups[group].order.iter();
        nodes.any(|(_, slot)| inside.fits_preempting(slot, &demand, rank))
    }
}

/// Matches heads that a machine could serve, if need be by preemption.
pub(super) struct MachineServable<'a> {
    pub(super) world: &'a World,
    pub(super) machine: usize,
}

impl Probe for MachineServable<'_> {
    fn may_match(&self, best: &Rank, least: &[i64]) -> bool {
        let pool = &self.world.machines.pool;
        let short = |(k, &least): (usize, &i64)| {
            least > 0 && least > pool.free_preempting(self.machine, k, best)
        };
        !least.iter().enumerate().any(short)
    }

    fn matches(&self, class: usize, head: &Rank) -> bool {
        let pool = &self.world.machines.pool;
        let inside = &self.world.classes[class];
        let demand = inside.candidates.iter().find_map(|candidate| {
            let machine = candidate.machine.as_ref().filter(|m| m.slot == self.machine)?;
            machine.demand.as_ref()
        });
        demand.is_some_and(|demand| {
            if self.world.may_preempt(class) {
                pool.fits_preempting(self.machine, demand, head)
                    && self.world.is_machine_preemption_fair(class, self.machine, demand, head)
            } else {
                pool.fits_future(self.machine, demand, head)
            }
        })
    }
}
