//! What the nodes have for us: what they can give, minus what others take.

use std::collections::{BTreeMap, HashSet};

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use model::cluster::{MAX_NODES, NewNode};
use model::{Quantity, Resources, name};

use super::names::HOME;
use super::pod;
use super::seen::Known;

/// The nodes that can be used; nothing as long as not everything was told.
pub(super) fn report(known: &Known, home: &str) -> Option<Vec<NewNode>> {
    if !known.nodes.is_whole || !known.pods.is_whole {
        return None;
    }
    let taken = taken(known, home);
    let nodes = known.nodes.all.values().filter(|node| is_usable(node));
    let mut nodes: Vec<NewNode> =
        nodes.map(|node| reported(node, taken.get(&node.name_any()))).collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    nodes.dedup_by(|a, b| a.name == b.name);
    nodes.truncate(MAX_NODES);
    Some(nodes)
}

/// What Paddock calls a node. Its names have no dots.
pub(super) fn label_of(node: &str) -> String {
    let name: String = node.replace('.', "-").chars().take(63).collect();
    name.trim_end_matches('-').to_owned()
}

/// The node that Paddock calls so.
pub(super) fn named<'a>(known: &'a Known, label: &str) -> Option<&'a str> {
    known.nodes.all.keys().find(|name| label_of(name) == label).map(String::as_str)
}

fn reported(node: &Node, taken: Option<&Resources>) -> NewNode {
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let all = pod::counted(allocatable, false);
    let taken = |kind: &str| taken.map_or(Quantity::ZERO, |taken| taken.get(kind));
    let capacity: Resources =
        all.iter().map(|(kind, amount)| (kind.to_owned(), amount.minus(taken(kind)))).collect();
    let labels: BTreeMap<String, String> =
        node.labels().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let labels = if name::labels("labels", &labels).is_ok() { labels } else { BTreeMap::new() };
    NewNode { name: label_of(&node.name_any()), capacity, labels }
}

/// What pods that are not ours take, by node. Ours are those in the agent's namespace, but not the agent
/// itself, and those in namespaces that it has made: also what an operator makes there.
fn taken(known: &Known, home: &str) -> BTreeMap<String, Resources> {
    let mut spaces: HashSet<&str> = HashSet::from([home]);
    let made = known.objects.get("namespaces").into_iter().flat_map(|shelf| shelf.all.values());
    let made: Vec<_> =
        made.filter(|space| space.labels().get(HOME).is_some_and(|of| of == home)).collect();
    spaces.extend(made.iter().filter_map(|space| space.metadata.name.as_deref()));
    let mut taken: BTreeMap<String, Resources> = BTreeMap::new();
    for pod in known.pods.all.values() {
        let is_ours = spaces.contains(pod.namespace.as_str()) && !pod.is_agent;
        if let Some(node) = pod.node.as_ref().filter(|_| !is_ours) {
            taken.entry(node.clone()).or_default().add(&pod.takes);
        }
    }
    taken
}

/// Is it ready, and does it take what tolerates nothing?
fn is_usable(node: &Node) -> bool {
    let spec = node.spec.as_ref();
    let taints = spec.and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let repels = taints.iter().any(|taint| matches!(&*taint.effect, "NoSchedule" | "NoExecute"));
    let is_closed = spec.and_then(|spec| spec.unschedulable).unwrap_or(false);
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref());
    let is_ready =
        |c: &k8s_openapi::api::core::v1::NodeCondition| c.type_ == "Ready" && c.status == "True";
    let is_ready = conditions.unwrap_or_default().iter().any(is_ready);
    is_ready && !is_closed && !repels && node.metadata.deletion_timestamp.is_none()
}
