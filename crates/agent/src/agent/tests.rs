//! The agent's loop with a fake control plane and a fake runtime. Time is simulated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use futures_util::future::BoxFuture;
use model::deployment::{Reason, Spec};
use model::{ClusterId, DeploymentId, OrganizationId, Xid};
use runtime::LogStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::*;
use crate::{Error, ObservedFuture};

/// Two replicas per deployment: 0 and 1 belong to the same one.
fn replica(n: u32) -> ReplicaId {
    ReplicaId { deployment: DeploymentId(Xid::new(1, [0; 5], n / 2)), number: n % 2 }
}

fn spec(image: &str) -> Spec {
    Spec { image: Some(image.into()), replicas: 1, ports: vec![80], ..Spec::default() }
}

fn command_not_found() -> Reason {
    Reason::CommandNotFound { command: "run".into() }
}

fn crashed() -> Reason {
    Reason::Exited { exit_code: Some(3), signal: None, oom_limit_bytes: None }
}

/// A fake control plane: serves desired state and records reports.
#[derive(Default)]
struct FakeControlPlane {
    desired: Mutex<BTreeMap<ReplicaId, Desired>>,
    reports: Mutex<Vec<Report>>,
    /// Number of fetches that still fail.
    failing_fetches: Mutex<u32>,
    /// Number of reports that still fail.
    failing_reports: Mutex<u32>,
    full_fetches: Mutex<u32>,
    changed: Notify,
}

impl FakeControlPlane {
    fn set(&self, n: u32, generation: i64, run: Option<Spec>) {
        let id = replica(n);
        let cluster = ClusterId(Xid::new(1, [1; 5], 0));
        let (node, organization) = ("default".into(), None);
        let desired = Desired { replica: id, cluster, node, generation, organization, run };
        self.desired.lock().unwrap().insert(id, desired);
        self.changed.notify_one();
    }

    /// Removes a replica from the list.
    fn remove(&self, n: u32) {
        self.desired.lock().unwrap().remove(&replica(n));
        self.changed.notify_one();
    }

    /// The reports of a replica, in order.
    fn reports(&self, n: u32) -> Vec<(i64, Observed)> {
        let reports = self.reports.lock().unwrap();
        let about = reports.iter().filter(|report| report.replica == replica(n));
        about.map(|report| (report.generation, report.observed.clone())).collect()
    }
}

impl Link for FakeControlPlane {
    async fn desired(&self, all: bool) -> Result<Vec<Desired>, LinkError> {
        fail_if_due(&self.failing_fetches)?;
        *self.full_fetches.lock().unwrap() += u32::from(all);
        Ok(self.desired.lock().unwrap().values().cloned().collect())
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }

    async fn report(&self, reports: &[Report]) -> Result<(), LinkError> {
        fail_if_due(&self.failing_reports)?;
        let mut desired = self.desired.lock().unwrap();
        for report in reports {
            // A removed replica is no longer desired.
            if report.observed == Observed::Gone
                && desired.get(&report.replica).is_some_and(|d| d.generation == report.generation)
            {
                desired.remove(&report.replica);
            }
        }
        self.reports.lock().unwrap().extend_from_slice(reports);
        Ok(())
    }
}

/// Fails as long as failures are due.
fn fail_if_due(failures: &Mutex<u32>) -> Result<(), LinkError> {
    let mut left = failures.lock().unwrap();
    if *left == 0 {
        return Ok(());
    }
    *left -= 1;
    Err(LinkError("simulated failure".into()))
}

/// A fake runtime that records calls.
#[derive(Default)]
struct FakeRuntime {
    running: Mutex<BTreeMap<ReplicaId, String>>,
    calls: Mutex<Vec<String>>,
    /// Images whose start never returns.
    hanging: Mutex<BTreeSet<String>>,
    /// Number of stops that still fail.
    failing_stops: Mutex<u32>,
    ended: Notify,
}

impl FakeRuntime {
    fn images(&self) -> Vec<String> {
        self.running.lock().unwrap().values().cloned().collect()
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }

    fn record(&self, call: &str) {
        self.calls.lock().unwrap().push(call.to_owned());
    }
}

