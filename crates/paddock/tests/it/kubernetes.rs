//! A Kubernetes as a cluster, from its registration to its removal: a real server and a real agent, with
//! a server that answers like an apiserver, and with a real one where `PADDOCK_TEST_KUBECONFIG` names it.
//!
//! The body is the same for both. Where there is nobody who makes pods of Deployments, be it that the
//! apiserver is ours or that it stands alone, the test plays them.

mod field;
mod real;

use std::fs::{self, File};
use std::process::Child;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use testing::Client;

use super::process::{self, BINARY, PASSWORD, Server, Setup, bare};
use field::Field;

const PATIENCE: Duration = Duration::from_mins(4);
const LINE: &str = "hello from a pod";

/// An agent that ends with the test.
struct Agent {
    child: Child,
    place: TempDir,
}

impl Agent {
    fn start(server: &str, token: &str, kubeconfig: &str, namespace: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("token"), token).unwrap();
        fs::write(place.path().join("kubeconfig"), kubeconfig).unwrap();
        let mut agent = Self { child: spawn(&place, server, namespace), place };
        assert!(agent.child.try_wait().unwrap().is_none(), "{}", agent.stderr());
        agent
    }

    fn again(&mut self, server: &str, namespace: &str) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(&self.place, server, namespace);
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.place.path().join("stderr")).unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(place: &TempDir, server: &str, namespace: &str) -> Child {
    let err = File::options().create(true).append(true).open(place.path().join("stderr")).unwrap();
    let mut command = bare(BINARY);
    command.args(["agent", "--server", server, "--runtime", "kubernetes", "--token-file", "token"]);
    command.args(["--kubeconfig", "kubeconfig", "--kubernetes-namespace", namespace]);
    command.current_dir(place.path()).stderr(err).spawn().unwrap()
}

/// A server, an owner, and a Kubernetes.
struct World<F> {
    server: Server,
    ann: Client,
    cli: process::Client,
    field: F,
    namespace: String,
}

impl<F: Field> World<F> {
    async fn new(field: F, namespace: &str) -> Self {
        let server = Setup::new()
            .arg("--local-agent", "false")
            .arg("--public-url", "http://paddock.example")
            .arg("--agent-image", "paddock-not-there:0")
            .start();
        let cli = server.owner("acme", "ann");
        let ann = server.http_as("ann", PASSWORD).await;
        Self { server, ann, cli, field, namespace: namespace.into() }
    }

    /// Waits until something is gone.
    async fn until_gone(&self, path: &str) {
        self.until(path, |now| now["status"] == 404).await;
    }

