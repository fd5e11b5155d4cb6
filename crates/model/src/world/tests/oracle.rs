//! A brute-force scheduler that shares no code with the indexes.

use super::*;

/// A node without indexes.
#[derive(Debug, Clone)]
pub(super) struct PlainNode {
    pub(super) place: Place,
    pub(super) owner: Option<OrganizationId>,
    pub(super) is_on_machine: bool,
    pub(super) is_open: bool,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) capacity: Resources,
    pub(super) taken: Resources,
}

/// All facts, as plain lists.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) nodes: Vec<PlainNode>,
    pub(super) units: Vec<(Unit, State)>,
    pub(super) reservations: Vec<Reservation>,
    /// Capacity of the only machine.
    pub(super) machine: Resources,
    weights: HashMap<OrganizationId, i64>,
}

pub(super) const KINDS: [&str; 3] = ["cpu", "gpu", "ram"];

impl Facts {
    pub(super) fn new(clusters: &[Cluster], machine: &Resources, world: &World) -> Self {
        let nodes = clusters.iter().flat_map(|cluster| {
            cluster.nodes.iter().map(|node| {
                let mut labels = cluster.labels.clone();
                labels.extend(node.labels.clone());
                PlainNode {
                    place: Place { cluster: cluster.id, node: node.name.as_str().into() },
                    owner: cluster.owner,
                    is_on_machine: cluster.machine.is_some(),
                    is_open: cluster.is_ready,
                    labels,
                    capacity: node.capacity.clone(),
                    taken: node.manually_reserved.clone(),
                }
            })
        });
        let (units, reservations) = (units_of(world), world.reservations());
        let (nodes, machine) = (nodes.collect(), machine.clone());
        Self { nodes, units, reservations, machine, weights: world.weights.clone() }
    }

    pub(super) fn unit(&self, id: UnitId) -> &(Unit, State) {
        self.units.iter().find(|(unit, _)| unit.id == id).expect("known")
    }

    pub(super) fn node(&self, place: &Place) -> &PlainNode {
        self.nodes.iter().find(|node| node.place == *place).expect("known")
    }

    /// Capacity used on a node by matching units, in thousandths.
    fn used(&self, place: &Place, kind: &str, matching: impl Fn(&Unit, bool) -> bool) -> i64 {
        let on = self.units.iter().filter(|(unit, state)| match state {
            State::Placed { place: there, .. } => there == place && matching(unit, false),
            State::Stopping { place: there, .. } => there == place && matching(unit, true),
            State::Pending { .. } => false,
        });
        on.map(|(unit, _)| unit.request.get(kind).milli()).sum()
    }

    /// Free capacity of the machine, now and in the future, less reservations of better ranks.
    pub(super) fn machine_free(&self, kind: &str, rank: Option<&Rank>) -> (i64, i64) {
        let nodes = || self.nodes.iter().filter(|node| node.is_on_machine);
        let used: i64 = nodes().map(|n| self.used(&n.place, kind, |u, _| u.is_container)).sum();
        let stopping = |u: &Unit, stops: bool| u.is_container && stops;
        let stopping: i64 = nodes().map(|n| self.used(&n.place, kind, stopping)).sum();
        let ahead = self.reservations.iter().filter(|r| self.node(&r.place).is_on_machine);
        let ahead = ahead.map(|r| &self.unit(r.unit).0);
        let ahead = ahead.filter(|unit| unit.is_container && rank.is_none_or(|r| unit.rank() < *r));
        let held: i64 = ahead.map(|unit| unit.request.get(kind).milli()).sum();
        let free = self.machine.get(kind).milli() - used;
        let future = free + stopping - held;
        (free.min(future), future)
    }

    fn fits_machine(&self, unit: &Unit, node: &PlainNode, future: bool) -> bool {
        let free = |kind: &str| {
            let (now, later) = self.machine_free(kind, Some(&unit.rank()));
            if future { later } else { now }
        };
        !unit.is_container || !node.is_on_machine || Self::fits(unit, free)
    }

    /// Would the unit fit on the node and its machine, were they empty?
    pub(super) fn fits_empty(&self, unit: &Unit, node: &PlainNode) -> bool {
        let takes = unit.is_container && node.is_on_machine;
        unit.request.fits(&node.capacity) && (!takes || unit.request.fits(&self.machine))
    }

