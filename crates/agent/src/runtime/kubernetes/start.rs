//! Starts replicas and adopts running ones.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use base::locks::{lock, named_lock};
use kube::core::DynamicObject;
use model::agent::{Observed, ReplicaId};
use model::cluster::ONLY_NODE;
use model::deployment::{Reason, Spec};
use serde_json::{Value, json};

use super::evaluate::{Evaluation, Workload};
use super::fault::Refusal;
use super::names::{self, SPEC_HASH};
use super::object::ObjectRef;
use super::pull::PullSource;
use super::run::Run;
use super::{Kubernetes, body, nodes, ready};
use crate::Error;
use crate::reason::not_started;
use crate::runtime::limits;

/// Attempts until a new role binding takes effect.
const ROLE_ATTEMPTS: usize = 240;
const ROLE_WAIT: Duration = Duration::from_millis(250);

impl Kubernetes {
    pub(super) async fn start_replica(&self, id: ReplicaId, node: &str, spec: &Spec) -> Observed {
        let run = match self.create(id, node, spec).await {
            Ok(run) => run,
            Err(error) => return Observed::Failed { reason: error.into() },
        };
        self.until_started(&run, spec).await
    }

    /// Applies all objects and registers the replica as started.
    async fn create(&self, id: ReplicaId, node: &str, spec: &Spec) -> Result<Arc<Run>, Error> {
        let deployment = named_lock(&self.deployments, &id.deployment.to_string());
        let _guard = deployment.lock().await;
        self.until_synced().await;
        let record = self.record_ref(id);
        if let Some(found) = self.get(&record).await? {
            self.check_ours(id, &record).await?;
            if found.metadata.annotations.unwrap_or_default().get(SPEC_HASH)
                != Some(&body::spec_hash(spec))
            {
                self.remove_objects(id).await?;
            }
        }
        let run = if spec.manifests.is_empty() {
            self.create_workload(id, node, spec, &record).await?
        } else {
            self.apply_manifests(id, spec, &record).await?
        };
        let run = Arc::new(run);
        lock(&self.runs).insert(id, run.clone());
        Ok(run)
    }

    async fn create_workload(
        &self,
        id: ReplicaId,
        node: &str,
        spec: &Spec,
        record: &ObjectRef,
    ) -> Result<Run, Error> {
        let image = spec.image.as_deref().ok_or(Error::NoImage)?;
        let ram_bytes = Some(limits::ram(&spec.resources).milli() / 1000);
        runtime::check_ram(ram_bytes).map_err(|error| not_started(error, image))?;
        body::check_env(&spec.env)?;
        let node = self.node(node);
        let object = self.workload_ref(id, body::is_job(spec));
        self.check_ours(id, &object).await?;
        let existing = self.get(&object).await?;
        let cluster_secret = self.options.pull_secret.as_deref();
        let pull = PullSource::new(id, spec, cluster_secret, existing.as_ref());
        let manifest = body::workload(id, spec, image, node.as_deref(), &pull);
        let secret = self.pull_secret_ref(id);
        let is_own = pull.secret.as_ref() == Some(&secret.name);
        let own = spec.pull_credentials().filter(|_| is_own);
        let objects = match own {
            Some(_) => json!([secret, object]),
            None => {
                self.remove_pull_secret(id).await?;
                json!([object])
            }
        };
        self.apply(record, &body::record(id, spec, &objects)).await?;
        let endpoints = self.create_service(id, spec).await?;
        if let Some(own) = own {
            self.apply_pull_secret(id, own).await?;
        }
        // A Job is immutable; an existing one belongs to this spec.
        if !body::is_job(spec) || existing.is_none() {
            self.apply(&object, &manifest).await?;
        }
        let workload = Workload {
            image: image.to_owned(),
            restart: spec.restart,
            is_job: body::is_job(spec),
            needs_readiness: spec.ready.is_some(),
            ram_bytes,
            endpoints: endpoints.clone(),
        };
        let (objects, workload) = (vec![object], Some(workload));
        Ok(Run { id, objects, workload, endpoints, was_observed: AtomicBool::new(false) })
    }

