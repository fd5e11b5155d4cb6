//! Summaries of pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Amount;
use kube::ResourceExt as _;
use model::Resources;

use super::names::{AGENT, NAME, REPLICA};
use super::quantity::{from_kubernetes, parse};

/// Summary of a pod of any owner.
#[derive(Debug, Clone)]
pub(super) struct PodSummary {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The replica that it belongs to, if any.
    pub(super) replica: Option<String>,
    pub(super) is_agent: bool,
    pub(super) node: Option<String>,
    /// Its resource requests; empty once it has ended.
    pub(super) requests: Resources,
    pub(super) created: i64,
    pub(super) is_terminating: bool,
    /// Only of replicas' pods.
    pub(super) status: PodStatus,
}

impl PodSummary {
    pub(super) fn new(pod: &Pod) -> Self {
        let replica = pod.labels().get(REPLICA).cloned();
        let is_agent = pod.labels().get(NAME).is_some_and(|name| name == AGENT);
        let status = pod.status.clone().unwrap_or_default();
        let has_ended = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
        let spec = pod.spec.clone().unwrap_or_default();
        Self {
            namespace: pod.namespace().unwrap_or_default(),
            name: pod.name_any(),
            is_agent,
            node: spec.node_name.clone(),
            requests: if has_ended { Resources::default() } else { requests(&spec) },
            created: pod.creation_timestamp().map_or(0, |at| at.0.as_second()),
            is_terminating: pod.metadata.deletion_timestamp.is_some(),
            status: if replica.is_some() { status } else { PodStatus::default() },
            replica,
        }
    }

    pub(super) fn phase(&self) -> &str {
        self.status.phase.as_deref().unwrap_or_default()
    }
}

/// Effective requests of a pod: the sum of its containers, or its largest init container.
fn requests(spec: &PodSpec) -> Resources {
    let mut sum = Resources::default();
    for container in &spec.containers {
        sum.add(&container_requests(container));
    }
    for init in spec.init_containers.as_deref().unwrap_or_default() {
        let needs = container_requests(init);
        if init.restart_policy.as_deref() == Some("Always") {
            sum.add(&needs);
            continue;
        }
        for (kind, amount) in needs.iter() {
            sum.set(kind, sum.get(kind).max(amount));
        }
    }
    sum.add(&to_resources(spec.overhead.as_ref(), true));
    sum
}

fn container_requests(container: &Container) -> Resources {
    let resources = container.resources.as_ref();
    let mut requests = to_resources(resources.and_then(|all| all.requests.as_ref()), true);
    // A limit without a request implies the request.
    let limits = to_resources(resources.and_then(|all| all.limits.as_ref()), true);
    for (kind, amount) in limits.iter() {
        if requests.get(kind).is_zero() {
            requests.set(kind, amount);
        }
    }
    requests
}

/// Converts amounts of resources that Paddock counts.
pub(super) fn to_resources(amounts: Option<&BTreeMap<String, Amount>>, up: bool) -> Resources {
    let all = amounts.into_iter().flatten();
    all.filter_map(|(name, amount)| {
        Some((from_kubernetes(name)?.to_owned(), parse(&amount.0, up)?))
    })
    .collect()
}