    pub(super) fn free(&self, node: &PlainNode, kind: &str) -> i64 {
        let has = node.capacity.get(kind).milli() - node.taken.get(kind).milli();
        has - self.used(&node.place, kind, |_, _| true)
    }

    /// Future free capacity, less reservations of better ranks.
    pub(super) fn future_free(&self, node: &PlainNode, kind: &str, rank: &Rank) -> i64 {
        let stopping = self.used(&node.place, kind, |_, stops| stops);
        let ahead = self.reservations.iter().filter(|r| r.place == node.place);
        let ahead = ahead.map(|r| &self.unit(r.unit).0).filter(|unit| unit.rank() < *rank);
        let reserved: i64 = ahead.map(|unit| unit.request.get(kind).milli()).sum();
        self.free(node, kind) + stopping - reserved
    }

    pub(super) fn may_use(&self, unit: &Unit, node: &PlainNode) -> bool {
        let usable = node.owner.is_none() || node.owner == Some(unit.organization);
        let target = match unit.target {
            Target::Any => true,
            Target::Cluster(cluster) => cluster == node.place.cluster,
        };
        let labels = unit.selector.iter().all(|(k, v)| node.labels.get(k) == Some(v));
        let apart = !unit.is_spread || !self.has_sibling(unit, node);
        usable && target && labels && apart && node.is_open
    }

    fn has_sibling(&self, unit: &Unit, node: &PlainNode) -> bool {
        self.units.iter().any(|(other, state)| {
            let (State::Placed { place, .. } | State::Stopping { place, .. }) = state else {
                return false;
            };
            other.id.owner == unit.id.owner && *place == node.place && other.is_spread
        })
    }

    fn fits(unit: &Unit, free: impl Fn(&str) -> i64) -> bool {
        unit.request.iter().all(|(kind, demand)| demand.is_zero() || demand.milli() <= free(kind))
    }

    pub(super) fn fits_now(&self, unit: &Unit, node: &PlainNode) -> bool {
        let free =
            |kind: &str| self.future_free(node, kind, &unit.rank()).min(self.free(node, kind));
        self.may_use(unit, node) && Self::fits(unit, free) && self.fits_machine(unit, node, false)
    }

    pub(super) fn fits_future(&self, unit: &Unit, node: &PlainNode) -> bool {
        self.may_use(unit, node)
            && Self::fits(unit, |kind| self.future_free(node, kind, &unit.rank()))
            && self.fits_machine(unit, node, true)
    }

    /// May these units be preempted, one after the other?
    pub(super) fn is_fair(&self, by: &Unit, victims: &[&Unit]) -> bool {
        victims.iter().enumerate().all(|(i, victim)| {
            victim.organization == by.organization || self.is_above(victim, &victims[..i])
        })
    }

    /// Is the organization of a placed unit above its fair share without those that are gone?
    fn is_above(&self, victim: &Unit, gone: &[&Unit]) -> bool {
        let place = |unit: &Unit| match &self.unit(unit.id).1 {
            State::Placed { place, .. } => self.nodes.iter().find(|n| n.place == *place),
            _ => None,
        };
        let Some(at) = place(victim) else { return false };
        let on_cluster =
            |unit: &Unit| place(unit).is_some_and(|node| node.place.cluster == at.place.cluster);
        let wants_cluster = |unit: &Unit| match unit.target {
            Target::Any => true,
            Target::Cluster(cluster) => cluster == at.place.cluster,
        };
        let total = |kind: &str| {
            let nodes = self.nodes.iter().filter(|n| n.place.cluster == at.place.cluster);
            nodes.map(|node| node.capacity.get(kind).milli()).sum()
        };
        let exceeds_cluster =
            at.owner.is_none() && self.exceeds(victim, gone, &on_cluster, &wants_cluster, &total);
        let on_machine =
            |unit: &Unit| unit.is_container && place(unit).is_some_and(|node| node.is_on_machine);
        let wants_machine = |unit: &Unit| {
            unit.is_container
                && match unit.target {
                    Target::Any => true,
                    Target::Cluster(cluster) => self.nodes.iter().any(|node| {
                        let is_usable = node.owner.is_none_or(|owner| owner == unit.organization);
                        node.place.cluster == cluster && node.is_on_machine && is_usable
                    }),
                }
        };
        let total = |kind: &str| self.machine.get(kind).milli();
        exceeds_cluster
            || on_machine(victim) && self.exceeds(victim, gone, &on_machine, &wants_machine, &total)
    }

