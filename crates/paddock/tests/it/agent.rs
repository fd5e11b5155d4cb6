//! Agent processes against a server process: loss, reconnection and token rotation.

use std::fs::{self, File};
use std::net::TcpListener;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use base::{OsEntropy, SystemClock};
use serde_json::{Value, json};
use store::{Db, Durability};
use tempfile::TempDir;
use testing::{Client, Engine, check_ledgers, on_both_engines};

use super::process::{self, BINARY, Outcome, PASSWORD, Server, Setup, bare};

const CAVEAT: &str = "this is the last known status.";
const TIMEOUT: Duration = Duration::from_mins(1);

/// An agent process, killed on drop.
struct Agent {
    child: Child,
    dir: TempDir,
    server: String,
}

impl Agent {
    fn start(server: &str, token: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("token"), token).unwrap();
        let child = spawn(&dir, server);
        Self { child, dir, server: server.into() }
    }

    fn restart(&mut self) {
        self.child = spawn(&self.dir, &self.server);
    }

    fn signal(&self, name: &str) {
        let line = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
    }

    /// Kills the agent with SIGKILL.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn wait_for_exit(&mut self) -> ExitStatus {
        let started = base::monotonic();
        while started.elapsed() < TIMEOUT {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("agent still running: {}", self.stderr());
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

fn command(dir: &TempDir, server: &str) -> Command {
    let mut command = bare(BINARY);
    command.args(["agent", "--server", server, "--runtime", "simulated"]);
    command.args(["--capacity", "cpu=4,ram=1Gi"]).current_dir(dir.path());
    command
}

fn spawn(dir: &TempDir, server: &str) -> Child {
    let err = File::create(dir.path().join("stderr")).unwrap();
    command(dir, server).args(["--token-file", "token"]).stderr(err).spawn().unwrap()
}

/// A server without local agent, and an organization.
struct World {
    server: Server,
    engine: Engine,
    database: Option<String>,
    ann: Client,
    cli: process::Client,
}

impl World {
    async fn new(engine: Engine) -> Self {
        let database = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(testing::create_postgres().await),
        };
        // A fixed port, so that agents find the server after a restart.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut setup = Setup::new()
            .arg("--listen", &format!("127.0.0.1:{port}"))
            .arg("--local-agent", "false")
            .arg("--agent-silence-secs", "2")
            .arg("--agent-grace-secs", "1");
        if let Some(url) = &database {
            setup = setup.arg("--database-url", url);
        }
        let server = setup.start();
        let cli = server.owner("acme", "ann");
        let ann = server.http_as("ann", PASSWORD).await;
        Self { server, engine, database, ann, cli }
    }

    fn token(&self, cluster: &str) -> String {
        let outcome = self.cli.run(&format!("cluster token {cluster}")).succeeds();
        let stdout = outcome.notes(&["paddock agent --server ", "--token-file"]).stdout;
        stdout.trim().to_owned()
    }

    /// A cluster without agent, and its token.
    fn cluster(&self, name: &str) -> (String, String) {
        let created = self.cli.json(&format!("cluster create {name} --provider agent"));
        (created["id"].as_str().unwrap().to_owned(), self.token(name))
    }

    /// A ready cluster of 4 cpu with an agent.
    async fn hosted(&self, name: &str) -> (String, Agent) {
        let (id, token) = self.cluster(name);
        let agent = Agent::start(&self.server.address, &token);
        self.until(&format!("clusters/{id}"), |now| now["status"] == "ready").await;
        (id, agent)
    }

    async fn deploy(&self, cpu: i64) -> String {
        let body = json!({"name": "web", "image": "web:1", "resources": {"cpu": cpu}});
        self.ann.post("/api/v1/deployments", body).await.text("id")
    }

    async fn until(&self, path: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let (started, mut last) = (base::monotonic(), Value::Null);
        while started.elapsed() < TIMEOUT {
            last = self.ann.get(&format!("/api/v1/{path}")).await.json;
            if condition(&last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{path}: condition not reached: {last:#}");
    }

    async fn until_on(&self, deployment: &str, cluster: &str) {
        let path = format!("deployments/{deployment}");
        let is_running = |now: &Value| now["status"] == "running" && now["cluster_id"] == cluster;
        self.until(&path, is_running).await;
    }

    /// Stops the server and checks the capacity ledger.
    async fn close(mut self) {
        self.server.terminate();
        assert!(self.server.wait_for_exit(TIMEOUT).success());
        let (clock, entropy) = (Arc::new(SystemClock), Arc::new(OsEntropy));
        let db = match self.engine {
            Engine::Sqlite => {
                let path = self.server.setup.file("data/paddock.db");
                Db::open_sqlite(&path, Durability::Normal, clock, entropy).await
            }
            Engine::Postgres => {
                Db::open_postgres(self.database.as_ref().unwrap(), clock, entropy).await
            }
        };
        check_ledgers(&db.unwrap()).await;
    }
}

on_both_engines! {
    async fn replicas_of_a_dead_agent_are_rescheduled_exactly_once(engine: Engine) {
        let world = World::new(engine).await;
        let (far, mut agent) = world.hosted("far").await;
        let deployment = world.deploy(3).await;
        world.until_on(&deployment, &far).await;
        let (near, _other) = world.hosted("near").await;
        agent.kill();
        let far_path = format!("clusters/{far}");
        let lost = world.until(&far_path, |now| now["status"] == "unreachable").await;
        let reason = lost["status_reason"].as_str().unwrap();
        assert!(reason.contains("No heartbeat from the agent since"), "{reason}");
        world.until_on(&deployment, &near).await;
        // Before rescheduling, the deployment shows its last known status with a caveat.
        let history = world.ann.get(&format!("/api/v1/deployments/{deployment}/history")).await;
        let history = history.expect(200)["items"].as_array().unwrap().clone();
        let doubted = history.iter().find(|event| event["type"] == "deployment.doubted").unwrap();
        assert_eq!(doubted["data"]["status"], "running", "{doubted:#}");
        assert!(doubted["data"]["status_reason"].as_str().unwrap().ends_with(CAVEAT));
        let lost = world.until(&far_path, |now| now["status"] == "unreachable").await;
        assert_eq!(lost["capacity"]["cpu"]["used"], 3, "it may still run there");

        agent.restart();
        world.until(&far_path, |now| now["status"] == "ready").await;
        world.until(&far_path, |now| now["capacity"]["cpu"]["used"] == 0).await;
        world.until_on(&deployment, &near).await;
        // The cluster accepts replicas again.
        let next = world.deploy(4).await;
        world.until_on(&next, &far).await;
        world.close().await;
    }

    async fn reconnected_agent_stops_rescheduled_replicas(engine: Engine) {
        let world = World::new(engine).await;
        let (far, agent) = world.hosted("far").await;
        let deployment = world.deploy(3).await;
        world.until_on(&deployment, &far).await;
        let (near, _other) = world.hosted("near").await;
        agent.signal("STOP");
        world.until_on(&deployment, &near).await;
        agent.signal("CONT");
        let far_path = format!("clusters/{far}");
        world.until(&far_path, |now| now["status"] == "ready").await;
        world.until(&far_path, |now| now["capacity"]["cpu"]["used"] == 0).await;
        world.until_on(&deployment, &near).await;
        world.close().await;
    }

    async fn agent_survives_server_restart_and_token_rotation(engine: Engine) {
        let mut world = World::new(engine).await;
        let (far, mut agent) = world.hosted("far").await;
        let first = world.deploy(1).await;
        world.until_on(&first, &far).await;
        world.server.kill();
        thread::sleep(Duration::from_secs(1));
        world.server.restart();
        let second = world.deploy(1).await;
        world.until_on(&second, &far).await;
        world.until_on(&first, &far).await;

        let old = fs::read_to_string(agent.dir.path().join("token")).unwrap();
        let path = format!("/api/v1/clusters/{far}/token");
        let new = world.ann.post(&path, json!({"overlap_secs": 5})).await.text("token");
        fs::write(agent.dir.path().join("token"), format!("{new}\n")).unwrap();
        let old = world.server.http().with_token(&old);
        while old.get("/api/v1/agent/desired").await.status != 401 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let third = world.deploy(1).await;
        world.until_on(&third, &far).await;
        assert!(!agent.stderr().contains(&new) && !world.server.stderr().contains(&new));

        agent.signal("TERM");
        assert!(agent.wait_for_exit().success());
        // Replicas are not reported as ended.
        let still = world.ann.get(&format!("/api/v1/deployments/{first}")).await.expect(200);
        assert_eq!(still["status"], "running");
        world.close().await;
    }
}

#[tokio::test]
async fn rejected_agent_exits_with_an_error() {
    let world = World::new(Engine::Sqlite).await;
    let mut agent = Agent::start(&world.server.address, "not-a-good-token");
    assert_eq!(agent.wait_for_exit().code(), Some(1));
    let stderr = agent.stderr();
    assert!(
        stderr.contains("rejected this agent's token") && stderr.contains("paddock cluster token"),
        "{stderr}"
    );
    assert!(!stderr.contains("not-a-good-token"), "{stderr}");
    // A token that expires while the agent runs.
    let (id, mut agent) = world.hosted("far").await;
    let path = format!("/api/v1/clusters/{id}/token");
    world.ann.post(&path, json!({"overlap_secs": 0})).await.expect(201);
    assert_eq!(agent.wait_for_exit().code(), Some(1));
}

#[test]
fn invalid_agent_setting_is_reported_by_name() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("empty"), "\n").unwrap();
    let run = |args: &[&str]| {
        let mut command = command(&dir, "http://127.0.0.1:9");
        Outcome::new(&args.join(" "), command.args(args).output().unwrap())
    };
    // Command lines are readable by all users of a machine.
    let outcome = run(&["--token", "s3cret"]).fails(2, &["--token"]);
    assert!(!outcome.stderr.contains("s3cret"), "{outcome:?}");
    let outcome = run(&["--token=s3cret"]).fails(2, &["--token"]);
    assert!(!outcome.stderr.contains("s3cret"), "{outcome:?}");
    run(&[]).fails(1, &["no token", "--token-file", "PADDOCK_AGENT_TOKEN"]);
    run(&["--token-file", "nowhere"]).fails(1, &["--token-file: cannot read nowhere"]);
    run(&["--token-file", "empty"]).fails(1, &["--token-file: empty does not contain a token"]);
    let mut command = bare(BINARY);
    command.args(["agent", "--server", "here"]).env("PADDOCK_AGENT_TOKEN", "x");
    Outcome::new("agent", command.output().unwrap()).fails(1, &["--server: \"here\""]);
    let mut command = bare(BINARY);
    command.args(["agent", "--capacity", "cpu"]).env("PADDOCK_AGENT_TOKEN", "x");
    Outcome::new("agent", command.output().unwrap()).fails(1, &["--capacity: \"cpu\""]);
}
