//! The Kubernetes runtime against a fake API server; the test plays controllers and kubelets.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use agent::Runtime;
use agent::kubernetes::{Kubernetes, Options};
use futures_util::StreamExt as _;
use model::agent::{Observed, ReplicaId};
use model::deployment::{Probe, Pull, Reason, Restart, Spec};
use model::log::LogsFrom;
use model::reason::StatusReason as _;
use model::{DeploymentId, Xid};
use serde_json::{Value, json};
use tempfile::TempDir;
use testing::apiserver::{Apiserver, Fault, FaultKind};

pub(crate) const NS: &str = "paddock";
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

/// An API server and a runtime connected to it.
pub(crate) struct Lab {
    pub(crate) server: Apiserver,
    pub(crate) runtime: Kubernetes,
    pub(crate) dir: TempDir,
}

impl Lab {
    pub(crate) async fn new() -> Self {
        Self::with(None).await
    }

    pub(crate) async fn with(instance_role: Option<String>) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let server = Apiserver::start().await;
        server.controller().namespace(NS);
        server.controller().node("n1", &json!({"cpu": "4", "memory": "8Gi"}));
        let dir = tempfile::tempdir().unwrap();
        let kubeconfig = dir.path().join("kubeconfig");
        std::fs::write(&kubeconfig, server.kubeconfig("one")).unwrap();
        let options = Options { instance_role, ..options(kubeconfig) };
        let runtime = Kubernetes::probe(options).await.unwrap();
        Self { server, runtime, dir }
    }

    pub(crate) fn get(&self, group: &str, plural: &str, name: &str) -> Option<Value> {
        self.server.controller().get(group, plural, NS, name)
    }

    /// Waits for a Deployment or Job and creates a running pod of it.
    async fn run(&self, group: &str, plural: &str, name: &str) -> String {
        let controller = until(|| self.get(group, plural, name)).await;
        self.server.controller().running_pod(&controller)
    }

    /// Starts a replica and its pod.
    pub(crate) async fn started(&self, id: ReplicaId, spec: &Spec) -> Observed {
        let name = name(id);
        let (group, plural) =
            if spec.ports.is_empty() { ("batch", "jobs") } else { ("apps", "deployments") };
        let (condition, _) =
            tokio::join!(self.runtime.start(id, "n1", None, spec), self.run(group, plural, &name));
        condition
    }

    /// The next observed state after `last`, while `change` runs.
    pub(crate) async fn after(
        &self,
        id: ReplicaId,
        last: &Observed,
        change: impl Future<Output = ()>,
    ) -> Observed {
        let changed = async {
            let changed = self.runtime.changed(id, last);
            tokio::time::timeout(TIMEOUT, changed).await.expect("the change is noticed")
        };
        tokio::join!(changed, change).0
    }

    fn crash(&self, id: ReplicaId, restarts: i32, code: i32, reason: &str) {
        let status = json!({"status": {"containerStatuses": [{"name": "main", "image": "i", "imageID": "",
            "ready": false, "restartCount": restarts,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
            "lastState": {"terminated": {"exitCode": code, "reason": reason}}}]}});
        let pod = format!("{}-abcde", name(id));
        self.server.controller().patch("", "pods", NS, &pod, &status);
    }
}

pub(crate) fn options(kubeconfig: PathBuf) -> Options {
    Options { kubeconfig: Some(kubeconfig), namespace: Some(NS.into()), ..Options::default() }
}

pub(crate) fn replica(deployment: u32, number: u32) -> ReplicaId {
    ReplicaId { deployment: DeploymentId(Xid::new(1, [0; 5], deployment)), number }
}

pub(crate) fn name(id: ReplicaId) -> String {
    format!("paddock-{}-{}", id.deployment, id.number)
}

pub(crate) fn web() -> Spec {
    let mut resources = model::Resources::default();
    resources.set("cpu", "500m".parse().unwrap());
    resources.set("ram", "64Mi".parse().unwrap());
    resources.set("gpu", "1".parse().unwrap());
    let env = [("PASSWORD".to_owned(), "s3cret".to_owned())].into();
    Spec { image: Some("web:1".into()), resources, env, ports: vec![80, 81], ..Spec::default() }
}

