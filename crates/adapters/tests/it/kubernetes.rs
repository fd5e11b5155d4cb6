//! The Kubernetes provider against a fake API server.

use std::sync::Arc;
use std::time::Duration;

use adapters::guard;
use adapters::kubernetes::Kubernetes;
use base::Resolver;
use base::resolver::Lookup;
use model::address::Policy;
use model::cluster::{self, KUBECONFIG, PULL_SECRET};
use model::{ClusterId, DeploymentId, ReplicaId, Secret, Xid};
use port::{Access, Fault, Operation, Outcome, Progress, Task};
use serde_json::{Map, Value, json};
use testing::apiserver::{Apiserver, Fault as Wrong, FaultKind, Kind};

use super::fake::prepare;
use super::http_calls::loopback;

const NS: &str = "paddock";
const AGENT: &str = "paddock-agent";
const TOKEN: &str = "ag3nt-token";

fn provider() -> Kubernetes {
    prepare();
    let options = guard::Options {
        base_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(2),
        failures_to_open: 100,
        ..Kubernetes::options()
    };
    Kubernetes::new(options, || 1, Resolver::new(loopback()))
}

fn order(server: &Apiserver, number: u32) -> Task {
    with_config(&server.kubeconfig("t0ken"), number)
}

fn with_config(kubeconfig: &str, number: u32) -> Task {
    let kept = [(KUBECONFIG.to_owned(), Secret::new(kubeconfig))].into();
    Task { persisted: kept, ..Task::new(ClusterId(Xid::new(1, [0; 5], number)), "far") }
}

/// Settings as the provider gets them.
fn with(settings: cluster::Kubernetes) -> Map<String, Value> {
    serde_json::to_value(settings).unwrap().as_object().unwrap().clone()
}

fn agent() -> Access {
    Access {
        server: "https://paddock.example.com".into(),
        token: Secret::new(TOKEN),
        image: "registry.local/paddock:1".into(),
    }
}

pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T, Fault>) -> String {
    match answer {
        Err(Fault::Refused(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}

pub(crate) fn unavailable<T: std::fmt::Debug>(answer: Result<T, Fault>) -> String {
    match answer {
        Err(Fault::Unavailable(why)) => why,
        other => panic!("not unavailable: {other:?}"),
    }
}

fn going<T: std::fmt::Debug>(answer: Result<Progress<T>, Fault>) -> String {
    match answer {
        Ok(Progress::Running { reason: message, .. }) => message.to_string(),
        other => panic!("not running: {other:?}"),
    }
}

/// Prepares a cluster completely, with a running agent.
async fn prepared(server: &Apiserver, provider: &Kubernetes, order: &Task) {
    going(provider.prepare(order, &agent()).await);
    server.controller().available(NS, AGENT);
    let done = provider.prepare(order, &agent()).await.unwrap();
    assert!(matches!(done, Progress::Done(_)), "{done:?}");
}

fn get(server: &Apiserver, group: &str, plural: &str, name: &str) -> Value {
    server.controller().get(group, plural, NS, name).unwrap_or_else(|| panic!("no {plural} {name}"))
}

#[tokio::test]
async fn cluster_is_identified_by_its_kube_system_namespace() {
    let server = Apiserver::start().await;
    let (provider, order) = (provider(), order(&server, 1));
    let uid =
        server.controller().get("", "namespaces", "", "kube-system").unwrap()["metadata"]["uid"]
            .clone();
    let observed = provider.observe(&order).await;
    let observed = observed.map(|progress| progress.map(|observed| observed.outcome.unwrap()));
    for answer in [provider.apply(&order).await, observed] {
        let Ok(Progress::Done(Outcome { outputs, .. })) = answer else { panic!("{answer:?}") };
        assert_eq!(outputs["id"], uid);
    }
    let reviews = server
        .request_lines()
        .iter()
        .filter(|line| line.contains("selfsubjectaccessreviews"))
        .count();
    assert_eq!(reviews, 51, "each permission is reviewed");
}

#[tokio::test]
async fn every_missing_permission_is_named() {
    let server = Apiserver::start().await;
    server.deny("create", "apps", "deployments");
    server.deny("patch", "", "namespaces");
    let why = refused(provider().apply(&order(&server, 1)).await);
    assert!(
        why.ends_with("Grant it: patch namespaces; create deployments.apps in namespace paddock"),
        "{why}"
    );
}

#[tokio::test]
async fn invalid_kubeconfigs_are_refused() {
    let server = Apiserver::start().await;
    let good = server.kubeconfig("s3cret");
    let user = |with: &str| good.replace("token: \"s3cret\"", with);
    let cases = [
        ("{{{ s3cret".to_owned(), "is not YAML"),
        ("s3cret: 1".to_owned(), "no current-context"),
        (good.replace("current-context: test", "current-context: other"), "has no context other"),
        (good.replace("cluster: test,", "cluster: gone,"), "has no cluster gone"),
        (good.replace("user: test}", "user: gone}"), "has no user gone"),
        (good.replace("http://", "ftp://"), "must be a URL"),
        (good.replace(&server.address(), "not an address"), "invalid kubeconfig"),
        (
            user("exec: {apiVersion: client.authentication.k8s.io/v1, command: s3cret}"),
            "with a program",
        ),
        (user("auth-provider: {name: gcp}"), "with a program"),
        (user("tokenFile: /etc/s3cret"), "tokenFile names a file"),
        (
            user("client-certificate: /s3cret, client-key: /s3cret"),
            "client-certificate names a file",
        ),
        (user("client-certificate-data: czNjcmV0, client-key: /s3cret"), "client-key names a file"),
        (
            good.replace("{server:", "{certificate-authority: /s3cret, server:"),
            "certificate-authority names",
        ),
        (good.replace("{server:", "{proxy-url: \"http://s3cret\", server:"), "names a proxy"),
        (
            good.replace("{server:", "{certificate-authority-data: czNjcmV0, server:"),
            "invalid kubeconfig",
        ),
    ];
    for (text, part) in cases {
        let answer = provider().apply(&with_config(&text, 1)).await;
        // Without TLS, invalid certificates are not checked.
        if part == "invalid kubeconfig" && answer.is_ok() {
            continue;
        }
        let why = refused(answer);
        assert!(why.contains(part) && !why.contains("s3cret"), "{text}: {why}");
    }
    assert!(server.request_lines().iter().all(|line| !line.starts_with("PATCH")));
    let mut none = with_config("", 1);
    none.persisted.clear();
    assert!(refused(provider().apply(&none).await).contains("no kubeconfig was given"));
}

#[tokio::test]
async fn connection_failures_are_reported_and_retried() {
    let server = Apiserver::start().await;
    server.set_tokens(&["other"]);
    let why = refused(provider().apply(&order(&server, 1)).await);
    assert!(why.contains("wrong or expired") && !why.contains("t0ken"), "{why}");
    server.set_tokens(&[]);
    for (how, part) in [
        (FaultKind::Status(500), "status 500"),
        (FaultKind::Status(503), "status 503"),
        (FaultKind::Busy(1), "429"),
        (FaultKind::Garbage, "invalid response"),
        (FaultKind::Cut, "is unreachable"),
    ] {
        server.fault(Wrong::new("GET", "kube-system", 3, how.clone()));
        let why = unavailable(provider().observe(&order(&server, 1)).await);
        assert!(why.contains(part), "{how:?}: {why}");
        assert_eq!(server.faults_left(), 0, "{how:?} was tried three times");
        // One failure is retried.
        server.fault(Wrong::new("GET", "kube-system", 1, how));
        provider().observe(&order(&server, 1)).await.unwrap();
    }
    server.stop().await;
    let why = unavailable(provider().observe(&order(&server, 1)).await);
    assert!(why.contains("Kubernetes of cluster far is unreachable"), "{why}");
    server.restart().await;
    provider().observe(&order(&server, 1)).await.unwrap();
}

#[tokio::test]
async fn unreachable_cluster_does_not_block_others() {
    let (up, down) = (Apiserver::start().await, Apiserver::start().await);
    down.stop().await;
    prepare();
    let options = guard::Options { attempts: 1, failures_to_open: 1, ..Kubernetes::options() };
    let provider = Kubernetes::new(options, || 1, Resolver::new(loopback()));
    unavailable(provider.observe(&order(&down, 1)).await);
    let why = unavailable(provider.observe(&order(&down, 1)).await);
    assert!(why.contains("Calls resume within"), "{why}");
    provider.observe(&order(&up, 2)).await.unwrap();
}

#[tokio::test]
async fn agent_binds_no_roles_and_writes_in_no_other_namespace() {
    let server = Apiserver::start().await;
    let (provider, order) = (provider(), order(&server, 1));
    provider.prepare(&order, &agent()).await.unwrap();
    let controller = server.controller();
    let rbac = "rbac.authorization.k8s.io";
    let bindings = controller.list(rbac, "clusterrolebindings");
    assert_eq!(bindings.len(), 1);
    let role = bindings[0]["roleRef"]["name"].as_str().unwrap();
    let role = controller.get(rbac, "clusterroles", "", role).unwrap();
    for rule in role["rules"].as_array().unwrap() {
        let verbs = rule["verbs"].as_array().unwrap();
        assert!(
            verbs.iter().all(|verb| ["get", "list", "watch"].contains(&verb.as_str().unwrap())),
            "{rule}"
        );
        assert!(!rule["resources"].to_string().contains("secrets"), "{rule}");
    }
    for role in controller.list(rbac, "clusterroles").iter().chain(&controller.list(rbac, "roles"))
    {
        let rules = role["rules"].to_string();
        assert!(!rules.contains("bind") && !rules.contains("escalate"), "{rules}");
    }
}

#[tokio::test]
async fn namespaces_of_instances_are_created_with_the_agents_role() {
    let server = Apiserver::start().await;
    let (provider, order) = (provider(), order(&server, 1));
    provider.prepare(&order, &agent()).await.unwrap();
    let controller = server.controller();
    let replica = ReplicaId { deployment: DeploymentId(Xid::new(5, [0; 5], 0)), number: 0 };
    let wanted = [("kafka-1".to_owned(), replica), ("theirs".to_owned(), replica)].into();
    controller.namespace("theirs");
    for _ in 0..2 {
        provider.admit_instances(&order, &wanted).await.unwrap();
    }
    let namespace = controller.get("", "namespaces", "", "kafka-1").unwrap();
    assert_eq!(namespace["metadata"]["labels"]["paddock.dev/home"], NS);
    let label = format!("{}.0", replica.deployment);
    assert_eq!(namespace["metadata"]["labels"]["paddock.dev/replica"], label);
    let rbac = "rbac.authorization.k8s.io";
    let binding = controller.get(rbac, "rolebindings", "kafka-1", AGENT).unwrap();
    assert_eq!(binding["subjects"][0]["namespace"], NS);
    assert_eq!(binding["roleRef"]["kind"], "ClusterRole");
    // A namespace that another system owns gets nothing.
    assert_eq!(controller.get(rbac, "rolebindings", "theirs", AGENT), None);
}

#[tokio::test]
async fn kubeconfig_reaches_no_private_address() {
    let server = Apiserver::start().await;
    prepare();
    let by_address = Kubernetes::new(Kubernetes::options(), || 1, Resolver::new(Policy::default()));
    let why = refused(by_address.observe(&order(&server, 1)).await);
    assert!(why.contains("its server 127.0.0.1 is not permitted"), "{why}");
    assert!(why.contains("allow_address"), "{why}");
    let lookup = |_| -> Lookup { Box::pin(async { Ok(vec!["10.0.0.1".parse().unwrap()]) }) };
    let resolver = Resolver::new(loopback()).with_lookup(Arc::new(lookup));
    let by_name = Kubernetes::new(Kubernetes::options(), || 1, resolver);
    let mut named = order(&server, 1);
    let kubeconfig = named.persisted[KUBECONFIG].reveal().replace("127.0.0.1", "kube.example");
    named.persisted.insert(KUBECONFIG.into(), Secret::new(kubeconfig));
    let why = refused(by_name.observe(&named).await);
    assert!(why.contains("kube.example is not permitted: it resolves to a private"), "{why}");
    assert_eq!(server.request_lines(), Vec::<String>::new());
}

#[tokio::test]
async fn prepare_applies_all_objects() {
    let server = Apiserver::start().await;
    server.define(Kind::new("acme.example.com", "v1", "Widget", "widgets"));
    let (provider, mut order) = (provider(), order(&server, 1));
    order.persisted.insert(PULL_SECRET.into(), Secret::new("{\"auths\":{}}"));
    let mut settings = cluster::Kubernetes::default();
    settings.quota.set("cpu", "4".parse().unwrap());
    settings.quota.set("ram", "1Gi".parse().unwrap());
    settings.quota.set("gpu", "1".parse().unwrap());
    order.with = with(settings);
    let why = going(provider.prepare(&order, &agent()).await);
    assert_eq!(why, "Starting the agent.");

    let requests = server.requests();
    let patches: Vec<_> = requests.iter().filter(|request| request.method == "PATCH").collect();
    assert_eq!(patches.len(), 11);
    for patch in &patches {
        assert_eq!(patch.content_type, "application/apply-patch+yaml");
        assert_eq!(
            (patch.param("fieldManager"), patch.param("force")),
            (Some("paddock"), Some("true"))
        );
        let labels = &patch.body["metadata"]["labels"];
        assert_eq!(labels["app.kubernetes.io/managed-by"], "paddock", "{}", patch.path);
        assert_eq!(labels["paddock.dev/cluster"], order.id.to_string());
    }
    let hard = &get(&server, "", "resourcequotas", "paddock")["spec"]["hard"];
    let memory = (1i64 << 30) + (64 << 20);
    assert_eq!(
        *hard,
        json!({"requests.cpu": "4050m", "requests.memory": memory.to_string(),
        "requests.nvidia.com/gpu": "1"})
    );
    let namespace = server.controller().get("", "namespaces", "", NS).unwrap();
    assert_eq!(namespace["metadata"]["annotations"]["paddock.dev/made"], "true");
    let secret = get(&server, "", "secrets", AGENT);
    assert_eq!(secret["data"]["token"], data_encoding::BASE64.encode(TOKEN.as_bytes()));
    let pull = get(&server, "", "secrets", "paddock-pull");
    assert_eq!(pull["type"], "kubernetes.io/dockerconfigjson");

    let agent = get(&server, "apps", "deployments", AGENT);
    assert!(!agent.to_string().contains(TOKEN), "only the Secret contains the token");
    let pod = &agent["spec"]["template"]["spec"];
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "paddock-pull"}]));
    assert_eq!(
        (&pod["securityContext"]["runAsNonRoot"], &pod["serviceAccountName"]),
        (&json!(true), &json!(AGENT))
    );
    let container = &pod["containers"][0];
    assert_eq!(container["image"], "registry.local/paddock:1");
    assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
    let args = container["args"].to_string();
    assert!(
        args.contains("\"kubernetes\"") && args.contains("https://paddock.example.com"),
        "{args}"
    );

    let role = get(&server, "rbac.authorization.k8s.io", "roles", AGENT)["rules"].to_string();
    assert!(
        role.contains("acme.example.com") && !role.contains("authorization.k8s.io\""),
        "{role}"
    );
    server.controller().available(NS, AGENT);
    let done = provider.prepare(&order, &self::agent()).await.unwrap();
    assert!(
        matches!(done, Progress::Done(ref made) if made.outputs.contains_key("id")),
        "{done:?}"
    );
}