    fn exceeds(
        &self,
        victim: &Unit,
        gone: &[&Unit],
        uses: &dyn Fn(&Unit) -> bool,
        wants: &dyn Fn(&Unit) -> bool,
        total: &dyn Fn(&str) -> i64,
    ) -> bool {
        let is_active = |(unit, state): &&(Unit, State)| match state {
            State::Placed { .. } => uses(unit),
            State::Pending { hold, .. } => {
                wants(unit) && !hold.is_some_and(|hold| hold.is_promised)
            }
            State::Stopping { .. } => false,
        };
        let active = self.units.iter().filter(is_active);
        let active: HashSet<OrganizationId> = active.map(|(unit, _)| unit.organization).collect();
        let weight = |o: &OrganizationId| self.weights.get(o).copied().unwrap_or(1);
        let sum: i64 = active.iter().map(weight).sum();
        KINDS.iter().any(|kind| {
            let own = self.units.iter().filter(|(unit, state)| {
                let is_own = unit.organization == victim.organization && uses(unit);
                let is_gone = gone.iter().any(|gone| gone.id == unit.id);
                is_own && matches!(state, State::Placed { .. }) && !is_gone
            });
            let amount: i64 = own.map(|(unit, _)| unit.request.get(kind).milli()).sum();
            amount * sum > weight(&victim.organization) * total(kind)
        })
    }

    /// The least loss that lets `unit` start, over all nodes and all sets of victims.
    pub(super) fn least_loss(&self, unit: &Unit, now: Time, limit: usize) -> Option<Loss> {
        let nodes = self.nodes.iter().filter(|node| self.may_use(unit, node));
        nodes.filter_map(|node| self.least_loss_on(unit, node, now, limit)).min()
    }

    fn least_loss_on(
        &self,
        unit: &Unit,
        node: &PlainNode,
        now: Time,
        limit: usize,
    ) -> Option<Loss> {
        let takes = unit.is_container && node.is_on_machine;
        let is_on_machine = |place: &Place| {
            self.nodes.iter().any(|node| node.place == *place && node.is_on_machine)
        };
        let mut lower: Vec<(&Unit, Time, bool, bool)> = self
            .units
            .iter()
            .filter_map(|(other, state)| match state {
                State::Placed { place, started, .. } if other.priority < unit.priority => {
                    let (here, shares) = (*place == node.place, takes && other.is_container);
                    let shares = shares && is_on_machine(place);
                    (here || shares).then_some((other, *started, here, shares))
                }
                _ => None,
            })
            .collect();
        lower.sort_by_key(|(u, started, ..)| (u.priority, std::cmp::Reverse(*started), u.id));
        assert!(lower.len() < 17, "only for small worlds");
        let sets = (0u32..1 << lower.len()).filter(|set| set.count_ones() as usize <= limit);
        let chosen = |set: u32| (0..lower.len()).filter(move |i| set >> i & 1 == 1);
        let enough = sets.filter(|&set| {
            let given = |kind: &str, of: &dyn Fn(usize) -> bool| -> i64 {
                let of = chosen(set).filter(|&i| of(i));
                of.map(|i| lower[i].0.request.get(kind).milli()).sum()
            };
            let rank = unit.rank();
            let fits = Self::fits(unit, |kind| {
                self.future_free(node, kind, &rank) + given(kind, &|i| lower[i].2)
            });
            let machine =
                |kind: &str| self.machine_free(kind, Some(&rank)).1 + given(kind, &|i| lower[i].3);
            let victims: Vec<&Unit> = chosen(set).map(|i| lower[i].0).collect();
            fits && (!takes || Self::fits(unit, machine)) && self.is_fair(unit, &victims)
        });
        let loss =
            |set| chosen(set).fold(Loss::NONE, |l, i| l.plus(lower[i].0.priority, lower[i].1, now));
        enough.map(loss).min()
    }
}