fn job() -> Spec {
    Spec { image: Some("job:1".into()), command: vec!["run".into()], ..Spec::default() }
}

pub(crate) async fn until<T>(find: impl Fn() -> Option<T>) -> T {
    let wait = async {
        loop {
            if let Some(found) = find() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.expect("timed out")
}

pub(crate) fn reason(observed: Observed) -> Reason {
    match observed {
        Observed::Failed { reason } | Observed::Restarting { reason } => reason,
        other => panic!("{other:?}"),
    }
}

/// The message of a failed start.
pub(crate) fn start_error(observed: Observed) -> String {
    match reason(observed) {
        Reason::StartFailed { message } => message,
        other => panic!("{other:?}"),
    }
}

fn exited(code: i32) -> Reason {
    Reason::Exited { exit_code: Some(code), signal: None, oom_limit_bytes: None }
}

#[tokio::test]
async fn image_becomes_a_deployment_with_a_service() {
    let lab = Lab::new().await;
    let id = replica(1, 0);
    let service = format!("paddock-{}", id.deployment);
    let condition = lab.started(id, &web()).await;
    let endpoints: Vec<String> = [80, 81].map(|port| format!("{service}.{NS}.svc:{port}")).into();
    assert_eq!(condition, Observed::Running { endpoints });

    let deployment = lab.get("apps", "deployments", &name(id)).unwrap();
    assert!(!deployment.to_string().contains("s3cret"), "only the Secret has the environment");
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    let pinned = pod.pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0");
    assert_eq!(
        *pinned.unwrap(),
        json!({"key": "metadata.name", "operator": "In", "values": ["n1"]})
    );
    let container = &pod["containers"][0];
    let amounts = json!({"cpu": "500m", "memory": "67108864", "nvidia.com/gpu": "1"});
    assert_eq!(
        (&container["resources"]["requests"], &container["resources"]["limits"]),
        (&amounts, &amounts)
    );
    assert_eq!(container["env"][0]["valueFrom"]["secretKeyRef"]["name"], name(id));
    let secret = lab.get("", "secrets", &name(id)).unwrap();
    assert_eq!(secret["data"]["PASSWORD"], "czNjcmV0");
    let object = lab.get("", "services", &service).unwrap();
    assert_eq!(
        object["spec"]["selector"],
        json!({"paddock.dev/deployment": id.deployment.to_string()})
    );
    for request in lab.server.requests().iter().filter(|request| request.method == "PATCH") {
        assert_eq!(request.content_type, "application/apply-patch+yaml");
        assert_eq!(request.param("fieldManager"), Some("paddock-agent"));
        assert_eq!(request.param("force"), Some("true"));
    }

    lab.runtime.stop(id).await.unwrap();
    for (group, plural) in
        [("apps", "deployments"), ("", "pods"), ("", "secrets"), ("", "services")]
    {
        assert_eq!(lab.server.controller().list(group, plural), Vec::<Value>::new(), "{plural}");
    }
    let requests = lab.server.requests().into_iter();
    let deletions = requests.filter(|request| request.method == "DELETE");
    let policies: Vec<Value> =
        deletions.map(|request| request.body["propagationPolicy"].clone()).collect();
    assert_eq!(policies, [json!("Foreground"), Value::Null, Value::Null], "after its pods");
    lab.runtime.stop(id).await.unwrap();
}

#[tokio::test]
async fn pod_failures_and_deletions_are_reported() {
    let lab = Lab::new().await;
    let id = replica(1, 0);
    let spec = Spec { restart: Restart::Always, ..web() };
    let running = lab.started(id, &spec).await;
    let crashed = lab.after(id, &running, async { lab.crash(id, 1, 3, "Error") }).await;
    let expected = Reason::CrashLoopBackOff {
        last: Box::new(exited(3)),
        retry_in_ms: Some(20_000),
        restarts: Some(2),
    };
    assert_eq!(crashed, Observed::Restarting { reason: expected });
    let killed = lab.after(id, &crashed, async { lab.crash(id, 2, 137, "OOMKilled") }).await;
    let Reason::CrashLoopBackOff { last, .. } = reason(killed.clone()) else {
        panic!("{killed:?}")
    };
    assert_eq!(*last, Reason::OOMKilled { limit_bytes: Some(64 << 20) });
    let deployment = lab.get("apps", "deployments", &name(id)).unwrap();
    let restart = async { drop(lab.server.controller().running_pod(&deployment)) };
    let again = lab.after(id, &killed, restart).await;
    assert_eq!(again, running);
    // A deleted pod is recreated; a deleted Deployment is not.
    let pod = format!("{}-abcde", name(id));
    let deleted =
        lab.after(id, &again, async { lab.server.controller().remove("", "pods", NS, &pod) }).await;
    assert!(
        matches!(&deleted, Observed::Restarting { reason } if reason.code() == "ContainerLost")
    );
    let removed = async { lab.server.controller().remove("apps", "deployments", NS, &name(id)) };
    let removed = lab.after(id, &deleted, removed).await;
    assert!(
        matches!(&removed, Observed::Failed { reason } if reason.code() == "ContainerLost"),
        "{removed:?}"
    );
}

#[tokio::test]
async fn failed_starts_are_reported() {
    let lab = Lab::new().await;
    let waiting = |reason: &str| {
        json!({"name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": reason, "message": "manifest unknown"}}})
    };
    let id = replica(1, 0);
    let play = async {
        let deployment = until(|| lab.get("apps", "deployments", &name(id))).await;
        lab.server.controller().pod(&deployment, "Pending", &waiting("ImagePullBackOff"));
    };
    let spec = web();
    let (failed, ()) = tokio::join!(lab.runtime.start(id, "n1", None, &spec), play);
    let pull = Reason::ImagePullFailed {
        image: "web:1".into(),
        cause: Pull::NotFound,
        message: "manifest unknown".into(),
        is_retried: false,
    };
    assert_eq!(failed, Observed::Failed { reason: pull });

    let id = replica(2, 0);
    let quota = json!({"status": {"conditions": [{"type": "ReplicaFailure", "status": "True",
        "reason": "FailedCreate", "message": "exceeded quota: paddock"}]}});
    let play = async {
        until(|| lab.get("apps", "deployments", &name(id))).await;
        lab.server.controller().patch("apps", "deployments", NS, &name(id), &quota);
    };
    let (waits, ()) = tokio::join!(lab.runtime.start(id, "n1", None, &spec), play);
    let (why, message) = ("FailedCreate".into(), "exceeded quota: paddock".into());
    assert_eq!(reason(waits), Reason::PodFailed { reason: why, message });

    let bad = Spec { env: [("1 bad".to_owned(), String::new())].into(), ..web() };
    let why = start_error(lab.runtime.start(replica(3, 0), "n1", None, &bad).await);
    assert!(why.contains("Invalid environment variable 1 bad"), "{why}");
    assert_eq!(lab.get("", "secrets", &name(replica(3, 0))), None);
    lab.server.deny("patch", "apps", "deployments");
    let why = start_error(lab.runtime.start(replica(4, 0), "n1", None, &web()).await);
    assert!(
        why.starts_with("Kubernetes refused to apply Deployment") && why.contains("cannot patch"),
        "{why}"
    );
}

