//! Why something waits or yields, in sentences that do not change with every breath of a cluster.

use std::collections::BTreeSet;

use model::cluster::{Cluster, Status};
use model::world::Wait;
use model::{ClusterId, Place, ReplicaId, Resources};

use super::known::{Asked, Known};

impl Known {
    /// What users call where these are.
    pub(super) fn where_it_is(&self, places: &[(u32, Place)]) -> String {
        let clusters: BTreeSet<ClusterId> = places.iter().map(|(_, place)| place.cluster).collect();
        let name = |id| self.clusters.get(id).map_or("its cluster", |cluster| &cluster.name);
        clusters.iter().map(name).collect::<Vec<_>>().join(" and ")
    }

    pub(super) fn why_it_yields(&self, by: ReplicaId) -> String {
        let asked = self.asked.get(&by.deployment);
        let (name, priority) =
            asked.map_or(("another", 0), |asked| (asked.name.as_str(), asked.priority));
        format!(
            "Yielded to {name} ({}), which has priority {priority}; starts again as soon as there is room.",
            by.deployment
        )
    }

    pub(super) fn why(&self, asked: &Asked, wait: Wait) -> String {
        let request = &asked.request;
        let cluster = asked.pinned_to.and_then(|id| self.clusters.get(&id));
        let here = cluster.map_or(String::new(), |cluster| format!(" on {}", cluster.name));
        if let Some(cluster) = cluster.filter(|cluster| cluster.status != Status::Ready) {
            return format!("Waits for {} to be ready: it is {}.", cluster.name, cluster.status);
        }
        match (wait, cluster) {
            (Wait::Never, Some(cluster)) => never(cluster, request),
            (Wait::Never, None) => format!(
                "No cluster that it may use has a node for {request}, even when empty: ask for less, or add one."
            ),
            (Wait::Budget, _) => format!(
                "Could have lower priorities yield{here}, but its organization has done so {} times in the last hour: waits for room, or for the hour to pass.",
                self.settings.preemptions_per_hour.unwrap_or_default()
            ),
            (Wait::Yielding, _) => format!("Waits for lower priorities to stop{here}."),
            (Wait::Short | Wait::Behind, Some(cluster)) => self.short(cluster, request),
            (Wait::Short | Wait::Behind, None) => format!(
                "Waits for a cluster with room for {request}, and starts as soon as there is one."
            ),
        }
    }
}

fn never(cluster: &Cluster, request: &Resources) -> String {
    let name = &cluster.name;
    match cluster.nodes.as_slice() {
        [_] => {
            let missing = request.shortage(&cluster.total());
            if missing.is_empty() {
                return format!("Can never run on {name}: it does not have the labels asked for.");
            }
            format!(
                "Can never run on {name}: it needs {request}, which is {missing} more than the cluster has."
            )
        }
        _ => format!(
            "Can never run on {name}: it needs {request} with the labels asked for, and no node has that, even when empty."
        ),
    }
}

impl Known {
    fn short(&self, cluster: &Cluster, request: &Resources) -> String {
        let name = &cluster.name;
        let [node] = cluster.nodes.as_slice() else {
            return format!(
                "Waits for a node of {name} with room for {request}, and starts as soon as there is one."
            );
        };
        let place = Place { cluster: cluster.id, node: node.name.as_str().into() };
        let free = self.world.free(&place).unwrap_or_default();
        let missing = request.shortage(&free);
        let kinds: Vec<&str> = missing.iter().map(|(kind, _)| kind).collect();
        if kinds.is_empty() {
            return format!(
                "Waits for {request} on {name}: that much is free, but kept for others before it."
            );
        }
        format!(
            "Waits for {} on {name}: it needs {request}, and starts as soon as that is free.",
            kinds.join(", ")
        )
    }
}