    async fn apply_manifests(
        &self,
        id: ReplicaId,
        spec: &Spec,
        record: &ObjectRef,
    ) -> Result<Run, Error> {
        let objects = self.instance_objects(id, &spec.manifests).await?;
        let refs: Vec<&ObjectRef> = objects.iter().map(|(object, _)| object).collect();
        for namespace in refs.iter().filter(|object| object.namespace.is_none()) {
            self.check_ours(id, namespace).await?;
        }
        self.apply(record, &body::record(id, spec, &json!(refs))).await?;
        let mut endpoints = Vec::new();
        for (object, manifest) in &objects {
            if ready::is_watched(&object.group, &object.kind) {
                self.watch(object, names::REPLICA);
            }
            let applied = self.apply_ours(id, object, manifest).await?;
            if (&*object.group, &*object.kind) == ("", "Service") {
                endpoints.extend(service_endpoints(object, &applied));
            }
        }
        let objects = objects.into_iter().map(|(object, _)| object);
        let objects =
            objects.filter(|object| ready::is_watched(&object.group, &object.kind)).collect();
        Ok(Run { id, objects, workload: None, endpoints, was_observed: AtomicBool::new(false) })
    }

    /// Applies an object unless it has another owner. The server creates the namespace of an instance
    /// and binds the agent's role in it meanwhile.
    async fn apply_ours(
        &self,
        id: ReplicaId,
        object: &ObjectRef,
        manifest: &Value,
    ) -> Result<DynamicObject, Refusal> {
        let mut attempts = 0;
        loop {
            let applied = match self.check_ours(id, object).await {
                Ok(()) => self.apply(object, manifest).await,
                Err(refusal) => Err(refusal),
            };
            let is_retried = self.options.instance_role.is_some() && attempts < ROLE_ATTEMPTS;
            match applied {
                Err(refusal) if refusal.code == 403 && is_retried => {
                    tokio::time::sleep(ROLE_WAIT).await;
                }
                other => return other,
            }
            attempts += 1;
        }
    }

    /// Creates the deployment's Service and returns its endpoints.
    async fn create_service(&self, id: ReplicaId, spec: &Spec) -> Result<Vec<String>, Error> {
        if spec.ports.is_empty() {
            return Ok(Vec::new());
        }
        let object = self.service_ref(id);
        let applied = self.apply(&object, &body::service(id, spec)).await?;
        Ok(service_endpoints(&object, &applied))
    }

    /// Resolves the node of a replica; none if Paddock treats the cluster as a single node.
    fn node(&self, name: &str) -> Option<String> {
        let name = Some(name).filter(|name| *name != ONLY_NODE)?;
        let found = self.cache.read(|state| nodes::find(state, name).map(str::to_owned));
        Some(found.unwrap_or_else(|| name.to_owned()))
    }

    pub(super) fn record_ref(&self, id: ReplicaId) -> ObjectRef {
        let namespace = &self.agent_namespace;
        ObjectRef::new("", "v1", "Secret", "secrets", namespace, &names::of_replica(id))
    }

    pub(super) fn service_ref(&self, id: ReplicaId) -> ObjectRef {
        let (namespace, name) = (&self.agent_namespace, names::of_service(id.deployment));
        ObjectRef::new("", "v1", "Service", "services", namespace, &name)
    }

    fn workload_ref(&self, id: ReplicaId, is_job: bool) -> ObjectRef {
        let (namespace, name) = (&self.agent_namespace, names::of_replica(id));
        if is_job {
            return ObjectRef::new("batch", "v1", "Job", "jobs", namespace, &name);
        }
        ObjectRef::new("apps", "v1", "Deployment", "deployments", namespace, &name)
    }