#[tokio::test]
async fn readiness_check_gates_running_and_times_out() {
    let lab = Lab::new().await;
    let probe = |within| Some(Probe { port: 80, http: Some(("/ok".into(), 200)), within });
    let id = replica(1, 0);
    let unready = json!({"name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"running": {}}});
    let play = async {
        let deployment = until(|| lab.get("apps", "deployments", &name(id))).await;
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["readinessProbe"]["httpGet"], json!({"path": "/ok", "port": 80}));
        lab.server.controller().pod(&deployment, "Running", &unready);
        tokio::time::sleep(Duration::from_millis(100)).await;
        lab.server.controller().running_pod(&deployment);
    };
    let spec = Spec { ready: probe(60), ..web() };
    let (running, ()) = tokio::join!(lab.runtime.start(id, "n1", None, &spec), play);
    assert!(matches!(running, Observed::Running { .. }), "{running:?}");
    let id = replica(2, 0);
    let play = async {
        let deployment = until(|| lab.get("apps", "deployments", &name(id))).await;
        lab.server.controller().pod(&deployment, "Running", &unready);
    };
    let spec = Spec { ready: probe(0), ..web() };
    let (late, ()) = tokio::join!(lab.runtime.start(id, "n1", None, &spec), play);
    let late = reason(late);
    assert!(
        matches!(
            late,
            Reason::ReadinessCheckFailed { port: Some(80), within_seconds: Some(0), .. }
        ),
        "{late:?}"
    );
}

#[tokio::test]
async fn replica_that_runs_to_completion_is_a_job() {
    let lab = Lab::new().await;
    let (good, bad) = (replica(1, 0), replica(2, 0));
    let never = Spec { restart: Restart::Never, ..job() };
    let ended = |code: i32| {
        json!({"name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": code, "reason": "x"}}})
    };
    for (id, spec, code) in [(good, job(), 0), (bad, never, 4)] {
        let running = lab.started(id, &spec).await;
        assert_eq!(running, Observed::Running { endpoints: vec![] });
        let object = lab.get("batch", "jobs", &name(id)).unwrap();
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let end = async { drop(lab.server.controller().pod(&object, phase, &ended(code))) };
        let end = lab.after(id, &running, end).await;
        match code {
            0 => assert_eq!(end, Observed::Completed),
            _ => assert_eq!(end, Observed::Failed { reason: exited(4) }),
        }
        lab.runtime.stop(id).await.unwrap();
    }
    assert_eq!(
        lab.server.controller().list("", "pods"),
        Vec::<Value>::new(),
        "pods are deleted with their Job"
    );
}

