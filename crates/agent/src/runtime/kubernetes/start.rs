//! Starting a replica, or finding that it runs.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use base::locks::{lock, one_of};
use kube::core::DynamicObject;
use model::agent::{Observed, ReplicaId};
use model::cluster::ONLY_NODE;
use model::deployment::{Reason, Spec};
use serde_json::{Value, json};

use super::fault::Refusal;
use super::judge::{Facts, Look};
use super::names::{self, MADE_OF};
use super::object::Place;
use super::run::Run;
use super::{Kubernetes, body, nodes, ready};
use crate::Error;
use crate::reason::not_started;
use crate::runtime::limits;

/// How long a right may take to be known.
const RIGHTS_TRIES: usize = 20;
const RIGHTS_WAIT: Duration = Duration::from_millis(250);

impl Kubernetes {
    pub(super) async fn start_replica(&self, id: ReplicaId, node: &str, spec: &Spec) -> Observed {
        let run = match self.make(id, node, spec).await {
            Ok(run) => run,
            Err(error) => return Observed::Failed { reason: error.into() },
        };
        self.once_there(&run, spec).await
    }

    /// Applies all of it, and remembers what shall run.
    async fn make(&self, id: ReplicaId, node: &str, spec: &Spec) -> Result<Arc<Run>, Error> {
        let turn = one_of(&self.deployments, &id.deployment.to_string());
        let _turn = turn.lock().await;
        self.once_known().await;
        let record = self.record(id);
        if let Some(found) = self.get(&record).await? {
            self.check_ours(id, &record).await?;
            if found.metadata.annotations.unwrap_or_default().get(MADE_OF)
                != Some(&body::made_of(spec))
            {
                self.clear(id).await?;
            }
        }
        let run = if spec.manifests.is_empty() {
            self.make_image(id, node, spec, &record).await?
        } else {
            self.make_manifests(id, spec, &record).await?
        };
        let run = Arc::new(run);
        lock(&self.runs).insert(id, run.clone());
        Ok(run)
    }

    async fn make_image(
        &self,
        id: ReplicaId,
        node: &str,
        spec: &Spec,
        record: &Place,
    ) -> Result<Run, Error> {
        let image = spec.image.as_deref().ok_or(Error::NoImage)?;
        let ram_bytes = limits::ram(&spec.resources).map(|ram| ram.milli() / 1000);
        runtime::check_ram(ram_bytes).map_err(|error| not_started(error, image))?;
        body::check_env(&spec.env)?;
        let node = self.node(node);
        let pull = self.options.pull_secret.as_deref();
        let workload = body::workload(id, spec, image, node.as_deref(), pull);
        let place = self.workload(id, body::is_job(spec));
        let objects = json!([place]);
        self.apply(record, &body::record(id, spec, &objects)).await?;
        let endpoints = self.serve(id, spec).await?;
        self.check_ours(id, &place).await?;
        // A Job can't be changed; one that is there is the one that was made for this.
        if !body::is_job(spec) || self.get(&place).await?.is_none() {
            self.apply(&place, &workload).await?;
        }
        let facts = Facts {
            image: image.to_owned(),
            restart: spec.restart,
            is_job: body::is_job(spec),
            must_answer: spec.ready.is_some(),
            ram_bytes,
            endpoints: endpoints.clone(),
        };
        let (places, facts, was_seen) = (vec![place], Some(facts), AtomicBool::new(false));
        Ok(Run { id, places, facts, endpoints, was_seen })
    }

    async fn make_manifests(
        &self,
        id: ReplicaId,
        spec: &Spec,
        record: &Place,
    ) -> Result<Run, Error> {
        let objects = self.of_manifests(id, &spec.manifests).await?;
        let places: Vec<&Place> = objects.iter().map(|(place, _)| place).collect();
        for space in places.iter().filter(|place| place.namespace.is_none()) {
            self.check_ours(id, space).await?;
        }
        self.apply(record, &body::record(id, spec, &json!(places))).await?;
        let mut endpoints = Vec::new();
        for (place, object) in &objects {
            if ready::is_watched(&place.group, &place.kind) {
                self.watch(place, names::REPLICA);
            }
            let made = self.apply_ours(id, place, object).await?;
            if (&*place.group, &*place.kind) == ("", "Service") {
                endpoints.extend(reached(place, &made));
            }
        }
        let places = objects.into_iter().map(|(place, _)| place);
        let places = places.filter(|place| ready::is_watched(&place.group, &place.kind)).collect();
        Ok(Run { id, places, facts: None, endpoints, was_seen: AtomicBool::new(false) })
    }

    /// Applies an object unless it is somebody else's. A right that the agent has just given itself may
    /// be known a moment later.
    async fn apply_ours(
        &self,
        id: ReplicaId,
        place: &Place,
        object: &Value,
    ) -> Result<DynamicObject, Refusal> {
        let mut tries = 0;
        loop {
            let applied = match self.check_ours(id, place).await {
                Ok(()) => self.apply(place, object).await,
                Err(refusal) => Err(refusal),
            };
            let is_new = self.options.instance_role.is_some() && tries < RIGHTS_TRIES;
            match applied {
                Err(refusal) if refusal.code == 403 && is_new => {
                    tokio::time::sleep(RIGHTS_WAIT).await;
                }
                other => return other,
            }
            tries += 1;
        }
    }

