//! Why a deployment is pending or preempted, with the numbers of the decision.

use std::collections::BTreeSet;

use model::cluster::{Cluster, Status};
use model::deployment::Reason;
use model::reason::Workload;
use model::world::PendingReason;
use model::{ClusterId, Place, ReplicaId, Resources};

use super::state::{DeploymentEntry, PlacementState};

impl PlacementState {
    /// The names of these places' clusters.
    pub(super) fn names(&self, places: &[(u32, Place)]) -> Vec<String> {
        let clusters: BTreeSet<ClusterId> = places.iter().map(|(_, place)| place.cluster).collect();
        clusters.iter().filter_map(|id| Some(self.clusters.get(id)?.name.clone())).collect()
    }

    /// Why `victim` was preempted. A preemptor of another organization is not named.
    pub(super) fn preempted(&self, victim: ReplicaId, by: ReplicaId) -> Reason {
        let (victim, preemptor) =
            (self.deployments.get(&victim.deployment), self.deployments.get(&by.deployment));
        let named = |(victim, preemptor): (&DeploymentEntry, &DeploymentEntry)| {
            let identity = (by.deployment, preemptor.name.as_str(), preemptor.priority);
            Workload::visible_to(victim.organization, preemptor.organization, identity)
        };
        Reason::Preempted {
            by: victim.zip(preemptor).map_or(Workload::OtherOrganization, named),
            needs: victim.map(|victim| victim.request.clone()).unwrap_or_default(),
            cluster: victim.and_then(|victim| Some(self.only_cluster(victim)?.name.clone())),
        }
    }

    /// Why a deployment is pending.
    pub(super) fn pending(&self, entry: &DeploymentEntry, wait: PendingReason) -> Reason {
        let found = self.only_cluster(entry);
        if let Some(found) = found.filter(|found| found.status != Status::Ready) {
            return Reason::ClusterNotReady { cluster: found.name.clone(), status: found.status };
        }
        let (needs, cluster) = (entry.request.clone(), found.map(|found| found.name.clone()));
        match wait {
            PendingReason::Never => {
                let machine = found.and_then(|found| self.machine_excess(entry, found));
                let exceeds_cluster = found.is_some_and(|found| !needs.fits(&found.total()));
                if let Some(missing) = machine.filter(|_| !exceeds_cluster) {
                    return Reason::ExceedsMachineCapacity { needs, cluster, missing };
                }
                let one_node = found.filter(|found| found.nodes.len() == 1);
                match one_node.map(|found| needs.shortage(&found.total())) {
                    Some(missing) if missing.is_empty() => Reason::NoMatchingNode { cluster },
                    missing => {
                        let missing = missing.unwrap_or_default();
                        Reason::ExceedsCapacity { needs, cluster, missing }
                    }
                }
            }
            PendingReason::Budget => {
                let limit = self.settings.preemptions_per_hour.unwrap_or_default().into();
                Reason::PreemptionBudgetExceeded { limit, cluster }
            }
            PendingReason::FairShare => Reason::FairShareProtected { needs, cluster },
            PendingReason::Yielding => Reason::AwaitingPreemption { cluster },
            PendingReason::Short | PendingReason::Behind => self.short(found, entry),
        }
    }

    /// The cluster that a deployment is pinned to, or the only one.
    fn only_cluster(&self, entry: &DeploymentEntry) -> Option<&Cluster> {
        let is_visible = |cluster: &&Cluster| {
            cluster.organization_id.is_none_or(|owner| owner == entry.organization)
        };
        match entry.pinned_to {
            Some(id) => self.clusters.get(&id),
            None if self.clusters.len() == 1 => self.clusters.values().find(is_visible),
            None => None,
        }
    }

    /// By how much a request exceeds the machine of a cluster, even when that is empty.
    fn machine_excess(&self, entry: &DeploymentEntry, on: &Cluster) -> Option<Resources> {
        let name = self.machine_of(on).filter(|_| entry.takes_machine)?;
        let missing = entry.request.shortage(&self.world.machine_capacity(name)?);
        Some(missing).filter(|missing| !missing.is_empty())
    }

    /// What the machine of a cluster lacks now for a deployment.
    fn machine_shortage(&self, entry: &DeploymentEntry, on: &Cluster) -> Option<Resources> {
        let name = self.machine_of(on).filter(|_| entry.takes_machine)?;
        let missing = entry.request.shortage(&self.world.machine_free(name)?);
        Some(missing).filter(|missing| !missing.is_empty())
    }

    fn short(&self, found: Option<&Cluster>, entry: &DeploymentEntry) -> Reason {
        let needs = entry.request.clone();
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
        if missing.is_empty()
            && let Some(missing) = found.and_then(|found| self.machine_shortage(entry, found))
        {
            return Reason::InsufficientMachineCapacity { needs, cluster, missing };
        }
        if missing.is_empty() {
            return Reason::CapacityReserved { needs, cluster };
        }
        let node = Some(node.name.clone()).filter(|name| name != model::cluster::ONLY_NODE);
        Reason::InsufficientCapacity { needs, cluster, node, missing, estimated_start: None }
    }
}