impl Runtime for FakeRuntime {
    fn name(&self) -> &'static str {
        "runtime"
    }

    fn start<'a>(
        &'a self,
        id: ReplicaId,
        _node: &'a str,
        _organization: Option<OrganizationId>,
        spec: &'a Spec,
    ) -> ObservedFuture<'a> {
        Box::pin(async move {
            let image = spec.image.clone().unwrap_or_default();
            self.record(&format!("start {image}"));
            if self.hanging.lock().unwrap().contains(&image) {
                std::future::pending::<()>().await;
            }
            if image == "bad" {
                return Observed::Failed { reason: command_not_found() };
            }
            self.running.lock().unwrap().insert(id, image);
            Observed::Running { endpoints: vec!["127.0.0.1:80".into()] }
        })
    }

    fn changed<'a>(&'a self, id: ReplicaId, last: &'a Observed) -> ObservedFuture<'a> {
        Box::pin(async move {
            self.ended.notified().await;
            let image = self.running.lock().unwrap().get(&id).cloned();
            match (image.as_deref(), last) {
                (Some("job"), _) => Observed::Completed,
                (Some("again"), Observed::Running { .. }) => {
                    Observed::Restarting { reason: crashed() }
                }
                (Some("again"), _) => Observed::Running { endpoints: vec!["127.0.0.1:81".into()] },
                _ => Observed::Failed { reason: crashed() },
            }
        })
    }

    fn stop(&self, id: ReplicaId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.record("stop");
            let mut failing = self.failing_stops.lock().unwrap();
            if *failing > 0 {
                *failing -= 1;
                return Err(Error::Failed("Simulated failure.".into()));
            }
            self.running.lock().unwrap().remove(&id);
            Ok(())
        })
    }

    fn logs(&self, _id: ReplicaId, _from: LogsFrom, _follow: bool) -> LogStream {
        Box::pin(futures_util::stream::empty())
    }
}

struct Scene {
    plane: Arc<FakeControlPlane>,
    runtime: Arc<FakeRuntime>,
    agent: JoinHandle<()>,
}

impl Scene {
    fn new() -> Self {
        Self::with(Arc::default(), Arc::default())
    }
    fn with(plane: Arc<FakeControlPlane>, runtime: Arc<FakeRuntime>) -> Self {
        let agent = base::task::spawn("agent", Agent::run(plane.clone(), runtime.clone()));
        Self { plane, runtime, agent }
    }

    /// Lets a minute pass.
    async fn settle(&self) {
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert!(!self.agent.is_finished(), "the agent ended");
    }
}

fn running() -> Observed {
    Observed::Running { endpoints: vec!["127.0.0.1:80".into()] }
}

#[tokio::test(start_paused = true)]
async fn replica_is_started_and_reported() {
    let scene = Scene::new();
    scene.plane.set(1, 1, Some(spec("web")));
    scene.settle().await;
    assert_eq!(scene.plane.reports(1), [(1, Observed::Starting), (1, running())]);
    assert_eq!((scene.runtime.images(), scene.runtime.calls().len()), (vec!["web".into()], 1));
}