    async fn until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let (started, mut last) = (base::monotonic(), Value::Null);
        while started.elapsed() < PATIENCE {
            last = self.ann.get(&format!("/api/v1/{path}")).await.json;
            if is_so(&last) {
                return last;
            }
            self.field.play(&self.namespace).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{path} does not become so: {last:#}");
    }

    /// Waits for something of the Kubernetes itself.
    async fn until_there(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        let started = base::monotonic();
        while !is_so().await {
            assert!(started.elapsed() < PATIENCE, "{what}");
            self.field.play(&self.namespace).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Registers the Kubernetes and waits until it can host; its id, and the agent.
async fn register(world: &World<impl Field>) -> (String, Agent, String) {
    let kubeconfig = world.field.kubeconfig();
    let file = world.server.setup.file("kubeconfig");
    fs::write(&file, &kubeconfig).unwrap();
    let made = world.cli.json(&format!(
        "cluster create far --provider kubernetes --kubeconfig {} --namespace {}",
        file.display(),
        world.namespace
    ));
    let id = made["id"].as_str().unwrap().to_owned();
    let cluster = format!("clusters/{id}");
    let is_prepared =
        async || world.field.has(&world.namespace, "apps", "deployments", "paddock-agent").await;
    world.until_there("its agent is installed", is_prepared).await;
    let prepared = world.until(&cluster, |now| now["status"] != "accepted").await;
    assert_ne!(prepared["status"], "failed", "{prepared:#}");

    // The agent beside it, as its image can't be had there.
    let token = world.cli.run("cluster token far").succeeds().stdout.trim().to_owned();
    let agent = Agent::start(&world.server.address, &token, &kubeconfig, &world.namespace);
    world.field.begin(&world.namespace).await;
    let has_nodes = |now: &Value| now["nodes"].as_array().is_some_and(|nodes| !nodes.is_empty());
    world.until(&cluster, |now| now["status"] == "ready" && has_nodes(now)).await;
    (id, agent, token)
}

/// Register, terraform, ready, deploy, scale, logs, drain, remove.
async fn round_trip(world: World<impl Field>) {
    let (id, mut agent, token) = register(&world).await;
    let cluster = format!("clusters/{id}");
    let script = format!("echo {LINE}; exec sleep 3600");
    let body = json!({"name": "web", "image": world.field.image(), "command": ["sh", "-c", script],
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
        assert!(world.field.has(&world.namespace, "apps", "deployments", name).await, "{name}");
    }
    if world.field.has_logs() {
        world.field.play(&world.namespace).await;
        let started = base::monotonic();
        while !world.cli.run("deployment logs web --replica 0").succeeds().stdout.contains(LINE) {
            assert!(started.elapsed() < PATIENCE, "no log");
        }
    } else {
        eprintln!("there is no kubelet: logs were not read");
    }

    // Another agent finds all of it.
    agent.again(&world.server.address, &world.namespace);
    world.cli.run("deployment scale web 1").succeeds();
    let gone =
        async || !world.field.has(&world.namespace, "apps", "deployments", &objects[1]).await;
    world.until_there("one replica goes", gone).await;
    world.until(&path, |now| now["status"] == "running").await;

    // There is nowhere else to go: it stays, and goes on running.
    world.cli.run("cluster drain far").succeeds().prints(&["draining"]);
    let says = |now: &Value| {
        now["status_reason"]
            .as_str()
            .is_some_and(|why| why.contains("1 deployment without capacity elsewhere"))
    };
    world.until(&cluster, says).await;
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
        let gone = async || !world.field.has(&world.namespace, group, plural, name).await;
        world.until_there(plural, gone).await;
    }
    let said = agent.stderr();
    assert!(
        !said.contains("s3cret") && !said.contains(&token) && !said.contains("panicked"),
        "{said}"
    );
    let empty = |now: &Value| now["reason_code"] == "Drained";
    world.until(&cluster, empty).await;
    drop(agent);

    world.cli.run("cluster delete far --yes").succeeds();
    world.until_gone(&cluster).await;
    let log = world.server.stderr();
    assert!(!log.contains(&token) && !log.contains("panicked"), "{log}");
    assert!(!world.field.has("", "", "namespaces", &world.namespace).await);
    assert!(
        !world
            .field
            .has("", "rbac.authorization.k8s.io", "clusterroles", &format!("paddock-{id}"))
            .await
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubernetes_that_answers_like_one_is_a_cluster() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let field = field::Fake::new().await;
    round_trip(World::new(field, "paddock").await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_on_a_kubernetes_is_what_its_kind_says() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let world = World::new(field::Fake::new().await, "paddock").await;
    let (_, agent, _) = register(&world).await;
    let made = world.cli.json("service dinosaur create rex");
    let path = format!("instances/{}", made["id"].as_str().unwrap());
    let started = base::monotonic();
    let space = loop {
        let [program, address] =
            ["deployments", "services"].map(|what| world.field.namespace_of(what, "rex"));
        if let Some(space) = program.filter(|space| address.as_ref() == Some(space)) {
            break space;
        }
        let now = world.ann.get(&format!("/api/v1/{path}")).await.json;
        assert!(started.elapsed() < PATIENCE, "{now:#} {}", agent.stderr());
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_ne!(space, world.namespace, "an instance has a namespace of its own");
    let before = world.ann.get(&format!("/api/v1/{path}")).await.json;
    assert_eq!(before["status"], "provisioning", "nobody has said that it runs: {before:#}");
    world.field.play(&space).await;
    world.until(&path, |now| now["status"] == "ready").await;
    world.cli.run("service dinosaur delete rex --yes").succeeds();
    world.until_gone(&path).await;
    assert_eq!(world.field.namespace_of("deployments", "rex"), None);
    assert_eq!(world.field.namespace_of("services", "rex"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_apiserver_that_stands_alone_is_a_cluster_with_those_who_are_played() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = testing::apiserver::Apiserver::start().await;
    server.linger(true);
    let field = real::Real::of(&server.kubeconfig("t0ken"), Duration::ZERO).await;
    round_trip(World::new(field, "paddock-alone").await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_kubernetes_is_a_cluster() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Some(field) = real::Real::find().await else {
        println!("not run: PADDOCK_TEST_KUBECONFIG names no kubeconfig of a Kubernetes");
        return;
    };
    let namespace = real::Real::namespace();
    round_trip(World::new(field, &namespace).await).await;
}