    /// Has the deployment's ports be reached; where.
    async fn serve(&self, id: ReplicaId, spec: &Spec) -> Result<Vec<String>, Error> {
        if spec.ports.is_empty() {
            return Ok(Vec::new());
        }
        let place = self.service(id);
        let made = self.apply(&place, &body::service(id, spec)).await?;
        Ok(reached(&place, &made))
    }

    /// The node that a wish means; none if the cluster is only one to Paddock.
    fn node(&self, name: &str) -> Option<String> {
        let name = Some(name).filter(|name| *name != ONLY_NODE)?;
        let found = self.world.with(|known| nodes::named(known, name).map(str::to_owned));
        Some(found.unwrap_or_else(|| name.to_owned()))
    }

    pub(super) fn record(&self, id: ReplicaId) -> Place {
        Place::known("", "v1", "Secret", "secrets", &self.home, &names::of_replica(id))
    }

    pub(super) fn service(&self, id: ReplicaId) -> Place {
        Place::known("", "v1", "Service", "services", &self.home, &names::of_service(id.deployment))
    }

    fn workload(&self, id: ReplicaId, is_job: bool) -> Place {
        let name = names::of_replica(id);
        if is_job {
            return Place::known("batch", "v1", "Job", "jobs", &self.home, &name);
        }
        Place::known("apps", "v1", "Deployment", "deployments", &self.home, &name)
    }

    /// Waits until there is something to say of it.
    async fn once_there(&self, run: &Run, spec: &Spec) -> Observed {
        let mut signal = self.world.signal(&names::label(run.id));
        let limit = spec.ready.as_ref().map(|probe| Duration::from_secs(probe.within.into()));
        let mut end = None;
        loop {
            signal.borrow_and_update();
            match self.world.with(|known| run.look(known, false)) {
                Look::Is(now) => return now,
                Look::Waiting(Some(reason)) => return Observed::Restarting { reason },
                Look::Waiting(None) => {}
            }
            if end.is_none() && self.counts(run) {
                end = limit.map(|limit| base::monotonic() + limit);
            }
            let late = async {
                match end {
                    Some(end) => tokio::time::sleep_until(end).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = signal.changed() => {}
                () = late => return Observed::Failed { reason: too_late(spec) },
            }
        }
    }

    /// Does its time to answer run? Not while its image is pulled.
    fn counts(&self, run: &Run) -> bool {
        let label = names::label(run.id);
        run.facts.is_none()
            || self
                .world
                .with(|known| known.pods_of(&label).iter().any(|pod| pod.phase() == "Running"))
    }

    /// Returns when it is doing differently than `seen`.
    pub(super) async fn until_other(&self, id: ReplicaId, seen: &Observed) -> Observed {
        let Some(run) = self.run(id) else { return std::future::pending().await };
        let mut signal = self.world.signal(&names::label(id));
        let runs_already = matches!(seen, Observed::Running { .. });
        loop {
            signal.borrow_and_update();
            let now = match self.world.with(|known| run.look(known, runs_already)) {
                Look::Is(now) => Some(now),
                Look::Waiting(Some(reason)) => Some(Observed::Restarting { reason }),
                Look::Waiting(None) if runs_already => {
                    let message = "its pod is not running any more".to_owned();
                    let last = Box::new(Reason::ContainerLost { message });
                    let reason =
                        Reason::CrashLoopBackOff { last, retry_in_ms: None, restarts: None };
                    Some(Observed::Restarting { reason })
                }
                Look::Waiting(None) => None,
            };
            if let Some(now) = now.filter(|now| now != seen) {
                return now;
            }
            if signal.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

fn too_late(spec: &Spec) -> Reason {
    let port = spec.ready.as_ref().filter(|_| spec.manifests.is_empty()).map(|probe| probe.port);
    let within_seconds = spec.ready.as_ref().map(|probe| probe.within.into());
    let message = "it did not become ready in time".to_owned();
    Reason::ReadinessCheckFailed { port, within_seconds, message }
}

/// Where a Service is reached: by its address, or by its name if it has none.
fn reached(place: &Place, made: &DynamicObject) -> Vec<String> {
    let spec = &made.data["spec"];
    let ip = spec["clusterIP"].as_str().and_then(|ip| ip.parse::<std::net::IpAddr>().ok());
    let name = format!("{}.{}.svc", place.name, place.namespace.as_deref().unwrap_or_default());
    let ports = spec["ports"].as_array().cloned().unwrap_or_default();
    let at = |port: u64| match ip {
        Some(std::net::IpAddr::V6(ip)) => format!("[{ip}]:{port}"),
        Some(ip) => format!("{ip}:{port}"),
        None => format!("{name}:{port}"),
    };
    ports.iter().filter_map(|port| port["port"].as_u64()).map(at).collect()
}

/// Writes whose it is into an object's metadata.
pub(super) fn add_labels(meta: &mut Value, id: ReplicaId) {
    if let Value::Object(labels) = names::labels(id) {
        for (key, value) in labels {
            meta["labels"][key] = value;
        }
    }
}
