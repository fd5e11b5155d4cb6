//! Objects of a replica that runs an image.
//!
//! A replica with ports or restart policy `always` is a Deployment; one that runs to completion is
//! a Job. The environment is in a Secret, hidden from users who may only read Deployments.

use std::collections::BTreeMap;

use model::agent::ReplicaId;
use model::deployment::{Probe, Restart, Spec};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::names::{self, DEPLOYMENT, OBJECTS, REPLICA, SPEC_HASH};
use super::pull::PullSource;
use super::quantity;
use crate::Error;
use crate::runtime::limits;

/// Grace period between SIGTERM and SIGKILL, in seconds.
const GRACE_SECONDS: u32 = 10;

/// Whether the replica is a Job.
pub(super) fn is_job(spec: &Spec) -> bool {
    match spec.restart {
        Restart::Always => false,
        Restart::OnFailure => spec.ports.is_empty(),
        Restart::Never => true,
    }
}

/// The Deployment or Job. Pinned to `node` by affinity, so that the scheduler still checks it.
pub(super) fn workload(
    id: ReplicaId,
    spec: &Spec,
    image: &str,
    node: Option<&str>,
    pull: &PullSource,
) -> Value {
    let template = json!({"metadata": {"labels": names::labels(id)}, "spec": pod(id, spec, image, node, pull)});
    let mut object =
        json!({"metadata": {"name": names::of_replica(id), "labels": names::labels(id)}});
    if is_job(spec) {
        let retries = if spec.restart == Restart::Never { 0 } else { i32::MAX };
        object["apiVersion"] = json!("batch/v1");
        object["kind"] = json!("Job");
        object["spec"] = json!({"backoffLimit": retries, "template": template});
        return object;
    }
    object["apiVersion"] = json!("apps/v1");
    object["kind"] = json!("Deployment");
    object["spec"] = json!({"replicas": 1, "revisionHistoryLimit": 1, "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": {REPLICA: names::label(id)}}, "template": template});
    object
}

fn pod(id: ReplicaId, spec: &Spec, image: &str, node: Option<&str>, pull: &PullSource) -> Value {
    let restart = match (is_job(spec), spec.restart) {
        (true, Restart::Never) => "Never",
        (true, _) => "OnFailure",
        (false, _) => "Always",
    };
    let mut pod = json!({
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container(id, spec, image)],
    });
    pod["containers"][0]["imagePullPolicy"] = json!(pull.policy);
    if let Some(node) = node {
        let term =
            json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
        pod["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [term]}}});
    }
    if let Some(name) = &pull.secret {
        pod["imagePullSecrets"] = json!([{ "name": name }]);
    }
    pod
}

fn container(id: ReplicaId, spec: &Spec, image: &str) -> Value {
    let secret = names::of_replica(id);
    let env: Vec<Value> = spec
        .env
        .keys()
        .map(|key| {
            json!({"name": key,
        "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
        })
        .collect();
    let ports: Vec<Value> = ports(spec).map(|port| json!({ "containerPort": port })).collect();
    let limits = amounts(spec);
    let mut container = json!({"name": "main", "image": image, "env": env, "ports": ports,
        "resources": {"limits": limits, "requests": limits},
        "securityContext": {"allowPrivilegeEscalation": false}});
    if !spec.command.is_empty() {
        container["command"] = json!(spec.command);
    }
    if let Some(probe) = &spec.ready {
        container["readinessProbe"] = readiness(probe);
    }
    container
}

/// The readiness probe. Kubernetes accepts every status from 200 to 399.
fn readiness(probe: &Probe) -> Value {
    let mut object = json!({"periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 1});
    match &probe.http {
        Some((path, _)) => object["httpGet"] = json!({"path": path, "port": probe.port}),
        None => object["tcpSocket"] = json!({ "port": probe.port }),
    }
    object
}

/// Limits and requests.
fn amounts(spec: &Spec) -> Value {
    let mut resources = spec.resources.clone();
    resources.set("cpu", limits::cpu(&spec.resources));
    resources.set("ram", limits::ram(&spec.resources));
    resources.set("disk", limits::disk(&spec.resources).unwrap_or_default());
    let all = resources.iter().filter(|(_, amount)| !amount.is_zero());
    let all: Map<String, Value> = all
        .filter_map(|(kind, amount)| quantity::to_kubernetes(kind, amount))
        .map(|(name, amount)| (name, json!(amount)))
        .collect();
    Value::Object(all)
}

/// The distinct ports.
fn ports(spec: &Spec) -> impl Iterator<Item = u16> {
    spec.ports.iter().copied().collect::<std::collections::BTreeSet<_>>().into_iter()
}

/// The Service through which all replicas of a deployment are reached.
pub(super) fn service(id: ReplicaId, spec: &Spec) -> Value {
    let ports: Vec<Value> = ports(spec)
        .map(|port| {
            json!({"name": format!("p{port}"), "port": port,
        "targetPort": port, "protocol": "TCP"})
        })
        .collect();
    let deployment = id.deployment.to_string();
    json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": names::of_service(id.deployment),
            "labels": {names::MANAGED_BY: "paddock", DEPLOYMENT: deployment}},
        "spec": {"selector": {DEPLOYMENT: deployment}, "ports": ports}})
}

/// Record of a replica: its environment, its spec hash and its objects. Created first and deleted
/// last, so that no object is ever orphaned.
pub(super) fn record(id: ReplicaId, spec: &Spec, objects: &Value) -> Value {
    let env: BTreeMap<&String, String> = spec
        .env
        .iter()
        .map(|(key, value)| (key, data_encoding::BASE64.encode(value.as_bytes())))
        .collect();
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": env,
        "metadata": {"name": names::of_replica(id), "labels": names::labels(id),
            "annotations": {SPEC_HASH: spec_hash(spec), OBJECTS: objects.to_string()}}})
}

/// Hash of the parts of a spec that define the objects, without those that only affect placement.
pub(super) fn spec_hash(spec: &Spec) -> String {
    let Spec { image, env, command, ports, restart, ready, manifests, resources, .. } = spec;
    let parts = (image, env, command, ports, restart, ready, manifests, resources);
    let text = serde_json::to_vec(&parts).expect("strings serialise");
    data_encoding::HEXLOWER.encode(&Sha256::digest(text))
}

/// Validates names of environment variables.
pub(super) fn check_env(env: &BTreeMap<String, String>) -> Result<(), Error> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let bad =
        |key: &&String| key.starts_with(|c: char| c.is_ascii_digit()) || !key.chars().all(allowed);
    match env.keys().find(bad) {
        None => Ok(()),
        Some(key) => Err(Error::InvalidSpec(format!(
            "Invalid environment variable {}: Kubernetes allows letters, digits, '_', '-' and '.', not \
                         starting with a digit.",
            key.escape_default()
        ))),
    }
}
