//! The contract of every runtime.

use std::time::Duration;

use agent::Runtime;
use futures_util::StreamExt;
use model::agent::{Observed, ReplicaId};
use model::cluster::ONLY_NODE;
use model::deployment::{Reason, Restart, Spec};
use model::log::{LogLine, LogsFrom, Source};
use model::reason::StatusReason as _;
use model::{DeploymentId, Quantity, Resources, Xid};

use crate::lab::{Lab, get};
use crate::packing;

pub(crate) fn replica(n: u32) -> ReplicaId {
    ReplicaId { deployment: DeploymentId(Xid::new(1, [7; 5], n)), number: n }
}

pub(crate) fn shell(image: &str, script: &str) -> Spec {
    let command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let image = Some(image.to_owned());
    Spec { image, command, replicas: 1, restart: Restart::Never, ..Spec::default() }
}

/// Starts a replica. Returns its endpoints, or the reason of its failure.
pub(crate) async fn start(
    runtime: &dyn Runtime,
    id: ReplicaId,
    spec: &Spec,
) -> Result<Vec<String>, Reason> {
    match runtime.start(id, ONLY_NODE, None, spec).await {
        Observed::Running { endpoints } => Ok(endpoints),
        Observed::Completed => Ok(Vec::new()),
        Observed::Failed { reason } | Observed::Restarting { reason } => Err(reason),
        other => panic!("{other:?}"),
    }
}

/// The next observed state after `last`.
pub(crate) async fn next(runtime: &dyn Runtime, id: ReplicaId, last: &Observed) -> Observed {
    within_a_minute(runtime.changed(id, last)).await
}

async fn within_a_minute<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_mins(1), future).await.expect("timed out")
}

async fn log(runtime: &dyn Runtime, id: ReplicaId, from: LogsFrom) -> Vec<LogLine> {
    runtime.logs(id, from, false).collect().await
}

fn texts(lines: &[LogLine]) -> Vec<&str> {
    lines.iter().map(|line| line.text.as_str()).collect()
}

/// Checks the whole contract. `get` requests a page from where containers are published.
pub(crate) async fn check(runtime: &dyn Runtime, image: &str, get: impl Fn(&str) -> String) {
    check_start_and_stop(runtime, image, get).await;
    check_exits(runtime, image).await;
    check_limits(runtime, image).await;
    check_restarts(runtime, image).await;
    check_logs(runtime, image).await;
}

async fn check_start_and_stop(runtime: &dyn Runtime, image: &str, get: impl Fn(&str) -> String) {
    let id = replica(1);
    let web = Spec { ports: vec![8080], restart: Restart::Always, ..shell(image, "") };
    let web = Spec { command: Vec::new(), ..web };
    let endpoints = start(runtime, id, &web).await.unwrap();
    assert_eq!(endpoints.len(), 1);
    assert!(get(&endpoints[0]).ends_with("hello from the container\n"));
    assert_eq!(start(runtime, id, &web).await.unwrap(), endpoints, "a second start adopts it");
    // Placement does not affect the container.
    let more = Spec { replicas: 5, ..web.clone() };
    assert_eq!(start(runtime, id, &more).await.unwrap(), endpoints, "it is adopted");

    let script = "echo $MINE > /www/index.html; exec httpd -f -p 8080 -h /www";
    let mut other = Spec { ports: vec![8080], ..shell(image, script) };
    other.env.insert("MINE".to_owned(), "another one".to_owned());
    let endpoints = start(runtime, id, &other).await.unwrap();
    assert!(get(&endpoints[0]).ends_with("another one\n"), "a change replaces it");
    runtime.stop(id).await.unwrap();
    runtime.stop(id).await.unwrap();
    assert_eq!(log(runtime, id, LogsFrom::Start).await, []);
}

fn exited(code: i32) -> Reason {
    Reason::Exited { exit_code: Some(code), signal: None, oom_limit_bytes: None }
}

async fn check_exits(runtime: &dyn Runtime, image: &str) {
    for (script, expected) in
        [("exit 0", Observed::Completed), ("exit 7", Observed::Failed { reason: exited(7) })]
    {
        let id = replica(2);
        let spec = shell(image, script);
        let endpoints = start(runtime, id, &spec).await.unwrap();
        let running = Observed::Running { endpoints };
        assert_eq!(next(runtime, id, &running).await, expected);
        // A second start adopts the exited container and does not restart it.
        let endpoints = start(runtime, id, &spec).await.unwrap();
        assert_eq!(next(runtime, id, &Observed::Running { endpoints }).await, expected);
        runtime.stop(id).await.unwrap();
    }
}

