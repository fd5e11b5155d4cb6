//! The loop with a control plane and a runtime that do what a test wants. Time is simulated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use futures_util::future::BoxFuture;
use model::deployment::{Reason, Spec};
use model::{ClusterId, DeploymentId, Xid};
use runtime::LogStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::*;
use crate::{Doing, Error};

/// Two replicas of each deployment: 0 and 1 are of the same one.
fn replica(n: u32) -> ReplicaId {
    ReplicaId { deployment: DeploymentId(Xid::new(1, [0; 5], n / 2)), number: n % 2 }
}

fn spec(image: &str) -> Spec {
    Spec { image: Some(image.into()), replicas: 1, ports: vec![80], ..Spec::default() }
}

fn no_command() -> Reason {
    Reason::CommandNotFound { command: "run".into() }
}

fn fell_over() -> Reason {
    Reason::Exited { exit_code: Some(3), signal: None, oom_limit_bytes: None }
}

/// A control plane: says what it is told to say, and keeps what it hears.
#[derive(Default)]
struct Plane {
    wishes: Mutex<BTreeMap<ReplicaId, Desired>>,
    reports: Mutex<Vec<Report>>,
    /// How many questions are still not answered.
    silence: Mutex<u32>,
    /// How many reports are still not taken.
    deafness: Mutex<u32>,
    asked_for_all: Mutex<u32>,
    changed: Notify,
}

impl Plane {
    fn wish(&self, n: u32, generation: i64, run: Option<Spec>) {
        let id = replica(n);
        let cluster = ClusterId(Xid::new(1, [1; 5], 0));
        let desired = Desired { replica: id, cluster, node: "default".into(), generation, run };
        self.wishes.lock().unwrap().insert(id, desired);
        self.changed.notify_one();
    }

    /// The list no longer has it.
    fn forget(&self, n: u32) {
        self.wishes.lock().unwrap().remove(&replica(n));
        self.changed.notify_one();
    }

    /// What was heard of a replica, in order.
    fn heard(&self, n: u32) -> Vec<(i64, Observed)> {
        let reports = self.reports.lock().unwrap();
        let about = reports.iter().filter(|report| report.replica == replica(n));
        about.map(|report| (report.generation, report.observed.clone())).collect()
    }
}

impl Link for Plane {
    async fn desired(&self, all: bool) -> Result<Vec<Desired>, LinkError> {
        pass(&self.silence)?;
        *self.asked_for_all.lock().unwrap() += u32::from(all);
        Ok(self.wishes.lock().unwrap().values().cloned().collect())
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }

    async fn report(&self, reports: &[Report]) -> Result<(), LinkError> {
        pass(&self.deafness)?;
        let mut wishes = self.wishes.lock().unwrap();
        for report in reports {
            // What is gone is no longer wished for.
            if report.observed == Observed::Gone
                && wishes.get(&report.replica).is_some_and(|w| w.generation == report.generation)
            {
                wishes.remove(&report.replica);
            }
        }
        self.reports.lock().unwrap().extend_from_slice(reports);
        Ok(())
    }
}

/// Fails as often as it still shall.
fn pass(failures: &Mutex<u32>) -> Result<(), LinkError> {
    let mut left = failures.lock().unwrap();
    if *left == 0 {
        return Ok(());
    }
    *left -= 1;
    Err(LinkError("it was told to fail".into()))
}

/// A machine: what runs on it, what was done with it.
#[derive(Default)]
struct Machine {
    running: Mutex<BTreeMap<ReplicaId, String>>,
    calls: Mutex<Vec<String>>,
    /// Images that never come up.
    never: Mutex<BTreeSet<String>>,
    /// How many stops still fail.
    stubborn: Mutex<u32>,
    ended: Notify,
}

impl Machine {
    fn images(&self) -> Vec<String> {
        self.running.lock().unwrap().values().cloned().collect()
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }

    fn note(&self, what: &str) {
        self.calls.lock().unwrap().push(what.to_owned());
    }
}

