//! Many clients that write at once, and a ledger of what they were told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use testing::Client;

use super::process::Server;

const CLIENTS: usize = 32;
/// What the arena has; every deployment and every hand takes one.
const CPUS: usize = 12;

/// What the server has said yes to, and what it may have done without saying so.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    clusters: BTreeSet<String>,
    deployments: BTreeSet<String>,
    invites: BTreeSet<String>,
    /// Deletions: said yes to, and unanswered.
    deleted: BTreeSet<String>,
    maybe_deleted: BTreeSet<String>,
    /// By hand: how much was taken, given back, and how much of both is not known.
    taken: usize,
    maybe_taken: usize,
    given: usize,
    maybe_given: usize,
    /// Requests that got no answer.
    pub(crate) unanswered: usize,
}

impl Ledger {
    fn add(&mut self, other: Self) {
        self.clusters.extend(other.clusters);
        self.deployments.extend(other.deployments);
        self.invites.extend(other.invites);
        self.deleted.extend(other.deleted);
        self.maybe_deleted.extend(other.maybe_deleted);
        self.taken += other.taken;
        self.maybe_taken += other.maybe_taken;
        self.given += other.given;
        self.maybe_given += other.maybe_given;
        self.unanswered += other.unanswered;
    }
}

/// An organization, and the one cluster that all fight for.
pub(crate) struct Arena {
    token: Client,
    cluster: String,
    pub(crate) ledger: Ledger,
}

impl Arena {
    pub(crate) async fn new(server: &Server) -> Self {
        let owner = server.http_owner("storm").await;
        let body = json!({ "name": "arena", "capacity": { "cpu": CPUS } });
        let cluster = owner.post("/api/v1/clusters", body).await.text("id");
        Self { token: owner, cluster, ledger: Ledger::default() }
    }

    /// Whoever is signed in here is so after a restart, too.
    pub(crate) fn client(&self, server: &Server) -> Client {
        self.token.at(&server.address)
    }

    /// Writes from all sides; after so many answers `act` is called, and all that is left is awaited.
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

    /// All that was promised is there, and no more is used than there is.
    pub(crate) async fn is_remembered(&self, server: &Server) {
        let client = self.client(server);
        self.remembered(&client, "clusters", &self.ledger.clusters).await;
        self.remembered(&client, "deployments", &self.ledger.deployments).await;
        self.remembered(&client, "invites", &self.ledger.invites).await;
        let arena = client.get(&format!("/api/v1/clusters/{}", self.cluster)).await.expect(200);
        assert!(used(&arena) <= CPUS, "{arena:#}");
    }

    async fn remembered(&self, client: &Client, kind: &str, promised: &BTreeSet<String>) {
        let found = all(client, kind).await;
        let found: BTreeSet<_> = found.iter().map(|item| item["id"].as_str().unwrap()).collect();
        for id in promised {
            let (sure, maybe) = (&self.ledger.deleted, &self.ledger.maybe_deleted);
            let may_be_gone = sure.contains(id) || maybe.contains(id);
            assert!(may_be_gone || found.contains(id.as_str()), "of {kind}, {id} is forgotten");
        }
    }