async fn check_limits(runtime: &dyn Runtime, image: &str) {
    let mut resources = Resources::default();
    resources.set("ram", Quantity::whole(32 << 20));
    resources.set("cpu", Quantity::from_milli(500));
    let hog = "exec dd if=/dev/zero of=/dev/null bs=700M count=1";
    let hog = Spec { resources: resources.clone(), ..shell(image, hog) };
    let endpoints = start(runtime, replica(3), &hog).await.unwrap();
    let ended = next(runtime, replica(3), &Observed::Running { endpoints }).await;
    let reason = Reason::OOMKilled { limit_bytes: Some(32 << 20) };
    assert_eq!(ended, Observed::Failed { reason });
    runtime.stop(replica(3)).await.unwrap();

    // Amounts below the minimum are not meant as bytes: the default limit applies.
    for bytes in [1, 2 << 20] {
        resources.set("ram", Quantity::whole(bytes));
        let endpoints =
            start(runtime, replica(3), &Spec { resources: resources.clone(), ..hog.clone() })
                .await
                .unwrap();
        let ended = next(runtime, replica(3), &Observed::Running { endpoints }).await;
        let Observed::Failed { reason: Reason::OOMKilled { limit_bytes: Some(limit) } } = ended
        else {
            panic!("{bytes}: {ended:?}")
        };
        assert!(limit >= 64 << 20, "{bytes}: {limit}");
        runtime.stop(replica(3)).await.unwrap();
    }
}

async fn check_restarts(runtime: &dyn Runtime, image: &str) {
    let id = replica(4);
    let spec = shell(image, "echo up; sleep 0.7; exit 3");
    let spec = Spec { restart: Restart::OnFailure, ..spec };
    let endpoints = start(runtime, id, &spec).await.unwrap();
    let running = Observed::Running { endpoints };
    let mut last_observed = running.clone();
    for restart in 1..=2 {
        last_observed = next(runtime, id, &last_observed).await;
        let Observed::Restarting { reason: Reason::CrashLoopBackOff { last, restarts, .. } } =
            &last_observed
        else {
            panic!("{last_observed:?}")
        };
        assert_eq!((&**last, *restarts), (&exited(3), Some(restart)));
        last_observed = next(runtime, id, &last_observed).await;
        assert_eq!(last_observed, running);
    }
    // A follower reads across restarts.
    let followed = runtime.logs(id, LogsFrom::Start, true).take(4).collect::<Vec<_>>();
    let restarted = async {
        let restarting = next(runtime, id, &last_observed).await;
        next(runtime, id, &restarting).await
    };
    let (lines, now) = tokio::join!(within_a_minute(followed), restarted);
    assert_eq!((texts(&lines), now), (vec!["up"; 4], running));
    runtime.stop(id).await.unwrap();
}

async fn check_logs(runtime: &dyn Runtime, image: &str) {
    let id = replica(5);
    let script =
        "for i in 1 2 3 4 5 6; do echo $i; sleep 0.2; done; echo err >&2; sleep 0.2; seq 7 9";
    start(runtime, id, &shell(image, script)).await.unwrap();
    let followed: Vec<_> = within_a_minute(runtime.logs(id, LogsFrom::Start, true).collect()).await;
    let expected = ["1", "2", "3", "4", "5", "6", "err", "7", "8", "9"];
    assert_eq!(texts(&followed), expected, "following ends with the container");
    assert_eq!((followed[0].source, followed[6].source), (Source::Stdout, Source::Stderr));
    assert!(followed.windows(2).all(|two| two[0].at <= two[1].at));
    assert_eq!(log(runtime, id, LogsFrom::Start).await, followed);
    for (n, line) in followed.iter().enumerate() {
        let cursor = line.next.to_string().parse().unwrap();
        let rest = log(runtime, id, LogsFrom::After(cursor)).await;
        assert_eq!(rest, followed[n + 1..], "after {}", line.text);
    }
    for follow in [false, true] {
        let last: Vec<_> =
            within_a_minute(runtime.logs(id, LogsFrom::Last(2), follow).collect()).await;
        assert_eq!(last, followed[8..]);
    }
    runtime.stop(id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_runtime_fulfils_the_contract() {
    let lab = Lab::with(|options| options.restart_backoff = Duration::from_secs(1)).await;
    let image = lab.registry.put("web", &packing::web());
    check(lab.runtime(), &image, |endpoint| get(endpoint, "/")).await;
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_shim_is_replaced_if_the_policy_demands_it() {
    let lab = Lab::new().await;
    let image = lab.registry.put("web", &packing::web());
    let id = replica(1);
    let spec = Spec { restart: Restart::Always, ..shell(&image, "sleep 1000") };
    let runtime = lab.runtime();
    let endpoints = start(runtime, id, &spec).await.unwrap();
    let running = Observed::Running { endpoints };
    let state = lab.options.dir.join(format!("containers/{}-1/state.json", id.deployment));
    let state: serde_json::Value = serde_json::from_slice(&std::fs::read(state).unwrap()).unwrap();
    crate::lab::kill(i32::try_from(state["shim"].as_i64().unwrap()).unwrap());
    let killed = next(runtime, id, &running).await;
    let Observed::Restarting { reason } = &killed else { panic!("{killed:?}") };
    assert_eq!(reason.code(), "ContainerLost");
    assert_eq!(next(runtime, id, &killed).await, running);
    Runtime::stop(runtime, id).await.unwrap();
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}