#[tokio::test]
async fn running_objects_are_adopted_and_changed_ones_replaced() {
    let lab = Lab::new().await;
    let (id, other) = (replica(1, 0), replica(2, 0));
    lab.started(id, &web()).await;
    lab.started(other, &job()).await;
    let before =
        [lab.get("apps", "deployments", &name(id)), lab.get("batch", "jobs", &name(other))];
    let runtime = Kubernetes::probe(options(lab.dir.path().join("kubeconfig"))).await.unwrap();
    let found = runtime.start(id, "n1", None, &web()).await;
    assert!(matches!(found, Observed::Running { .. }), "{found:?}");
    let found = runtime.start(other, "n1", None, &job()).await;
    assert!(matches!(found, Observed::Running { .. }), "{found:?}");
    let after = [lab.get("apps", "deployments", &name(id)), lab.get("batch", "jobs", &name(other))];
    assert_eq!(before, after);
    let newer = Spec { image: Some("job:2".into()), ..job() };
    let uid = |job: Option<Value>| job.map(|job| job["metadata"]["uid"].clone());
    let play = async {
        let object = until(|| {
            lab.get("batch", "jobs", &name(other)).filter(|job| {
                job["metadata"]["uid"] != after[1].as_ref().unwrap()["metadata"]["uid"]
            })
        });
        lab.server.controller().running_pod(&object.await);
    };
    tokio::join!(runtime.start(other, "n1", None, &newer), play);
    assert_ne!(uid(lab.get("batch", "jobs", &name(other))), uid(after[1].clone()));
}

#[tokio::test]
async fn service_is_shared_and_deleted_with_the_last_replica() {
    let lab = Lab::new().await;
    let (one, two) = (replica(1, 0), replica(1, 1));
    lab.started(one, &web()).await;
    lab.started(two, &web()).await;
    assert_eq!(lab.server.controller().list("", "services").len(), 1);
    lab.runtime.stop(one).await.unwrap();
    assert_eq!(lab.server.controller().list("", "services").len(), 1);
    lab.runtime.stop(two).await.unwrap();
    assert_eq!(lab.server.controller().list("", "services").len(), 0);
}