#[tokio::test]
async fn preparing_again_repairs_drift_and_deletes_stale_objects() {
    let server = Apiserver::start().await;
    let (provider, mut order) = (provider(), order(&server, 1));
    let mut settings = cluster::Kubernetes::default();
    settings.quota.set("cpu", "4".parse().unwrap());
    order.with = with(settings);
    order.persisted.insert(PULL_SECRET.into(), Secret::new("{}"));
    prepared(&server, &provider, &order).await;
    let before = get(&server, "apps", "deployments", AGENT);
    prepared_again(&provider, &order).await;
    assert_eq!(get(&server, "apps", "deployments", AGENT), before, "apply is idempotent");

    let scaled = json!({"spec": {"replicas": 0}});
    server.controller().patch("apps", "deployments", NS, AGENT, &scaled);
    order.with = with(cluster::Kubernetes::default());
    order.persisted.remove(PULL_SECRET);
    let _ = provider.prepare(&order, &agent()).await.unwrap();
    assert_eq!(get(&server, "apps", "deployments", AGENT)["spec"]["replicas"], 1);
    for (plural, name) in
        [("resourcequotas", "paddock"), ("limitranges", "paddock"), ("secrets", "paddock-pull")]
    {
        assert!(server.controller().get("", plural, NS, name).is_none(), "{plural}");
    }
}

