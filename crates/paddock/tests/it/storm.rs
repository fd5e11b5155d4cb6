//! Concurrent writers, and a ledger of acknowledged writes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use testing::Client;

use super::process::Server;

const CLIENTS: usize = 32;
/// Capacity of the contended cluster; every deployment and every reservation needs one.
const CPUS: usize = 12;

/// Acknowledged writes, and writes that may have happened without a response.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    clusters: BTreeSet<String>,
    deployments: BTreeSet<String>,
    invites: BTreeSet<String>,
    /// Deletions: acknowledged and unanswered.
    deleted: BTreeSet<String>,
    maybe_deleted: BTreeSet<String>,
    /// Reserved and released capacity: acknowledged and unanswered.
    reserved: usize,
    maybe_reserved: usize,
    released: usize,
    maybe_released: usize,
    /// Requests without a response.
    pub(crate) unanswered: usize,
}

impl Ledger {
    fn add(&mut self, other: Self) {
        self.clusters.extend(other.clusters);
        self.deployments.extend(other.deployments);
        self.invites.extend(other.invites);
        self.deleted.extend(other.deleted);
        self.maybe_deleted.extend(other.maybe_deleted);
        self.reserved += other.reserved;
        self.maybe_reserved += other.maybe_reserved;
        self.released += other.released;
        self.maybe_released += other.maybe_released;
        self.unanswered += other.unanswered;
    }
}

/// An organization and its contended cluster.
pub(crate) struct Workload {
    token: Client,
    cluster: String,
    pub(crate) ledger: Ledger,
}

impl Workload {
    pub(crate) async fn new(server: &Server) -> Self {
        let owner = server.http_owner("storm").await;
        let body = json!({ "name": "arena", "capacity": { "cpu": CPUS } });
        let cluster = owner.post("/api/v1/clusters", body).await.text("id");
        Self { token: owner, cluster, ledger: Ledger::default() }
    }

    /// Client for the current address; the token survives a restart.
    pub(crate) fn client(&self, server: &Server) -> Client {
        self.token.at(&server.address)
    }

