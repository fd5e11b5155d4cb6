//! What is applied for a replica that runs an image.
//!
//! What listens on ports, or shall always run, is a Deployment; what runs to its end is a Job. All of
//! the environment is in a Secret: nobody who may only read Deployments reads it.

use std::collections::BTreeMap;

use model::agent::ReplicaId;
use model::deployment::{Probe, Restart, Spec};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::names::{self, DEPLOYMENT, MADE_OF, OBJECTS, REPLICA};
use super::quantity;
use crate::Error;
use crate::runtime::limits;

/// How long a program may take to end, in seconds.
const GRACE: u32 = 10;

/// Is it a Job?
pub(super) fn is_job(spec: &Spec) -> bool {
    match spec.restart {
        Restart::Always => false,
        Restart::OnFailure => spec.ports.is_empty(),
        Restart::Never => true,
    }
}

/// The Deployment or Job. `node` is pinned to by name, past no scheduler: taints and room still count.
pub(super) fn workload(
    id: ReplicaId,
    spec: &Spec,
    image: &str,
    node: Option<&str>,
    pull_secret: Option<&str>,
) -> Value {
    let template = json!({"metadata": {"labels": names::labels(id)}, "spec": pod(id, spec, image, node, pull_secret)});
    let mut object =
        json!({"metadata": {"name": names::of_replica(id), "labels": names::labels(id)}});
    if is_job(spec) {
        let tries = if spec.restart == Restart::Never { 0 } else { i32::MAX };
        object["apiVersion"] = json!("batch/v1");
        object["kind"] = json!("Job");
        object["spec"] = json!({"backoffLimit": tries, "template": template});
        return object;
    }
    object["apiVersion"] = json!("apps/v1");
    object["kind"] = json!("Deployment");
    object["spec"] = json!({"replicas": 1, "revisionHistoryLimit": 1, "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": {REPLICA: names::label(id)}}, "template": template});
    object
}

fn pod(
    id: ReplicaId,
    spec: &Spec,
    image: &str,
    node: Option<&str>,
    pull_secret: Option<&str>,
) -> Value {
    let restart = match (is_job(spec), spec.restart) {
        (true, Restart::Never) => "Never",
        (true, _) => "OnFailure",
        (false, _) => "Always",
    };
    let mut pod = json!({
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": GRACE,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container(id, spec, image)],
    });
    if let Some(node) = node {
        let term =
            json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
        pod["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [term]}}});
    }
    if let Some(name) = pull_secret {
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

/// Kubernetes takes every status from 200 to 399 for an answer.
fn readiness(probe: &Probe) -> Value {
    let mut object = json!({"periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 1});
    match &probe.http {
        Some((path, _)) => object["httpGet"] = json!({"path": path, "port": probe.port}),
        None => object["tcpSocket"] = json!({ "port": probe.port }),
    }
    object
}

/// What it may use, and has reserved for it.
fn amounts(spec: &Spec) -> Value {
    let all = spec.resources.iter().filter(|(kind, amount)| match *kind {
        "ram" => limits::ram(&spec.resources).is_some(),
        _ => !amount.is_zero(),
    });
    let all: Map<String, Value> = all
        .filter_map(|(kind, amount)| quantity::theirs(kind, amount))
        .map(|(name, amount)| (name, json!(amount)))
        .collect();
    Value::Object(all)
}

/// Its ports, each once.
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

/// A replica's record: its environment, what it was made of, and what was applied for it. It is the
/// first that is made and the last that goes, so that nothing is ever forgotten.
pub(super) fn record(id: ReplicaId, spec: &Spec, objects: &Value) -> Value {
    let env: BTreeMap<&String, String> = spec
        .env
        .iter()
        .map(|(key, value)| (key, data_encoding::BASE64.encode(value.as_bytes())))
        .collect();
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": env,
        "metadata": {"name": names::of_replica(id), "labels": names::labels(id),
            "annotations": {MADE_OF: made_of(spec), OBJECTS: objects.to_string()}}})
}

/// A hash of all that it is made of. What only concerns its placement is no part of it.
pub(super) fn made_of(spec: &Spec) -> String {
    let Spec { image, env, command, ports, restart, ready, manifests, resources, .. } = spec;
    let parts = (image, env, command, ports, restart, ready, manifests, resources);
    let text = serde_json::to_vec(&parts).expect("maps of text can be written");
    data_encoding::HEXLOWER.encode(&Sha256::digest(text))
}

/// Can Kubernetes set these variables?
pub(super) fn check_env(env: &BTreeMap<String, String>) -> Result<(), Error> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let bad =
        |key: &&String| key.starts_with(|c: char| c.is_ascii_digit()) || !key.chars().all(allowed);
    match env.keys().find(bad) {
        None => Ok(()),
        Some(key) => Err(Error::InvalidSpec(format!(
            "Kubernetes can't set the variable {}: names have letters, digits, '_', '-' and '.', and \
             don't begin with a digit.",
            key.escape_default()
        ))),
    }
}
