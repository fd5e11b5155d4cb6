//! A brute-force scheduler that shares no code with the indexes.

use super::*;

/// A node without indexes.
#[derive(Debug, Clone)]
pub(super) struct PlainNode {
    pub(super) place: Place,
    pub(super) owner: Option<OrganizationId>,
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
}

pub(super) const KINDS: [&str; 3] = ["cpu", "gpu", "ram"];

impl Facts {
    pub(super) fn new(clusters: &[Cluster], world: &World) -> Self {
        let nodes = clusters.iter().flat_map(|cluster| {
            cluster.nodes.iter().map(|node| {
                let mut labels = cluster.labels.clone();
                labels.extend(node.labels.clone());
                PlainNode {
                    place: Place { cluster: cluster.id, node: node.name.as_str().into() },
                    owner: cluster.owner,
                    is_open: cluster.is_ready,
                    labels,
                    capacity: node.capacity.clone(),
                    taken: node.manually_reserved.clone(),
                }
            })
        });
        let (units, reservations) = (units_of(world), world.reservations());
        Self { nodes: nodes.collect(), units, reservations }
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
        self.may_use(unit, node) && Self::fits(unit, free)
    }

    pub(super) fn fits_future(&self, unit: &Unit, node: &PlainNode) -> bool {
        self.may_use(unit, node)
            && Self::fits(unit, |kind| self.future_free(node, kind, &unit.rank()))
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
        let lower: Vec<(&Unit, Time)> = self
            .units
            .iter()
            .filter_map(|(other, state)| match state {
                State::Placed { place, started, .. } if *place == node.place => {
                    (other.priority < unit.priority).then_some((other, *started))
                }
                _ => None,
            })
            .collect();
        assert!(lower.len() < 14, "only for small worlds");
        let sets = (0u32..1 << lower.len()).filter(|set| set.count_ones() as usize <= limit);
        let chosen = |set: u32| (0..lower.len()).filter(move |i| set >> i & 1 == 1);
        let enough = sets.filter(|&set| {
            Self::fits(unit, |kind| {
                let given: i64 = chosen(set).map(|i| lower[i].0.request.get(kind).milli()).sum();
                self.future_free(node, kind, &unit.rank()) + given
            })
        });
        let loss =
            |set| chosen(set).fold(Loss::NONE, |l, i| l.plus(lower[i].0.priority, lower[i].1, now));
        enough.map(loss).min()
    }
}
