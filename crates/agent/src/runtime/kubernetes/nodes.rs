//! Capacity of nodes: allocatable resources minus the requests of other pods.

use std::collections::{BTreeMap, HashSet};

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use model::cluster::{MAX_NODES, NewNode};
use model::{Quantity, Resources, name};

use super::cache::CacheState;
use super::names::HOME_NAMESPACE;
use super::pod;

/// The usable nodes; none until the cache is synced.
pub(super) fn report(state: &CacheState, agent_namespace: &str) -> Option<Vec<NewNode>> {
    if !state.nodes.is_synced || !state.pods.is_synced {
        return None;
    }
    let used = used_by_others(state, agent_namespace);
    let nodes = state.nodes.all.values().filter(|node| is_usable(node));
    let mut nodes: Vec<NewNode> =
        nodes.map(|node| to_new_node(node, used.get(&node.name_any()))).collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    nodes.dedup_by(|a, b| a.name == b.name);
    nodes.truncate(MAX_NODES);
    Some(nodes)
}

/// Paddock's name of a node. It has no dots.
pub(super) fn paddock_name(node: &str) -> String {
    let name: String = node.replace('.', "-").chars().take(63).collect();
    name.trim_end_matches('-').to_owned()
}

/// Finds a node by Paddock's name.
pub(super) fn find<'a>(state: &'a CacheState, name: &str) -> Option<&'a str> {
    state.nodes.all.keys().find(|node| paddock_name(node) == name).map(String::as_str)
}

fn to_new_node(node: &Node, used: Option<&Resources>) -> NewNode {
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let all = pod::to_resources(allocatable, false);
    let used = |kind: &str| used.map_or(Quantity::ZERO, |used| used.get(kind));
    let capacity: Resources =
        all.iter().map(|(kind, amount)| (kind.to_owned(), amount.minus(used(kind)))).collect();
    let labels: BTreeMap<String, String> =
        node.labels().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let labels = if name::labels("labels", &labels).is_ok() { labels } else { BTreeMap::new() };
    NewNode { name: paddock_name(&node.name_any()), capacity, labels }
}

/// Requests of pods that Paddock does not manage, by node. It manages those in the agent's
/// namespace, without the agent itself, and all in namespaces that it created.
fn used_by_others(state: &CacheState, agent_namespace: &str) -> BTreeMap<String, Resources> {
    let mut ours: HashSet<&str> = HashSet::from([agent_namespace]);
    let created = state.objects.get("namespaces").into_iter().flat_map(|all| all.all.values());
    let created: Vec<_> = created
        .filter(|space| space.labels().get(HOME_NAMESPACE).is_some_and(|of| of == agent_namespace))
        .collect();
    ours.extend(created.iter().filter_map(|space| space.metadata.name.as_deref()));
    let mut used: BTreeMap<String, Resources> = BTreeMap::new();
    for pod in state.pods.all.values() {
        let is_ours = ours.contains(pod.namespace.as_str()) && !pod.is_agent;
        if let Some(node) = pod.node.as_ref().filter(|_| !is_ours) {
            used.entry(node.clone()).or_default().add(&pod.requests);
        }
    }
    used
}

/// Whether a node is ready and schedulable for pods without tolerations.
fn is_usable(node: &Node) -> bool {
    let spec = node.spec.as_ref();
    let taints = spec.and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let is_tainted =
        taints.iter().any(|taint| matches!(&*taint.effect, "NoSchedule" | "NoExecute"));
    let is_cordoned = spec.and_then(|spec| spec.unschedulable).unwrap_or(false);
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref());
    let is_ready =
        |c: &k8s_openapi::api::core::v1::NodeCondition| c.type_ == "Ready" && c.status == "True";
    let is_ready = conditions.unwrap_or_default().iter().any(is_ready);
    is_ready && !is_cordoned && !is_tainted && node.metadata.deletion_timestamp.is_none()
}