#[tokio::test]
async fn objects_of_other_owners_are_not_touched() {
    let lab = Lab::new().await;
    let id = replica(1, 0);
    let theirs = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name(id), "namespace": NS}});
    let theirs = lab.server.controller().put("", "secrets", theirs);
    let why = start_error(lab.runtime.start(id, "n1", None, &web()).await);
    assert!(why.contains("has another owner"), "{why}");
    assert!(lab.runtime.stop(id).await.is_err());
    assert_eq!(lab.get("", "secrets", &name(id)), Some(theirs));
}

#[tokio::test]
async fn terminating_objects_are_waited_for() {
    let lab = Lab::new().await;
    let (id, controller) = (replica(1, 0), lab.server.controller());
    lab.started(id, &web()).await;
    let old = lab.get("apps", "deployments", &name(id)).unwrap();
    let deletion = json!({"metadata": {"deletionTimestamp": "2025-01-01T00:00:00Z", "finalizers": ["foregroundDeletion"]}});
    controller.patch("apps", "deployments", NS, &name(id), &deletion);
    let spec = web();
    let play = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        controller.remove("apps", "deployments", NS, &name(id));
        let is_new = |now: &Value| now["metadata"]["uid"] != old["metadata"]["uid"];
        let deployment = until(|| lab.get("apps", "deployments", &name(id)).filter(is_new)).await;
        controller.running_pod(&deployment);
    };
    let (running, ()) = tokio::join!(lab.runtime.start(id, "n1", None, &spec), play);
    assert!(matches!(running, Observed::Running { .. }), "{running:?}");
    // A finalizer delays the deletion.
    lab.server.delay_deletions(true);
    let finish = async {
        let is_deleting = |now: &Value| now["metadata"]["deletionTimestamp"].is_string();
        until(|| lab.get("apps", "deployments", &name(id)).filter(is_deleting)).await;
        assert!(lab.get("", "secrets", &name(id)).is_some(), "the record is deleted last");
        controller.remove("apps", "deployments", NS, &name(id));
    };
    let (stopped, ()) = tokio::join!(lab.runtime.stop(id), finish);
    stopped.unwrap();
    assert!(lab.get("", "secrets", &name(id)).is_none());
}

#[tokio::test]
async fn replicas_share_one_watch_per_kind() {
    let lab = Lab::new().await;
    for number in 0..20 {
        lab.started(replica(1, number), &web()).await;
    }
    let requests = lab.server.requests().into_iter();
    let watches = requests.filter(|request| request.param("watch").is_some());
    let mut paths: Vec<String> = watches.map(|request| request.path).collect();
    paths.sort();
    assert_eq!(
        paths,
        [
            "/api/v1/namespaces",
            "/api/v1/nodes",
            "/api/v1/pods",
            "/apis/apps/v1/deployments",
            "/apis/batch/v1/jobs"
        ]
    );
}

#[tokio::test]
async fn watches_survive_failures_of_the_apiserver() {
    let lab = Lab::new().await;
    let id = replica(1, 0);
    let mut last = lab.started(id, &Spec { restart: Restart::Always, ..web() }).await;
    for (number, what) in
        ["410 event", "410 response", "restart", "token", "busy", "garbage", "cut"]
            .iter()
            .enumerate()
    {
        let fault = |how| {
            lab.server.fault(Fault::new("GET", "/pods?", 1, how));
        };
        match *what {
            // The resource version expires between two requests.
            "410 event" => lab.server.compact(),
            "410 response" => {
                lab.server.reject_expired(true);
                lab.server.stop().await;
                lab.server.compact();
                lab.server.restart().await;
            }
            "restart" => {
                lab.server.stop().await;
                tokio::time::sleep(Duration::from_millis(200)).await;
                lab.server.restart().await;
            }
            "token" => {
                lab.server.set_tokens(&["two"]);
                lab.server.stop().await;
                lab.server.restart().await;
                std::fs::write(lab.dir.path().join("kubeconfig"), lab.server.kubeconfig("two"))
                    .unwrap();
            }
            other => {
                fault(match other {
                    "busy" => FaultKind::Busy(1),
                    "garbage" => FaultKind::Garbage,
                    _ => FaultKind::Cut,
                });
                lab.server.stop().await;
                lab.server.restart().await;
            }
        }
        let crash = i32::try_from(number).unwrap() + 1;
        let now = lab.after(id, &last, async { lab.crash(id, crash, 1, "Error") }).await;
        let Reason::CrashLoopBackOff { restarts, .. } = reason(now.clone()) else {
            panic!("{what}: {now:?}")
        };
        assert_eq!(restarts, u32::try_from(crash + 1).ok(), "{what}");
        last = now;
    }
    assert_eq!(lab.server.faults_left(), 0);
}