    /// The same, and soon nothing that was deleted is left, all is placed that can be, and what is
    /// used is what runs and what was taken by hand.
    pub(crate) async fn comes_to_rest(&self, server: &Server) {
        self.is_remembered(server).await;
        let client = self.client(server);
        let mut last = String::new();
        for _ in 0..400 {
            let clusters = all(&client, "clusters").await;
            let deployments = all(&client, "deployments").await;
            match self.is_at_rest(&clusters, &deployments) {
                Ok(()) => return,
                Err(reason) => last = reason,
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("it does not come to rest: {last}\n{}", server.stderr());
    }

    fn is_at_rest(&self, clusters: &[Value], deployments: &[Value]) -> Result<(), String> {
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
        let arena = clusters.iter().find(|c| c["id"] == self.cluster.as_str()).expect("the arena");
        let used = used(arena);
        assert!(used <= CPUS, "{used} of {CPUS} used");
        let by_hand = used.checked_sub(running).ok_or(format!("{used} used, {running} run"))?;
        let least = ledger.taken.saturating_sub(ledger.given + ledger.maybe_given);
        let most = ledger.taken + ledger.maybe_taken - ledger.given;
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

/// A list from its first page to its last.
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

/// One of the clients.
struct Writer {
    number: usize,
    client: Client,
    cluster: String,
    ledger: Ledger,
    /// What it has made and not deleted.
    own_deployments: Vec<String>,
    own_clusters: Vec<String>,
    held: usize,
}

enum Said {
    Yes(Value),
    No,
    Nothing,
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
            // Who was not answered stops: the server is gone.
            if !was_answered || shared.is_over.load(Ordering::SeqCst) && round.is_multiple_of(8) {
                break;
            }
        }
        self.ledger
    }

    /// One write of the kind whose turn it is. Was it answered?
    async fn step(&mut self, round: usize) -> bool {
        match round % 8 {
            0 => self.create_cluster().await,
            1..=3 => self.create_deployment(round).await,
            4 if self.own_deployments.len() > 1 => self.delete("deployments").await,
            5 if self.own_clusters.len() > 1 => self.delete("clusters").await,
            6 if self.held > 0 => self.give_back().await,
            6 => self.take().await,
            _ => self.create_invite().await,
        }
    }

    async fn create_cluster(&mut self) -> bool {
        let body = json!({ "name": "small", "capacity": { "gpu": 1 } });
        let said = self.send("POST", "/api/v1/clusters", Some(body)).await;
        if let Said::Yes(made) = &said {
            let id = made["id"].as_str().unwrap().to_owned();
            self.own_clusters.push(id.clone());
            self.ledger.clusters.insert(id);
        }
        !matches!(said, Said::Nothing)
    }

    async fn create_deployment(&mut self, round: usize) -> bool {
        let image = round.is_multiple_of(2).then_some("nginx:1");
        let body = json!({ "cluster_id": self.cluster, "resources": { "cpu": 1 }, "image": image,
                           "priority": round % 5 });
        let said = self.send("POST", "/api/v1/deployments", Some(body)).await;
        if let Said::Yes(made) = &said {
            let id = made["id"].as_str().unwrap().to_owned();
            self.own_deployments.push(id.clone());
            self.ledger.deployments.insert(id);
        }
        !matches!(said, Said::Nothing)
    }

    async fn create_invite(&mut self) -> bool {
        let said = self.send("POST", "/api/v1/invites", None).await;
        if let Said::Yes(made) = &said {
            self.ledger.invites.insert(made["id"].as_str().unwrap().to_owned());
        }
        !matches!(said, Said::Nothing)
    }

    async fn delete(&mut self, what: &str) -> bool {
        let own =
            if what == "clusters" { &mut self.own_clusters } else { &mut self.own_deployments };
        let id = own.remove(0);
        match self.send("DELETE", &format!("/api/v1/{what}/{id}"), None).await {
            Said::Yes(_) => self.ledger.deleted.insert(id),
            Said::No => panic!("{id} can't be deleted"),
            Said::Nothing => !self.ledger.maybe_deleted.insert(id),
        }
    }

    async fn take(&mut self) -> bool {
        match self.by_hand("take").await {
            Said::Yes(_) => {
                self.held += 1;
                self.ledger.taken += 1;
                true
            }
            Said::No => true,
            Said::Nothing => {
                self.ledger.maybe_taken += 1;
                false
            }
        }
    }

    async fn give_back(&mut self) -> bool {
        self.held -= 1;
        match self.by_hand("give-back").await {
            Said::Yes(_) => {
                self.ledger.given += 1;
                true
            }
            Said::No => panic!("what was taken can't be given back"),
            Said::Nothing => {
                self.ledger.maybe_given += 1;
                false
            }
        }
    }

    async fn by_hand(&self, verb: &str) -> Said {
        let path = format!("/api/v1/clusters/{}/capacity/{verb}", self.cluster);
        self.send("POST", &path, Some(json!({ "resources": { "cpu": 1 } }))).await
    }

    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Said {
        let mut request = self.client.request(method, path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let Ok(response) = request.send().await else { return Said::Nothing };
        let status = response.status();
        match response.json().await {
            Ok(body) if status.is_success() => Said::Yes(body),
            Ok(_) if status == StatusCode::CONFLICT => Said::No,
            Ok(body) => panic!("{method} {path}: {status} {body:#}"),
            Err(_) => Said::Nothing,
        }
    }
}
