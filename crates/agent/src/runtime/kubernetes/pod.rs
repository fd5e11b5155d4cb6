//! Pods, as much of them as is needed.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Amount;
use kube::ResourceExt as _;
use model::Resources;

use super::names::{AGENT, NAME, REPLICA};
use super::quantity::{ours, parse};

/// A pod, whoever made it.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) namespace: String,
    pub(super) name: String,
    /// Which replica it belongs to, if it does.
    pub(super) replica: Option<String>,
    pub(super) is_agent: bool,
    pub(super) node: Option<String>,
    /// What it takes from its node; nothing once it is over.
    pub(super) takes: Resources,
    pub(super) created: i64,
    pub(super) is_going: bool,
    /// Of a replica's pods alone.
    pub(super) status: PodStatus,
}

impl Seen {
    pub(super) fn of(pod: &Pod) -> Self {
        let replica = pod.labels().get(REPLICA).cloned();
        let is_agent = pod.labels().get(NAME).is_some_and(|name| name == AGENT);
        let status = pod.status.clone().unwrap_or_default();
        let is_over = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
        let spec = pod.spec.clone().unwrap_or_default();
        Self {
            namespace: pod.namespace().unwrap_or_default(),
            name: pod.name_any(),
            is_agent,
            node: spec.node_name.clone(),
            takes: if is_over { Resources::default() } else { requests(&spec) },
            created: pod.creation_timestamp().map_or(0, |at| at.0.as_second()),
            is_going: pod.metadata.deletion_timestamp.is_some(),
            status: if replica.is_some() { status } else { PodStatus::default() },
            replica,
        }
    }

    pub(super) fn phase(&self) -> &str {
        self.status.phase.as_deref().unwrap_or_default()
    }
}

/// What Kubernetes reserves for a pod: its containers together, or its largest first step.
fn requests(spec: &PodSpec) -> Resources {
    let mut sum = Resources::default();
    for container in &spec.containers {
        sum.add(&of_container(container));
    }
    for step in spec.init_containers.as_deref().unwrap_or_default() {
        let needs = of_container(step);
        if step.restart_policy.as_deref() == Some("Always") {
            sum.add(&needs);
            continue;
        }
        for (kind, amount) in needs.iter() {
            sum.set(kind, sum.get(kind).max(amount));
        }
    }
    sum.add(&counted(spec.overhead.as_ref(), true));
    sum
}

fn of_container(container: &Container) -> Resources {
    let resources = container.resources.as_ref();
    let mut requests = counted(resources.and_then(|all| all.requests.as_ref()), true);
    // Who only names a limit asks for as much.
    let limits = counted(resources.and_then(|all| all.limits.as_ref()), true);
    for (kind, amount) in limits.iter() {
        if requests.get(kind).is_zero() {
            requests.set(kind, amount);
        }
    }
    requests
}

/// Amounts that Paddock counts.
pub(super) fn counted(amounts: Option<&BTreeMap<String, Amount>>, up: bool) -> Resources {
    let all = amounts.into_iter().flatten();
    all.filter_map(|(name, amount)| Some((ours(name)?.to_owned(), parse(&amount.0, up)?))).collect()
}