async fn prepared_again(provider: &Kubernetes, order: &Task) {
    let done = provider.prepare(order, &agent()).await.unwrap();
    assert!(matches!(done, Progress::Done(_)), "{done:?}");
}

#[tokio::test]
async fn failing_agent_is_reported_with_its_cause() {
    let server = Apiserver::start().await;
    let (provider, order) = (provider(), order(&server, 1));
    going(provider.prepare(&order, &agent()).await);
    let deployment = get(&server, "apps", "deployments", AGENT);
    let waiting = |reason: &str, message: &str| {
        json!({"name": "agent", "image": "registry.local/paddock:1", "ready": false, "restartCount": 3,
            "state": {"waiting": {"reason": reason, "message": message}},
            "lastState": {"terminated": {"exitCode": 7}}})
    };
    for (container, part) in [
        (
            waiting("ImagePullBackOff", "not found"),
            "Pulling the agent's image registry.local/paddock:1 failed: not found.",
        ),
        (
            waiting("CrashLoopBackOff", "back-off"),
            "The agent exits with code 7 repeatedly (3 restarts)",
        ),
        (
            waiting("CreateContainerConfigError", "no secret"),
            "CreateContainerConfigError: no secret.",
        ),
        (waiting("ContainerCreating", ""), "Starting the agent."),
    ] {
        server.controller().pod(&deployment, "Pending", &container);
        let why = going(provider.prepare(&order, &agent()).await);
        assert!(why.contains(part), "{why}");
    }
    let pod = format!("{AGENT}-abcde");
    let unplaced = json!({"status": {"conditions": [{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "0/1 nodes are available."}]}});
    server.controller().patch("", "pods", NS, &pod, &unplaced);
    let why = going(provider.prepare(&order, &agent()).await);
    assert_eq!(why, "The agent's pod is unschedulable: 0/1 nodes are available.");
    server.controller().remove("", "pods", NS, &pod);
    let failed = json!({"status": {"conditions": [{"type": "ReplicaFailure", "status": "True",
        "message": "exceeded quota"}]}});
    server.controller().patch("apps", "deployments", NS, AGENT, &failed);
    let why = going(provider.prepare(&order, &agent()).await);
    assert_eq!(why, "Creating the agent's pod failed: exceeded quota.");
}

