//! Why a deployment is pending or preempted, with the numbers of the decision.

use std::collections::BTreeSet;

use model::cluster::{Cluster, Status};
use model::deployment::Reason;
use model::reason::Who;
use model::world::Wait;
use model::{ClusterId, Place, ReplicaId, Resources};

use super::known::{Asked, Known};

impl Known {
    /// The names of the clusters of these places.
    pub(super) fn names(&self, places: &[(u32, Place)]) -> Vec<String> {
        let clusters: BTreeSet<ClusterId> = places.iter().map(|(_, place)| place.cluster).collect();
        clusters.iter().filter_map(|id| Some(self.clusters.get(id)?.name.clone())).collect()
    }

    /// Why `victim` was preempted. A preemptor of another organization is not named.
    pub(super) fn preempted(&self, victim: ReplicaId, by: ReplicaId) -> Reason {
        let (victim, preemptor) =
            (self.asked.get(&victim.deployment), self.asked.get(&by.deployment));
        let seen = |(victim, preemptor): (&Asked, &Asked)| {
            let named = (by.deployment, preemptor.name.as_str(), preemptor.priority);
            Who::seen_by(victim.organization, preemptor.organization, named)
        };
        Reason::Preempted {
            by: victim.zip(preemptor).map_or(Who::OtherOrganization, seen),
            needs: victim.map(|victim| victim.request.clone()).unwrap_or_default(),
            cluster: victim.and_then(|victim| Some(self.only_cluster(victim)?.name.clone())),
        }
    }

    /// Why a deployment is pending.
    pub(super) fn pending(&self, asked: &Asked, wait: Wait) -> Reason {
        let found = self.only_cluster(asked);
        if let Some(found) = found.filter(|found| found.status != Status::Ready) {
            return Reason::ClusterNotReady { cluster: found.name.clone(), status: found.status };
        }
        let (needs, cluster) = (asked.request.clone(), found.map(|found| found.name.clone()));
        match wait {
            Wait::Never => {
                let one_node = found.filter(|found| found.nodes.len() == 1);
                match one_node.map(|found| needs.shortage(&found.total())) {
                    Some(missing) if missing.is_empty() => Reason::NoMatchingNode { cluster },
                    missing => {
                        let missing = missing.unwrap_or_default();
                        Reason::ExceedsCapacity { needs, cluster, missing }
                    }
                }
            }
            Wait::Budget => {
                let limit = self.settings.preemptions_per_hour.unwrap_or_default().into();
                Reason::PreemptionBudgetExceeded { limit, cluster }
            }
            Wait::Yielding => Reason::AwaitingPreemption { cluster },
            Wait::Short | Wait::Behind => self.short(found, needs),
        }
    }

    /// The cluster that a deployment is pinned to, or the only one.
    fn only_cluster(&self, asked: &Asked) -> Option<&Cluster> {
        let is_visible = |cluster: &&Cluster| {
            cluster.organization_id.is_none_or(|owner| owner == asked.organization)
        };
        match asked.pinned_to {
            Some(id) => self.clusters.get(&id),
            None if self.clusters.len() == 1 => self.clusters.values().find(is_visible),
            None => None,
        }
    }

    fn short(&self, found: Option<&Cluster>, needs: Resources) -> Reason {
        let cluster = found.map(|found| found.name.clone());
        let Some(([node], id)) = found.map(|found| (found.nodes.as_slice(), found.id)) else {
            return Reason::InsufficientCapacity {
                needs,
                cluster,
                node: None,
                missing: Resources::default(),
                estimated_start: None,
            };
        };
        let place = Place { cluster: id, node: node.name.as_str().into() };
        let missing = needs.shortage(&self.world.free(&place).unwrap_or_default());
        if missing.is_empty() {
            return Reason::CapacityReserved { needs, cluster };
        }
        let node = Some(node.name.clone()).filter(|name| name != model::cluster::ONLY_NODE);
        Reason::InsufficientCapacity { needs, cluster, node, missing, estimated_start: None }
    }
}
