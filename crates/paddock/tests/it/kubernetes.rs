//! Kubernetes clusters from registration to deletion, with a real server and agent, a fake
//! apiserver, and a real Kubernetes if `PADDOCK_TEST_KUBECONFIG` is set.
//!
//! The test body is the same for all. If no controllers exist, the test simulates them.

mod backend;
mod real;

use std::fs::{self, File};
use std::process::Child;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use testing::Client;

use super::process::{self, BINARY, PASSWORD, Server, Setup, bare};
use backend::Backend;

const TIMEOUT: Duration = Duration::from_mins(4);
const LINE: &str = "hello from a pod";

/// An agent process, killed on drop.
struct Agent {
    child: Child,
    dir: TempDir,
}

impl Agent {
    fn start(server: &str, token: &str, kubeconfig: &str, namespace: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("token"), token).unwrap();
        fs::write(dir.path().join("kubeconfig"), kubeconfig).unwrap();
        let mut agent = Self { child: spawn(&dir, server, namespace), dir };
        assert!(agent.child.try_wait().unwrap().is_none(), "{}", agent.stderr());
        agent
    }

    fn restart(&mut self, server: &str, namespace: &str) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(&self.dir, server, namespace);
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.dir.path().join("stderr")).unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(dir: &TempDir, server: &str, namespace: &str) -> Child {
    let err = File::options().create(true).append(true).open(dir.path().join("stderr")).unwrap();
    let mut command = bare(BINARY);
    command.args(["agent", "--server", server, "--runtime", "kubernetes", "--token-file", "token"]);
    command.args(["--kubeconfig", "kubeconfig", "--kubernetes-namespace", namespace]);
    command.current_dir(dir.path()).stderr(err).spawn().unwrap()
}

/// A server, an organization and a Kubernetes.
struct World<F> {
    server: Server,
    ann: Client,
    cli: process::Client,
    backend: F,
    namespace: String,
}

impl<F: Backend> World<F> {
    async fn new(backend: F, namespace: &str) -> Self {
        let server = Setup::new()
            .arg("--allow-address", "127.0.0.0/8")
            .arg("--local-agent", "false")
            .arg("--public-url", "http://paddock.example")
            .arg("--agent-image", "paddock-not-there:0")
            .start();
        let cli = server.owner("acme", "ann");
        let ann = server.http_as("ann", PASSWORD).await;
        Self { server, ann, cli, backend, namespace: namespace.into() }
    }

    /// Waits until a resource is deleted.
    async fn until_deleted(&self, path: &str) {
        self.until(path, |now| now["status"] == 404).await;
    }