#[tokio::test]
async fn namespace_of_another_cluster_is_refused() {
    let server = Apiserver::start().await;
    let provider = provider();
    prepared(&server, &provider, &order(&server, 1)).await;
    let before = server.controller().list("", "secrets");
    let why = refused(provider.prepare(&order(&server, 2), &agent()).await);
    assert!(why.contains("belongs to another Paddock cluster"), "{why}");
    let removed = provider.destroy(&order(&server, 2)).await.unwrap();
    assert!(matches!(removed, Progress::Done(())), "{removed:?}");
    assert_eq!(
        server.controller().list("", "secrets"),
        before,
        "objects of the other cluster are untouched"
    );
    assert!(server.controller().get("apps", "deployments", NS, AGENT).is_some());
    let mut own = order(&server, 3);
    own.with = with(cluster::Kubernetes { namespace: "kube-system".into(), ..Default::default() });
    assert!(
        refused(provider.prepare(&own, &agent()).await).contains("belongs to Kubernetes itself")
    );
}

#[tokio::test]
async fn destroy_deletes_all_objects_and_waits_for_their_end() {
    let server = Apiserver::start().await;
    let (provider, order) = (provider(), order(&server, 1));
    prepared(&server, &provider, &order).await;
    let instance = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kind-1",
        "labels": {"paddock.dev/home": NS}}});
    server.controller().put("", "namespaces", instance);
    server.delay_deletions(true);
    assert_eq!(going(provider.destroy(&order).await), "Stopping the agent.");
    assert_eq!(going(provider.destroy(&order).await), "Stopping the agent.");
    // Its pods end, and then the Deployment.
    server.controller().remove("apps", "deployments", NS, AGENT);
    assert_eq!(going(provider.destroy(&order).await), "Deleting 1 instance namespaces.");
    server.controller().finish("kind-1");
    let why = going(provider.destroy(&order).await);
    assert_eq!(why, "Deleting namespace paddock.");
    // Until its deletion has finished, it can't be used again.
    let why = going(provider.prepare(&order, &agent()).await);
    assert!(why.contains("Waiting for the deletion of namespace"), "{why}");
    going(provider.destroy(&order).await);
    server.controller().finish(NS);
    for _ in 0..2 {
        let gone = provider.destroy(&order).await.unwrap();
        assert!(matches!(gone, Progress::Done(())), "{gone:?}");
    }
    for plural in ["clusterroles", "clusterrolebindings"] {
        assert_eq!(
            server.controller().list("rbac.authorization.k8s.io", plural),
            Vec::<Value>::new()
        );
    }
    assert!(server.controller().get("", "namespaces", "", "default").is_some());
}