impl Runtime for Machine {
    fn name(&self) -> &'static str {
        "machine"
    }

    fn start<'a>(&'a self, id: ReplicaId, _node: &'a str, spec: &'a Spec) -> Doing<'a> {
        Box::pin(async move {
            let image = spec.image.clone().unwrap_or_default();
            self.note(&format!("start {image}"));
            if self.never.lock().unwrap().contains(&image) {
                std::future::pending::<()>().await;
            }
            if image == "bad" {
                return Observed::Failed { reason: no_command() };
            }
            self.running.lock().unwrap().insert(id, image);
            Observed::Running { endpoints: vec!["127.0.0.1:80".into()] }
        })
    }

    fn changed<'a>(&'a self, id: ReplicaId, seen: &'a Observed) -> Doing<'a> {
        Box::pin(async move {
            self.ended.notified().await;
            let image = self.running.lock().unwrap().get(&id).cloned();
            match (image.as_deref(), seen) {
                (Some("job"), _) => Observed::Completed,
                (Some("again"), Observed::Running { .. }) => {
                    Observed::Restarting { reason: fell_over() }
                }
                (Some("again"), _) => Observed::Running { endpoints: vec!["127.0.0.1:81".into()] },
                _ => Observed::Failed { reason: fell_over() },
            }
        })
    }

    fn stop(&self, id: ReplicaId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.note("stop");
            let mut stubborn = self.stubborn.lock().unwrap();
            if *stubborn > 0 {
                *stubborn -= 1;
                return Err(Error::Failed("It does not stop.".into()));
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
    plane: Arc<Plane>,
    machine: Arc<Machine>,
    agent: JoinHandle<()>,
}

impl Scene {
    fn new() -> Self {
        Self::of(Arc::default(), Arc::default())
    }
    fn of(plane: Arc<Plane>, machine: Arc<Machine>) -> Self {
        let agent = base::task::spawn("agent", Agent::run(plane.clone(), machine.clone()));
        Self { plane, machine, agent }
    }

    /// Lets everything happen that happens within a minute.
    async fn later(&self) {
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert!(!self.agent.is_finished(), "the agent has ended");
    }
}

fn running() -> Observed {
    Observed::Running { endpoints: vec!["127.0.0.1:80".into()] }
}

#[tokio::test(start_paused = true)]
async fn it_starts_what_shall_run_and_says_so() {
    let scene = Scene::new();
    scene.plane.wish(1, 1, Some(spec("web")));
    scene.later().await;
    assert_eq!(scene.plane.heard(1), [(1, Observed::Starting), (1, running())]);
    assert_eq!((scene.machine.images(), scene.machine.calls().len()), (vec!["web".into()], 1));
}

#[tokio::test(start_paused = true)]
async fn it_never_removes_what_has_merely_vanished_from_the_list() {
    let scene = Scene::new();
    scene.plane.wish(1, 1, Some(spec("web")));
    scene.plane.wish(2, 1, Some(spec("other")));
    scene.later().await;
    scene.plane.forget(1);
    scene.later().await;
    scene.plane.forget(2);
    scene.later().await;
    assert_eq!(scene.machine.images(), ["web", "other"]);
    assert!(!scene.machine.calls().contains(&"stop".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn it_removes_what_it_is_told_shall_be_gone() {
    let scene = Scene::new();
    scene.plane.wish(1, 1, Some(spec("web")));
    scene.plane.wish(2, 1, Some(spec("other")));
    scene.later().await;
    scene.plane.wish(1, 2, None);
    scene.later().await;
    assert_eq!(scene.machine.images(), ["other"]);
    assert_eq!(scene.plane.heard(1).last(), Some(&(2, Observed::Gone)));
}

#[tokio::test(start_paused = true)]
async fn what_it_has_never_seen_can_be_gone_too() {
    let scene = Scene::new();
    scene.plane.wish(1, 7, None);
    scene.later().await;
    assert_eq!(scene.plane.heard(1).last(), Some(&(7, Observed::Gone)));
}

#[tokio::test(start_paused = true)]
async fn a_newer_wish_wins_while_it_starts() {
    let scene = Scene::new();
    scene.machine.never.lock().unwrap().insert("slow".into());
    scene.plane.wish(1, 1, Some(spec("slow")));
    scene.later().await;
    assert_eq!(scene.plane.heard(1), [(1, Observed::Starting)]);
    scene.plane.wish(1, 2, Some(spec("web")));
    scene.later().await;
    assert_eq!(scene.machine.images(), ["web"]);
    assert_eq!(scene.plane.heard(1)[1..], [(2, Observed::Starting), (2, running())]);
}

#[tokio::test(start_paused = true)]
async fn one_that_shall_go_while_it_starts_is_stopped() {
    let scene = Scene::new();
    scene.machine.never.lock().unwrap().insert("slow".into());
    scene.plane.wish(1, 1, Some(spec("slow")));
    scene.later().await;
    scene.plane.wish(1, 2, None);
    scene.later().await;
    assert_eq!(scene.machine.calls(), ["start slow", "stop"]);
    assert_eq!(scene.plane.heard(1).last(), Some(&(2, Observed::Gone)));
}

#[tokio::test(start_paused = true)]
async fn an_older_wish_changes_nothing() {
    let scene = Scene::new();
    scene.plane.wish(1, 5, Some(spec("web")));
    scene.later().await;
    scene.plane.wish(1, 4, None);
    scene.later().await;
    assert_eq!(scene.machine.images(), ["web"]);
}

#[tokio::test(start_paused = true)]
async fn the_same_wish_again_changes_nothing() {
    let scene = Scene::new();
    scene.plane.wish(1, 1, Some(spec("web")));
    scene.later().await;
    for _ in 0..10 {
        scene.plane.changed.notify_one();
        scene.later().await;
    }
    assert_eq!((scene.machine.calls().len(), scene.plane.heard(1).len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_fails_is_tried_again_until_it_works() {
    let scene = Scene::new();
    scene.plane.wish(1, 1, Some(spec("web")));
    scene.later().await;
    *scene.machine.stubborn.lock().unwrap() = 3;
    scene.plane.wish(1, 2, None);
    tokio::time::sleep(STOP_RETRY * 2).await;
    assert_eq!(scene.plane.heard(1).len(), 2, "it is not gone yet");
    scene.later().await;
    assert_eq!(scene.machine.calls(), ["start web", "stop", "stop", "stop", "stop"]);
    assert_eq!(scene.plane.heard(1).last(), Some(&(2, Observed::Gone)));
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_stop_does_not_hold_up_others() {
    let scene = Scene::new();
    scene.plane.wish(1, 1, Some(spec("web")));
    scene.later().await;
    *scene.machine.stubborn.lock().unwrap() = u32::MAX;
    scene.plane.wish(1, 2, None);
    scene.plane.wish(2, 1, Some(spec("other")));
    scene.later().await;
    assert_eq!(scene.plane.heard(2).last(), Some(&(1, running())));
}

#[tokio::test(start_paused = true)]
async fn one_that_shall_run_again_while_it_stops_runs_again() {
    let scene = Scene::new();
    scene.plane.wish(1, 1, Some(spec("web")));
    scene.later().await;
    *scene.machine.stubborn.lock().unwrap() = 2;
    scene.plane.wish(1, 2, None);
    tokio::time::sleep(STOP_RETRY).await;
    scene.plane.wish(1, 3, Some(spec("again")));
    scene.later().await;
    assert_eq!(scene.machine.images(), ["again"]);
    assert_eq!(scene.plane.heard(1).last(), Some(&(3, running())));
}

#[tokio::test(start_paused = true)]
async fn reports_are_repeated_until_they_arrive_in_their_order() {
    let scene = Scene::new();
    scene.later().await;
    *scene.plane.deafness.lock().unwrap() = 20;
    scene.plane.wish(1, 1, Some(spec("web")));
    scene.later().await;
    assert_eq!(scene.plane.heard(1), [(1, Observed::Starting), (1, running())]);
}

#[tokio::test(start_paused = true)]
async fn a_control_plane_that_does_not_answer_is_asked_again() {
    let plane = Arc::new(Plane::default());
    *plane.silence.lock().unwrap() = 10;
    plane.wish(1, 1, Some(spec("web")));
    let scene = Scene::of(plane, Arc::default());
    scene.later().await;
    assert_eq!(scene.plane.heard(1).last(), Some(&(1, running())));
    assert_eq!(*scene.plane.asked_for_all.lock().unwrap(), 1, "all of it, once it answers");
}

#[tokio::test(start_paused = true)]
async fn what_can_not_run_says_why_and_is_left_until_the_wish_changes() {
    let scene = Scene::new();
    scene.plane.wish(1, 1, Some(spec("bad")));
    scene.later().await;
    let failed = Observed::Failed { reason: no_command() };
    assert_eq!(scene.plane.heard(1), [(1, Observed::Starting), (1, failed)]);
    assert_eq!(scene.machine.calls(), ["start bad"]);
    scene.plane.wish(1, 2, None);
    scene.later().await;
    assert_eq!(scene.plane.heard(1).last(), Some(&(2, Observed::Gone)));
}

#[tokio::test(start_paused = true)]
async fn what_ends_by_itself_is_reported_as_it_ended() {
    for (image, expected) in
        [("job", Observed::Completed), ("web", Observed::Failed { reason: fell_over() })]
    {
        let scene = Scene::new();
        scene.plane.wish(1, 1, Some(spec(image)));
        scene.later().await;
        scene.machine.ended.notify_one();
        scene.later().await;
        assert_eq!(scene.plane.heard(1).last(), Some(&(1, expected)));
        assert_eq!(scene.machine.calls().len(), 1, "it must not be started again by itself");
    }
}

#[tokio::test(start_paused = true)]
async fn every_change_is_reported_until_it_has_ended() {
    let scene = Scene::new();
    scene.plane.wish(1, 1, Some(spec("again")));
    scene.later().await;
    for _ in 0..3 {
        scene.machine.ended.notify_one();
        scene.later().await;
    }
    let restarting = || Observed::Restarting { reason: fell_over() };
    let elsewhere = Observed::Running { endpoints: vec!["127.0.0.1:81".into()] };
    let expected = [Observed::Starting, running(), restarting(), elsewhere, restarting()];
    assert_eq!(scene.plane.heard(1), expected.map(|observed| (1, observed)));
    assert_eq!(scene.machine.calls(), ["start again"], "the runtime restarts, not the agent");
    scene.plane.wish(1, 2, None);
    scene.later().await;
    assert_eq!(scene.plane.heard(1).last(), Some(&(2, Observed::Gone)));
}

#[tokio::test(start_paused = true)]
async fn without_an_image_nothing_is_run() {
    let scene = Scene::new();
    scene.plane.wish(1, 1, Some(Spec { image: None, ..spec("") }));
    scene.later().await;
    let holds = Observed::Running { endpoints: vec![] };
    assert_eq!(scene.plane.heard(1), [(1, Observed::Starting), (1, holds)]);
    assert_eq!(scene.machine.images(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn replicas_of_one_deployment_are_kept_apart() {
    let scene = Scene::new();
    scene.plane.wish(2, 1, Some(spec("web")));
    scene.plane.wish(3, 1, Some(spec("web")));
    scene.later().await;
    scene.plane.wish(3, 2, None);
    scene.later().await;
    assert_eq!(scene.machine.images(), ["web"]);
    assert_eq!(scene.plane.heard(2).last(), Some(&(1, running())));
    assert_eq!(scene.plane.heard(3).last(), Some(&(2, Observed::Gone)));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_ends_leaves_what_runs_and_the_next_adopts_it() {
    let scene = Scene::new();
    scene.plane.wish(1, 1, Some(spec("web")));
    scene.later().await;
    scene.agent.abort();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((scene.machine.images(), scene.machine.calls().len()), (vec!["web".into()], 1));
    let next = Scene::of(scene.plane.clone(), scene.machine.clone());
    next.later().await;
    assert_eq!(next.machine.images(), ["web"]);
    assert_eq!(next.plane.heard(1).last(), Some(&(1, running())));
    next.plane.wish(1, 2, None);
    next.later().await;
    assert!(next.machine.images().is_empty());
}

#[tokio::test(start_paused = true)]
async fn many_at_once_are_all_reported() {
    let scene = Scene::new();
    for n in 0..1000 {
        scene.plane.wish(n, 1, Some(spec("web")));
    }
    scene.later().await;
    assert_eq!(scene.machine.images().len(), 1000);
    assert!((0..1000).all(|n| scene.plane.heard(n).last() == Some(&(1, running()))));
    for n in 0..1000 {
        scene.plane.wish(n, 2, None);
    }
    scene.later().await;
    assert!(scene.machine.images().is_empty());
    assert!((0..1000).all(|n| scene.plane.heard(n).last() == Some(&(2, Observed::Gone))));
}

#[tokio::test(start_paused = true)]
async fn while_reports_do_not_arrive_a_stopped_one_is_not_stopped_over_and_over() {
    let scene = Scene::new();
    scene.plane.wish(1, 1, Some(spec("web")));
    scene.later().await;
    *scene.plane.deafness.lock().unwrap() = 40;
    scene.plane.wish(1, 2, None);
    scene.later().await;
    assert_eq!(scene.machine.calls(), ["start web", "stop"]);
    assert_eq!(scene.plane.heard(1).last(), Some(&(2, Observed::Gone)));
}