#[tokio::test(start_paused = true)]
async fn replica_missing_from_the_list_is_not_removed() {
    let scene = Scene::new();
    scene.plane.set(1, 1, Some(spec("web")));
    scene.plane.set(2, 1, Some(spec("other")));
    scene.settle().await;
    scene.plane.remove(1);
    scene.settle().await;
    scene.plane.remove(2);
    scene.settle().await;
    assert_eq!(scene.runtime.images(), ["web", "other"]);
    assert!(!scene.runtime.calls().contains(&"stop".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn replica_is_removed_when_requested() {
    let scene = Scene::new();
    scene.plane.set(1, 1, Some(spec("web")));
    scene.plane.set(2, 1, Some(spec("other")));
    scene.settle().await;
    scene.plane.set(1, 2, None);
    scene.settle().await;
    assert_eq!(scene.runtime.images(), ["other"]);
    assert_eq!(scene.plane.reports(1).last(), Some(&(2, Observed::Gone)));
}

#[tokio::test(start_paused = true)]
async fn removal_of_an_unknown_replica_is_reported() {
    let scene = Scene::new();
    scene.plane.set(1, 7, None);
    scene.settle().await;
    assert_eq!(scene.plane.reports(1).last(), Some(&(7, Observed::Gone)));
}

#[tokio::test(start_paused = true)]
async fn newer_generation_supersedes_a_start() {
    let scene = Scene::new();
    scene.runtime.hanging.lock().unwrap().insert("slow".into());
    scene.plane.set(1, 1, Some(spec("slow")));
    scene.settle().await;
    assert_eq!(scene.plane.reports(1), [(1, Observed::Starting)]);
    scene.plane.set(1, 2, Some(spec("web")));
    scene.settle().await;
    assert_eq!(scene.runtime.images(), ["web"]);
    assert_eq!(scene.plane.reports(1)[1..], [(2, Observed::Starting), (2, running())]);
}

#[tokio::test(start_paused = true)]
async fn removal_supersedes_a_start() {
    let scene = Scene::new();
    scene.runtime.hanging.lock().unwrap().insert("slow".into());
    scene.plane.set(1, 1, Some(spec("slow")));
    scene.settle().await;
    scene.plane.set(1, 2, None);
    scene.settle().await;
    assert_eq!(scene.runtime.calls(), ["start slow", "stop"]);
    assert_eq!(scene.plane.reports(1).last(), Some(&(2, Observed::Gone)));
}

#[tokio::test(start_paused = true)]
async fn older_generation_is_ignored() {
    let scene = Scene::new();
    scene.plane.set(1, 5, Some(spec("web")));
    scene.settle().await;
    scene.plane.set(1, 4, None);
    scene.settle().await;
    assert_eq!(scene.runtime.images(), ["web"]);
}

#[tokio::test(start_paused = true)]
async fn same_generation_is_ignored() {
    let scene = Scene::new();
    scene.plane.set(1, 1, Some(spec("web")));
    scene.settle().await;
    for _ in 0..10 {
        scene.plane.changed.notify_one();
        scene.settle().await;
    }
    assert_eq!((scene.runtime.calls().len(), scene.plane.reports(1).len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn failed_stop_is_retried() {
    let scene = Scene::new();
    scene.plane.set(1, 1, Some(spec("web")));
    scene.settle().await;
    *scene.runtime.failing_stops.lock().unwrap() = 3;
    scene.plane.set(1, 2, None);
    tokio::time::sleep(STOP_RETRY * 2).await;
    assert_eq!(scene.plane.reports(1).len(), 2, "it is not removed yet");
    scene.settle().await;
    assert_eq!(scene.runtime.calls(), ["start web", "stop", "stop", "stop", "stop"]);
    assert_eq!(scene.plane.reports(1).last(), Some(&(2, Observed::Gone)));
}

#[tokio::test(start_paused = true)]
async fn failing_stop_does_not_block_other_replicas() {
    let scene = Scene::new();
    scene.plane.set(1, 1, Some(spec("web")));
    scene.settle().await;
    *scene.runtime.failing_stops.lock().unwrap() = u32::MAX;
    scene.plane.set(1, 2, None);
    scene.plane.set(2, 1, Some(spec("other")));
    scene.settle().await;
    assert_eq!(scene.plane.reports(2).last(), Some(&(1, running())));
}

#[tokio::test(start_paused = true)]
async fn replica_desired_again_while_it_stops_is_started() {
    let scene = Scene::new();
    scene.plane.set(1, 1, Some(spec("web")));
    scene.settle().await;
    *scene.runtime.failing_stops.lock().unwrap() = 2;
    scene.plane.set(1, 2, None);
    tokio::time::sleep(STOP_RETRY).await;
    scene.plane.set(1, 3, Some(spec("again")));
    scene.settle().await;
    assert_eq!(scene.runtime.images(), ["again"]);
    assert_eq!(scene.plane.reports(1).last(), Some(&(3, running())));
}

#[tokio::test(start_paused = true)]
async fn reports_are_retried_in_order() {
    let scene = Scene::new();
    scene.settle().await;
    *scene.plane.failing_reports.lock().unwrap() = 20;
    scene.plane.set(1, 1, Some(spec("web")));
    scene.settle().await;
    assert_eq!(scene.plane.reports(1), [(1, Observed::Starting), (1, running())]);
}

#[tokio::test(start_paused = true)]
async fn failed_fetch_is_retried() {
    let plane = Arc::new(FakeControlPlane::default());
    *plane.failing_fetches.lock().unwrap() = 10;
    plane.set(1, 1, Some(spec("web")));
    let scene = Scene::with(plane, Arc::default());
    scene.settle().await;
    assert_eq!(scene.plane.reports(1).last(), Some(&(1, running())));
    assert_eq!(*scene.plane.full_fetches.lock().unwrap(), 1, "one full fetch");
}

#[tokio::test(start_paused = true)]
async fn failed_start_is_reported_and_not_retried() {
    let scene = Scene::new();
    scene.plane.set(1, 1, Some(spec("bad")));
    scene.settle().await;
    let failed = Observed::Failed { reason: command_not_found() };
    assert_eq!(scene.plane.reports(1), [(1, Observed::Starting), (1, failed)]);
    assert_eq!(scene.runtime.calls(), ["start bad"]);
    scene.plane.set(1, 2, None);
    scene.settle().await;
    assert_eq!(scene.plane.reports(1).last(), Some(&(2, Observed::Gone)));
}

#[tokio::test(start_paused = true)]
async fn exit_is_reported_without_a_restart() {
    for (image, expected) in
        [("job", Observed::Completed), ("web", Observed::Failed { reason: crashed() })]
    {
        let scene = Scene::new();
        scene.plane.set(1, 1, Some(spec(image)));
        scene.settle().await;
        scene.runtime.ended.notify_one();
        scene.settle().await;
        assert_eq!(scene.plane.reports(1).last(), Some(&(1, expected)));
        assert_eq!(scene.runtime.calls().len(), 1, "the agent must not restart it");
    }
}

#[tokio::test(start_paused = true)]
async fn every_change_is_reported() {
    let scene = Scene::new();
    scene.plane.set(1, 1, Some(spec("again")));
    scene.settle().await;
    for _ in 0..3 {
        scene.runtime.ended.notify_one();
        scene.settle().await;
    }
    let restarting = || Observed::Restarting { reason: crashed() };
    let elsewhere = Observed::Running { endpoints: vec!["127.0.0.1:81".into()] };
    let expected = [Observed::Starting, running(), restarting(), elsewhere, restarting()];
    assert_eq!(scene.plane.reports(1), expected.map(|observed| (1, observed)));
    assert_eq!(scene.runtime.calls(), ["start again"], "the runtime restarts, not the agent");
    scene.plane.set(1, 2, None);
    scene.settle().await;
    assert_eq!(scene.plane.reports(1).last(), Some(&(2, Observed::Gone)));
}

#[tokio::test(start_paused = true)]
async fn replica_without_an_image_runs_no_container() {
    let scene = Scene::new();
    scene.plane.set(1, 1, Some(Spec { image: None, ..spec("") }));
    scene.settle().await;
    let reserved = Observed::Running { endpoints: vec![] };
    assert_eq!(scene.plane.reports(1), [(1, Observed::Starting), (1, reserved)]);
    assert_eq!(scene.runtime.images(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn replicas_of_one_deployment_are_independent() {
    let scene = Scene::new();
    scene.plane.set(2, 1, Some(spec("web")));
    scene.plane.set(3, 1, Some(spec("web")));
    scene.settle().await;
    scene.plane.set(3, 2, None);
    scene.settle().await;
    assert_eq!(scene.runtime.images(), ["web"]);
    assert_eq!(scene.plane.reports(2).last(), Some(&(1, running())));
    assert_eq!(scene.plane.reports(3).last(), Some(&(2, Observed::Gone)));
}

#[tokio::test(start_paused = true)]
async fn restarted_agent_adopts_running_replicas() {
    let scene = Scene::new();
    scene.plane.set(1, 1, Some(spec("web")));
    scene.settle().await;
    scene.agent.abort();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((scene.runtime.images(), scene.runtime.calls().len()), (vec!["web".into()], 1));
    let next = Scene::with(scene.plane.clone(), scene.runtime.clone());
    next.settle().await;
    assert_eq!(next.runtime.images(), ["web"]);
    assert_eq!(next.plane.reports(1).last(), Some(&(1, running())));
    next.plane.set(1, 2, None);
    next.settle().await;
    assert!(next.runtime.images().is_empty());
}

#[tokio::test(start_paused = true)]
async fn thousand_replicas_are_reported() {
    let scene = Scene::new();
    for n in 0..1000 {
        scene.plane.set(n, 1, Some(spec("web")));
    }
    scene.settle().await;
    assert_eq!(scene.runtime.images().len(), 1000);
    assert!((0..1000).all(|n| scene.plane.reports(n).last() == Some(&(1, running()))));
    for n in 0..1000 {
        scene.plane.set(n, 2, None);
    }
    scene.settle().await;
    assert!(scene.runtime.images().is_empty());
    assert!((0..1000).all(|n| scene.plane.reports(n).last() == Some(&(2, Observed::Gone))));
}

#[tokio::test(start_paused = true)]
async fn stopped_replica_is_stopped_once_while_reports_fail() {
    let scene = Scene::new();
    scene.plane.set(1, 1, Some(spec("web")));
    scene.settle().await;
    *scene.plane.failing_reports.lock().unwrap() = 40;
    scene.plane.set(1, 2, None);
    scene.settle().await;
    assert_eq!(scene.runtime.calls(), ["start web", "stop"]);
    assert_eq!(scene.plane.reports(1).last(), Some(&(2, Observed::Gone)));
}