#[tokio::test]
async fn existing_namespace_is_retained() {
    let server = Apiserver::start().await;
    server.controller().namespace(NS);
    let theirs = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs", "namespace": NS}});
    server.controller().put("", "secrets", theirs);
    let (provider, order) = (provider(), order(&server, 1));
    prepared(&server, &provider, &order).await;
    let left = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "left", "namespace": NS,
        "labels": {"paddock.dev/replica": "x.0"}}});
    server.controller().put("batch", "jobs", left);
    going(provider.destroy(&order).await);
    assert_eq!(going(provider.destroy(&order).await), "Deleting 1 objects of deployments.");
    let gone = provider.destroy(&order).await.unwrap();
    assert!(matches!(gone, Progress::Done(())), "{gone:?}");
    let namespace = server.controller().get("", "namespaces", "", NS).unwrap();
    assert!(namespace["metadata"]["labels"].get("paddock.dev/cluster").is_none(), "{namespace}");
    let secrets = server.controller().list("", "secrets");
    assert!(secrets.len() == 1 && secrets[0]["metadata"]["name"] == "theirs", "{secrets:?}");
    for (group, plural) in
        [("apps", "deployments"), ("", "serviceaccounts"), ("rbac.authorization.k8s.io", "roles")]
    {
        assert_eq!(server.controller().list(group, plural), Vec::<Value>::new(), "{plural}");
    }
}

#[tokio::test]
async fn server_whose_lease_was_taken_over_changes_no_object() {
    let server = Apiserver::start().await;
    let (provider, mut newer) = (provider(), order(&server, 1));
    let stale = newer.clone();
    newer.fence = stale.fence + 1;
    prepared(&server, &provider, &stale).await;
    let written =
        |plural: &str| get(&server, "apps", plural, AGENT)["metadata"]["annotations"].clone();
    assert_eq!(written("deployments"), json!({"paddock.dev/fence": stale.fence.to_string()}));
    prepared_again(&provider, &newer).await;
    assert_eq!(written("deployments"), json!({"paddock.dev/fence": newer.fence.to_string()}));

    let before = get(&server, "apps", "deployments", AGENT);
    let other = Access { image: "registry.local/paddock:0".into(), ..agent() };
    for _ in 0..2 {
        let why = unavailable(provider.prepare(&stale, &other).await);
        assert!(why.contains("another Paddock server has taken over"), "{why}");
        let why = unavailable(provider.destroy(&stale).await);
        assert!(why.contains("another Paddock server has taken over"), "{why}");
        // Also past the namespace, which is read first.
        let old = json!({"metadata": {"annotations": {"paddock.dev/fence": "1"}}});
        server.controller().patch("", "namespaces", "", NS, &old);
    }
    assert_eq!(get(&server, "apps", "deployments", AGENT), before);
}

#[tokio::test]
async fn faults_during_prepare_are_retried() {
    let server = Apiserver::start().await;
    let (provider, order) = (provider(), order(&server, 1));
    for (part, how) in [
        ("/secrets/", FaultKind::Status(409)),
        ("/roles/", FaultKind::Busy(1)),
        ("/serviceaccounts/", FaultKind::Status(500)),
        ("/clusterroles/", FaultKind::Cut),
    ] {
        server.fault(Wrong::new("PATCH", part, 1, how));
        let answer = provider.prepare(&order, &agent()).await;
        assert!(answer.is_ok(), "{part}: {answer:?}");
        assert_eq!(server.faults_left(), 0, "{part}");
    }
    server.fault(Wrong::new("PATCH", "/deployments/", 1, FaultKind::Status(422)));
    let why = refused(provider.prepare(&order, &agent()).await);
    assert!(why.contains("refused to apply the Deployment paddock-agent"), "{why}");
    server.deny("patch", "apps", "deployments");
    let why = refused(provider.prepare(&order, &agent()).await);
    assert!(
        why.contains("denied permission to apply the Deployment") && why.contains("cannot patch"),
        "{why}"
    );
    assert!(!why.contains(TOKEN), "{why}");
}