    /// Runs concurrent writers; after `acks` responses calls `act` and waits for the writers.
    pub(crate) async fn storm(&mut self, server: &mut Server, acks: usize, act: fn(&mut Server)) {
        let shared = Arc::new(Shared::default());
        let client = self.client(server);
        let mut tasks = base::task::Tasks::new();
        for number in 0..CLIENTS {
            let (shared, client) = (shared.clone(), client.clone());
            let writer = Writer::new(number, client, self.cluster.clone());
            tasks.spawn("writer", writer.run(shared));
        }
        while shared.acks.load(Ordering::SeqCst) < acks {
            assert!(!tasks.is_empty());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        tokio::task::block_in_place(|| act(server));
        shared.is_over.store(true, Ordering::SeqCst);
        for ledger in tasks.join_all().await {
            self.ledger.add(ledger);
        }
    }

    /// Asserts that all acknowledged objects exist and that capacity is not exceeded.
    pub(crate) async fn assert_persisted(&self, server: &Server) {
        let client = self.client(server);
        self.assert_exist(&client, "clusters", &self.ledger.clusters).await;
        self.assert_exist(&client, "deployments", &self.ledger.deployments).await;
        self.assert_exist(&client, "invites", &self.ledger.invites).await;
        let contended = client.get(&format!("/api/v1/clusters/{}", self.cluster)).await.expect(200);
        assert!(used(&contended) <= CPUS, "{contended:#}");
    }

    async fn assert_exist(&self, client: &Client, kind: &str, acknowledged: &BTreeSet<String>) {
        let found = all(client, kind).await;
        let found: BTreeSet<_> = found.iter().map(|item| item["id"].as_str().unwrap()).collect();
        for id in acknowledged {
            let (sure, maybe) = (&self.ledger.deleted, &self.ledger.maybe_deleted);
            let may_be_deleted = sure.contains(id) || maybe.contains(id);
            assert!(may_be_deleted || found.contains(id.as_str()), "{id} of {kind} is lost");
        }
    }

    /// Like [`Self::assert_persisted`]; eventually, deleted objects are removed, everything that
    /// fits is placed, and used capacity equals running plus reserved.
    pub(crate) async fn assert_settles(&self, server: &Server) {
        self.assert_persisted(server).await;
        let client = self.client(server);
        let mut last = String::new();
        for _ in 0..400 {
            let clusters = all(&client, "clusters").await;
            let deployments = all(&client, "deployments").await;
            match self.check_settled(&clusters, &deployments) {
                Ok(()) => return,
                Err(reason) => last = reason,
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("state does not settle: {last}\n{}", server.stderr());
    }

    fn check_settled(&self, clusters: &[Value], deployments: &[Value]) -> Result<(), String> {
        let ledger = &self.ledger;
        for item in clusters.iter().chain(deployments) {
            let (id, status) = (item["id"].as_str().unwrap(), item["status"].as_str().unwrap());
            if ledger.deleted.contains(id) {
                return Err(format!("{id} was deleted and is {status}"));
            }
            if !["ready", "running", "queued", "preempted"].contains(&status) {
                return Err(format!("{id} is {status}"));
            }
        }
        let count = |status| deployments.iter().filter(|d| d["status"] == status).count();
        let (running, waiting) = (count("running"), count("queued") + count("preempted"));
        let contended = clusters
            .iter()
            .find(|c| c["id"] == self.cluster.as_str())
            .expect("the contended cluster exists");
        let used = used(contended);
        assert!(used <= CPUS, "{used} of {CPUS} used");
        let by_hand = used.checked_sub(running).ok_or(format!("{used} used, {running} run"))?;
        let least = ledger.reserved.saturating_sub(ledger.released + ledger.maybe_released);
        let most = ledger.reserved + ledger.maybe_reserved - ledger.released;
        if !(least..=most).contains(&by_hand) {
            return Err(format!(
                "{by_hand} by hand, not {least} to {most}: {used} used, {running} run"
            ));
        }
        if waiting > 0 && used < CPUS {
            return Err(format!("{waiting} wait although {used} of {CPUS} are used"));
        }
        Ok(())
    }
}

fn used(cluster: &Value) -> usize {
    usize::try_from(cluster["capacity"]["cpu"]["used"].as_u64().unwrap()).unwrap()
}

/// All pages of a list.
async fn all(client: &Client, what: &str) -> Vec<Value> {
    let mut items = Vec::new();
    let mut after = String::new();
    loop {
        let page = client.get(&format!("/api/v1/{what}?limit=1000{after}")).await.expect(200);
        items.extend(page["items"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return items,
        }
    }
}

#[derive(Default)]
struct Shared {
    acks: AtomicUsize,
    is_over: AtomicBool,
}

/// A concurrent client.
struct Writer {
    number: usize,
    client: Client,
    cluster: String,
    ledger: Ledger,
    /// Created and not yet deleted.
    own_deployments: Vec<String>,
    own_clusters: Vec<String>,
    held: usize,
}

enum Reply {
    Accepted(Value),
    Refused,
    Unanswered,
}

impl Writer {
    fn new(number: usize, client: Client, cluster: String) -> Self {
        let (ledger, held) = (Ledger::default(), 0);
        let (own_deployments, own_clusters) = (Vec::new(), Vec::new());
        Self { number, client, cluster, ledger, own_deployments, own_clusters, held }
    }

    async fn run(mut self, shared: Arc<Shared>) -> Ledger {
        for round in self.number.. {
            let was_answered = self.step(round).await;
            if was_answered {
                shared.acks.fetch_add(1, Ordering::SeqCst);
            } else {
                self.ledger.unanswered += 1;
            }
            // Stops without a response: the server is down.
            if !was_answered || shared.is_over.load(Ordering::SeqCst) && round.is_multiple_of(8) {
                break;
            }
        }
        self.ledger
    }

    /// Performs the next write and returns whether it was answered.
    async fn step(&mut self, round: usize) -> bool {
        match round % 8 {
            0 => self.create_cluster().await,
            1..=3 => self.create_deployment(round).await,
            4 if self.own_deployments.len() > 1 => self.delete("deployments").await,
            5 if self.own_clusters.len() > 1 => self.delete("clusters").await,
            6 if self.held > 0 => self.release().await,
            6 => self.reserve().await,
            _ => self.create_invite().await,
        }
    }

    async fn create_cluster(&mut self) -> bool {
        let body = json!({ "name": "small", "capacity": { "gpu": 1 } });
        let reply = self.send("POST", "/api/v1/clusters", Some(body)).await;
        if let Reply::Accepted(created) = &reply {
            let id = created["id"].as_str().unwrap().to_owned();
            self.own_clusters.push(id.clone());
            self.ledger.clusters.insert(id);
        }
        !matches!(reply, Reply::Unanswered)
    }

    async fn create_deployment(&mut self, round: usize) -> bool {
        let image = round.is_multiple_of(2).then_some("nginx:1");
        let body = json!({ "cluster_id": self.cluster, "resources": { "cpu": 1 }, "image": image,
                           "priority": round % 5 });
        let reply = self.send("POST", "/api/v1/deployments", Some(body)).await;
        if let Reply::Accepted(created) = &reply {
            let id = created["id"].as_str().unwrap().to_owned();
            self.own_deployments.push(id.clone());
            self.ledger.deployments.insert(id);
        }
        !matches!(reply, Reply::Unanswered)
    }

    async fn create_invite(&mut self) -> bool {
        let reply = self.send("POST", "/api/v1/invites", None).await;
        if let Reply::Accepted(created) = &reply {
            self.ledger.invites.insert(created["id"].as_str().unwrap().to_owned());
        }
        !matches!(reply, Reply::Unanswered)
    }

    async fn delete(&mut self, what: &str) -> bool {
        let own =
            if what == "clusters" { &mut self.own_clusters } else { &mut self.own_deployments };
        let id = own.remove(0);
        match self.send("DELETE", &format!("/api/v1/{what}/{id}"), None).await {
            Reply::Accepted(_) => self.ledger.deleted.insert(id),
            Reply::Refused => panic!("deletion of {id} was refused"),
            Reply::Unanswered => !self.ledger.maybe_deleted.insert(id),
        }
    }

    async fn reserve(&mut self) -> bool {
        match self.by_hand("take").await {
            Reply::Accepted(_) => {
                self.held += 1;
                self.ledger.reserved += 1;
                true
            }
            Reply::Refused => true,
            Reply::Unanswered => {
                self.ledger.maybe_reserved += 1;
                false
            }
        }
    }

    async fn release(&mut self) -> bool {
        self.held -= 1;
        match self.by_hand("give-back").await {
            Reply::Accepted(_) => {
                self.ledger.released += 1;
                true
            }
            Reply::Refused => panic!("what was reserved can't be released back"),
            Reply::Unanswered => {
                self.ledger.maybe_released += 1;
                false
            }
        }
    }

    async fn by_hand(&self, verb: &str) -> Reply {
        let path = format!("/api/v1/clusters/{}/capacity/{verb}", self.cluster);
        self.send("POST", &path, Some(json!({ "resources": { "cpu": 1 } }))).await
    }

    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Reply {
        let mut request = self.client.request(method, path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let Ok(response) = request.send().await else { return Reply::Unanswered };
        let status = response.status();
        match response.json().await {
            Ok(body) if status.is_success() => Reply::Accepted(body),
            Ok(_) if status == StatusCode::CONFLICT => Reply::Refused,
            Ok(body) => panic!("{method} {path}: {status} {body:#}"),
            Err(_) => Reply::Unanswered,
        }
    }
}