#[tokio::test]
async fn failures_of_the_apiserver_do_not_fail_a_start_or_stop() {
    let lab = Lab::new().await;
    let id = replica(1, 0);
    for how in
        [FaultKind::Status(409), FaultKind::Busy(1), FaultKind::Status(500), FaultKind::Status(503)]
    {
        lab.server.fault(Fault::new("PATCH", "/deployments/", 1, how));
    }
    lab.server.fault(Fault::new("PATCH", "/services/", 1, FaultKind::Cut));
    lab.server.fault(Fault::new("DELETE", "/deployments/", 1, FaultKind::Status(504)));
    lab.server.fault(Fault::new("GET", "/secrets", 1, FaultKind::Garbage));
    let running = lab.started(id, &web()).await;
    assert!(matches!(running, Observed::Running { .. }), "{running:?}");
    lab.runtime.stop(id).await.unwrap();
    assert_eq!(lab.server.faults_left(), 0);
    assert_eq!(lab.server.controller().list("apps", "deployments"), Vec::<Value>::new());
}

#[tokio::test]
async fn logs_are_read_followed_and_resumed() {
    let lab = Lab::new().await;
    let id = replica(1, 0);
    lab.started(id, &web()).await;
    let pod = format!("{}-abcde", name(id));
    let log = |second: u32, text: &str| {
        let line = format!("2025-01-01T00:00:{second:02}.000000001Z {text}");
        lab.server.controller().log(NS, &pod, &line);
    };
    log(1, "one");
    log(2, "two");
    log(2, "three");
    let texts = async |from: LogsFrom| -> Vec<String> {
        let lines = lab.runtime.logs(id, from, false);
        lines.map(|line| line.text).collect().await
    };
    assert_eq!(texts(LogsFrom::Start).await, ["one", "two", "three"]);
    assert_eq!(texts(LogsFrom::Last(2)).await, ["two", "three"]);
    let lines: Vec<_> = lab.runtime.logs(id, LogsFrom::Start, false).collect().await;
    assert_eq!(texts(LogsFrom::After(lines[1].next.clone())).await, ["three"]);
    let requests = lab.server.requests();
    let last = requests.iter().rfind(|request| request.path.ends_with("/log")).unwrap();
    assert_eq!(last.param("sinceTime"), Some("2025-01-01T00:00:02Z"));

    let mut follow = lab.runtime.logs(id, LogsFrom::Last(1), true);
    assert_eq!(follow.next().await.unwrap().text, "three");
    log(3, "four");
    assert_eq!(follow.next().await.unwrap().text, "four");
    // After a reconnect no line is repeated.
    lab.server.stop().await;
    lab.server.restart().await;
    log(4, "five");
    assert_eq!(follow.next().await.unwrap().text, "five");
    lab.runtime.stop(id).await.unwrap();
    let end = tokio::time::timeout(TIMEOUT, follow.next()).await.unwrap();
    assert_eq!(end, None);
}

#[tokio::test]
async fn unusable_connections_are_reported() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let why = Kubernetes::probe(options("nowhere".into())).await.err().unwrap().to_string();
    assert!(why.starts_with("--kubeconfig: cannot use nowhere"), "{why}");
    let why = Kubernetes::probe(Options::default()).await.err().unwrap().to_string();
    assert!(why.contains("set --kubeconfig"), "{why}");
    let server = Apiserver::start().await;
    server.deny("list", "", "nodes");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kubeconfig");
    std::fs::write(&path, server.kubeconfig("t")).unwrap();
    let why = Kubernetes::probe(options(path)).await.err().unwrap().to_string();
    assert!(why.contains("refused to list nodes") && why.contains("cannot list resource"), "{why}");
}