    /// Waits until the replica runs, fails or has a reason for its delay.
    async fn until_started(&self, run: &Run, spec: &Spec) -> Observed {
        let mut signal = self.cache.signal(&names::label(run.id));
        let limit = spec.ready.as_ref().map(|probe| Duration::from_secs(probe.within.into()));
        let mut end = None;
        loop {
            signal.borrow_and_update();
            match self.cache.read(|state| run.evaluate(state, false)) {
                Evaluation::Settled(now) => return now,
                Evaluation::Waiting(Some(reason)) => return Observed::Restarting { reason },
                Evaluation::Waiting(None) => {}
            }
            if end.is_none() && self.is_deadline_running(run) {
                end = limit.map(|limit| base::monotonic() + limit);
            }
            let deadline = async {
                match end {
                    Some(end) => tokio::time::sleep_until(end).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = signal.changed() => {}
                () = deadline => return Observed::Failed { reason: not_ready(spec) },
            }
        }
    }

    /// Whether the readiness deadline runs. It does not during the image pull.
    fn is_deadline_running(&self, run: &Run) -> bool {
        let label = names::label(run.id);
        let is_running = || {
            self.cache
                .read(|state| state.pods_of(&label).iter().any(|pod| pod.phase() == "Running"))
        };
        run.workload.is_none() || is_running()
    }

    /// Returns when the observed state differs from `last`.
    pub(super) async fn until_changed(&self, id: ReplicaId, last: &Observed) -> Observed {
        let Some(run) = self.run(id) else { return std::future::pending().await };
        let mut signal = self.cache.signal(&names::label(id));
        let is_running = matches!(last, Observed::Running { .. });
        loop {
            signal.borrow_and_update();
            let now = match self.cache.read(|state| run.evaluate(state, is_running)) {
                Evaluation::Settled(now) => Some(now),
                Evaluation::Waiting(Some(reason)) => Some(Observed::Restarting { reason }),
                Evaluation::Waiting(None) if is_running => {
                    let message = "its pod is not running".to_owned();
                    let last = Box::new(Reason::ContainerLost { message });
                    let reason =
                        Reason::CrashLoopBackOff { last, retry_in_ms: None, restarts: None };
                    Some(Observed::Restarting { reason })
                }
                Evaluation::Waiting(None) => None,
            };
            if let Some(now) = now.filter(|now| now != last) {
                return now;
            }
            if signal.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

fn not_ready(spec: &Spec) -> Reason {
    let port = spec.ready.as_ref().filter(|_| spec.manifests.is_empty()).map(|probe| probe.port);
    let within_seconds = spec.ready.as_ref().map(|probe| probe.within.into());
    let message = "timed out".to_owned();
    Reason::ReadinessCheckFailed { port, within_seconds, message }
}

/// Endpoints of a Service: by its IP address, or by its DNS name if it has none.
fn service_endpoints(object: &ObjectRef, applied: &DynamicObject) -> Vec<String> {
    let spec = &applied.data["spec"];
    let ip = spec["clusterIP"].as_str().and_then(|ip| ip.parse::<std::net::IpAddr>().ok());
    let name = format!("{}.{}.svc", object.name, object.namespace.as_deref().unwrap_or_default());
    let ports = spec["ports"].as_array().cloned().unwrap_or_default();
    let at = |port: u64| match ip {
        Some(std::net::IpAddr::V6(ip)) => format!("[{ip}]:{port}"),
        Some(ip) => format!("{ip}:{port}"),
        None => format!("{name}:{port}"),
    };
    ports.iter().filter_map(|port| port["port"].as_u64()).map(at).collect()
}

/// Adds the labels of a replica to an object's metadata.
pub(super) fn add_labels(meta: &mut Value, id: ReplicaId) {
    if let Value::Object(labels) = names::labels(id) {
        for (key, value) in labels {
            meta["labels"][key] = value;
        }
    }
}