    async fn until(&self, path: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let (started, mut last) = (base::monotonic(), Value::Null);
        while started.elapsed() < TIMEOUT {
            last = self.ann.get(&format!("/api/v1/{path}")).await.json;
            if condition(&last) {
                return last;
            }
            self.backend.run_controllers(&self.namespace).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{path}: condition not reached: {last:#}");
    }

    /// Waits for a condition of the Kubernetes.
    async fn until_true(&self, what: &str, condition: impl AsyncFn() -> bool) {
        let started = base::monotonic();
        while !condition().await {
            assert!(started.elapsed() < TIMEOUT, "{what}");
            self.backend.run_controllers(&self.namespace).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Registers the Kubernetes and waits until it is ready; returns cluster id, agent and token.
async fn register(world: &World<impl Backend>) -> (String, Agent, String) {
    let kubeconfig = world.backend.kubeconfig();
    let file = world.server.setup.file("kubeconfig");
    fs::write(&file, &kubeconfig).unwrap();
    let created = world.cli.json(&format!(
        "cluster create far --provider kubernetes --kubeconfig {} --namespace {}",
        file.display(),
        world.namespace
    ));
    let id = created["id"].as_str().unwrap().to_owned();
    let cluster = format!("clusters/{id}");
    let is_prepared =
        async || world.backend.has(&world.namespace, "apps", "deployments", "paddock-agent").await;
    world.until_true("its agent is installed", is_prepared).await;
    let prepared = world.until(&cluster, |now| now["status"] != "accepted").await;
    assert_ne!(prepared["status"], "failed", "{prepared:#}");

    // Runs the agent locally, because its image cannot be pulled.
    let token = world.cli.run("cluster token far").succeeds().stdout.trim().to_owned();
    let agent = Agent::start(&world.server.address, &token, &kubeconfig, &world.namespace);
    world.backend.detect_controllers(&world.namespace).await;
    let has_nodes = |now: &Value| now["nodes"].as_array().is_some_and(|nodes| !nodes.is_empty());
    world.until(&cluster, |now| now["status"] == "ready" && has_nodes(now)).await;
    (id, agent, token)
}

/// Registers, deploys, scales, reads logs, drains and deletes.
async fn round_trip(world: World<impl Backend>) {
    let (id, mut agent, token) = register(&world).await;
    let cluster = format!("clusters/{id}");
    let script = format!("echo {LINE}; exec sleep 3600");
    let body = json!({"name": "web", "image": world.backend.image(), "command": ["sh", "-c", script],
        "ports": [8080], "env": {"GREETING": "s3cret"}, "resources": {"cpu": "50m", "ram": "16Mi"}});
    let deployment = world.ann.post("/api/v1/deployments", body).await.text("id");
    let path = format!("deployments/{deployment}");
    let running = world.until(&path, |now| now["status"] == "running").await;
    let endpoint = running["endpoints"][0].as_str().unwrap();
    assert!(endpoint.ends_with(":8080"), "{running:#}");
    world.cli.run("deployment scale web 2").succeeds();
    let both = |now: &Value| {
        let replicas = now["replica_statuses"].as_array();
        now["status"] == "running"
            && replicas.is_some_and(|all| {
                all.len() == 2 && all.iter().all(|one| one["status"] == "running")
            })
    };
    world.until(&path, both).await;
    let objects = [0, 1].map(|number| format!("paddock-{deployment}-{number}"));
    for name in &objects {
        assert!(world.backend.has(&world.namespace, "apps", "deployments", name).await, "{name}");
    }
    if world.backend.has_logs() {
        world.backend.run_controllers(&world.namespace).await;
        let started = base::monotonic();
        while !world.cli.run("deployment logs web --replica 0").succeeds().stdout.contains(LINE) {
            assert!(started.elapsed() < TIMEOUT, "no log");
        }
    } else {
        eprintln!("no kubelet: logs were not checked");
    }

    // A restarted agent adopts existing objects.
    agent.restart(&world.server.address, &world.namespace);
    world.cli.run("deployment scale web 1").succeeds();
    let is_removed =
        async || !world.backend.has(&world.namespace, "apps", "deployments", &objects[1]).await;
    world.until_true("one replica is removed", is_removed).await;
    world.until(&path, |now| now["status"] == "running").await;

    // No other cluster has capacity: the replica stays and keeps running.
    world.cli.run("cluster drain far").succeeds().prints(&["draining"]);
    let is_reported = |now: &Value| {
        now["status_reason"]
            .as_str()
            .is_some_and(|why| why.contains("1 deployment without capacity elsewhere"))
    };
    world.until(&cluster, is_reported).await;
    world.until(&path, |now| now["status"] == "running").await;
    world.cli.run("cluster delete far --yes").fails(1, &["drain it or delete them first"]);
    world.cli.run("deployment delete web --yes").succeeds();
    let used = |now: &Value| now["capacity"]["cpu"]["used"] == 0;
    world.until(&cluster, used).await;
    for (group, plural, name) in [
        ("apps", "deployments", &objects[0]),
        ("", "secrets", &objects[0]),
        ("", "services", &format!("paddock-{deployment}")),
    ] {
        let is_removed = async || !world.backend.has(&world.namespace, group, plural, name).await;
        world.until_true(plural, is_removed).await;
    }
    let stderr = agent.stderr();
    assert!(
        !stderr.contains("s3cret") && !stderr.contains(&token) && !stderr.contains("panicked"),
        "{stderr}"
    );
    let empty = |now: &Value| now["reason_code"] == "Drained";
    world.until(&cluster, empty).await;
    drop(agent);

    world.cli.run("cluster delete far --yes").succeeds();
    world.until_deleted(&cluster).await;
    let log = world.server.stderr();
    assert!(!log.contains(&token) && !log.contains("panicked"), "{log}");
    assert!(!world.backend.has("", "", "namespaces", &world.namespace).await);
    assert!(
        !world
            .backend
            .has("", "rbac.authorization.k8s.io", "clusterroles", &format!("paddock-{id}"))
            .await
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fake_kubernetes_round_trip() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let backend = backend::Fake::new().await;
    round_trip(World::new(backend, "paddock").await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instance_on_kubernetes_follows_its_kind() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let world = World::new(backend::Fake::new().await, "paddock").await;
    let (_, agent, _) = register(&world).await;
    let created = world.cli.json("service dinosaur create rex");
    let path = format!("instances/{}", created["id"].as_str().unwrap());
    let started = base::monotonic();
    let space = loop {
        let [program, address] =
            ["deployments", "services"].map(|what| world.backend.namespace_of(what, "rex"));
        if let Some(space) = program.filter(|space| address.as_ref() == Some(space)) {
            break space;
        }
        let now = world.ann.get(&format!("/api/v1/{path}")).await.json;
        assert!(started.elapsed() < TIMEOUT, "{now:#} {}", agent.stderr());
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_ne!(space, world.namespace, "an instance has its own namespace");
    let before = world.ann.get(&format!("/api/v1/{path}")).await.json;
    assert_eq!(before["status"], "provisioning", "no pod is running yet: {before:#}");
    world.backend.run_controllers(&space).await;
    world.until(&path, |now| now["status"] == "ready").await;
    world.cli.run("service dinosaur delete rex --yes").succeeds();
    world.until_deleted(&path).await;
    assert_eq!(world.backend.namespace_of("deployments", "rex"), None);
    assert_eq!(world.backend.namespace_of("services", "rex"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standalone_apiserver_round_trip() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = testing::apiserver::Apiserver::start().await;
    server.delay_deletions(true);
    let backend = real::Real::from_kubeconfig(&server.kubeconfig("t0ken"), Duration::ZERO).await;
    round_trip(World::new(backend, "paddock-alone").await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_kubernetes_round_trip() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Some(backend) = real::Real::from_env().await else {
        println!("skipped: PADDOCK_TEST_KUBECONFIG is not set");
        return;
    };
    let namespace = real::Real::namespace();
    round_trip(World::new(backend, &namespace).await).await;
}
