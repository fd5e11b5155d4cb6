//! Two organizations with one of everything, and a picture of all that there is.

use std::time::Duration;

use serde_json::{Value, json};
use testing::{Answer, Client, Engine, TestPaddock, TestSettings};

use crate::calls::Call;

/// A server and ann, the owner of an organization.
pub(crate) async fn start(engine: Engine) -> (TestPaddock, Client) {
    start_with(engine, TestSettings::default()).await
}

/// The same without workers and agent: nothing moves.
pub(crate) async fn start_still(engine: Engine) -> (TestPaddock, Client) {
    start_with(engine, TestSettings { is_still: true, ..TestSettings::default() }).await
}

/// The same with settings.
pub(crate) async fn start_with(engine: Engine, settings: TestSettings) -> (TestPaddock, Client) {
    let paddock = TestPaddock::start_with(engine, settings).await;
    let ann = paddock.owner("ann").await;
    (paddock, ann)
}

/// A server with two organizations.
pub(crate) struct World {
    pub(crate) paddock: TestPaddock,
    /// The owner of one.
    pub(crate) ann: Client,
    /// The owner of the other.
    pub(crate) zoe: Client,
    pub(crate) admin: Client,
    /// The agent of a cluster of ann's.
    pub(crate) agent: Client,
    pub(crate) ours: Things,
    pub(crate) theirs: Things,
}

/// One of everything, by id.
#[derive(Debug, Clone)]
pub(crate) struct Things {
    pub(crate) organization: String,
    pub(crate) user: String,
    pub(crate) invite: String,
    /// The invite's code.
    pub(crate) code: String,
    pub(crate) cluster: String,
    pub(crate) deployment: String,
    pub(crate) instance: String,
    /// As it is called: `name@version`.
    pub(crate) template: String,
    pub(crate) environment: String,
    pub(crate) resource: String,
}

impl World {
    pub(crate) async fn new(engine: Engine) -> Self {
        let paddock = TestPaddock::start(engine).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        let admin = paddock.admin().await;
        let ours = Things::make(&paddock, &ann).await;
        let theirs = Things::make(&paddock, &zoe).await;
        let agent = agent_of(&paddock, &ann, &agent_cluster(&ann, "far").await).await;
        settled(&ann).await;
        Self { paddock, ann, zoe, admin, agent, ours, theirs }
    }

    /// The same, with the picture of it.
    pub(crate) async fn pictured(engine: Engine) -> (Self, Value) {
        let world = Self::new(engine).await;
        let before = world.picture().await;
        (world, before)
    }

    /// Who can make this call.
    pub(crate) fn caller(&self, call: &Call) -> &Client {
        match call {
            _ if call.is_agents() => &self.agent,
            _ if call.is_admins() => &self.admin,
            _ => &self.ann,
        }
    }

    /// Everything that anybody can list, and the whole event log.
    pub(crate) async fn picture(&self) -> Value {
        let mut all = json!({});
        for (who, client) in [("ann", &self.ann), ("zoe", &self.zoe), ("admin", &self.admin)] {
            for list in [
                "organizations",
                "users",
                "invites",
                "clusters",
                "deployments",
                "instances",
                "templates",
                // Resources are looked at from time to time, and say when.
                "environments",
                "events",
            ] {
                let page = client.get(&format!("/api/v1/{list}?limit=1000")).await.expect(200);
                all[format!("{who}'s {list}")] = page["items"].clone();
            }
        }
        all
    }
}

impl Things {
    async fn make(paddock: &TestPaddock, owner: &Client) -> Self {
        let invite = owner.post("/api/v1/invites", json!({})).await;
        let cluster = paddock.cluster(owner, json!({"cpu": 4, "ram": "1Gi"})).await;
        let body = json!({"cluster_id": cluster, "image": "web:1", "resources": {"cpu": 1}});
        let deployment = deploy_running(paddock, owner, body).await;
        let body = json!({"kind": "kafka", "name": "mine"});
        let instance = owner.post("/api/v1/instances", body).await.text("id");
        let path = format!("/api/v1/instances/{instance}");
        paddock.until(owner, &path, "status", "ready").await;
        let name = owner.get("/user/").await.text("username") + "-shop";
        let base = json!({"name": "base", "executor": "vault-secret", "with": {"path": "base"}});
        let body = json!({"name": name, "version": "1", "resources": [base]});
        let template = owner.post("/api/v1/templates", body).await.text("reference");
        let body = json!({"name": "mine", "templates": [template]});
        let environment = owner.post("/api/v1/environments", body).await.text("id");
        let path = format!("/api/v1/environments/{environment}");
        let made = paddock.until(owner, &path, "status", "deployed").await;
        Self {
            template,
            environment,
            resource: made["resources"][0]["id"].as_str().unwrap().to_owned(),
            organization: owner.get("/organization/").await.text("id"),
            user: owner.get("/user/").await.text("id"),
            invite: invite.text("id"),
            code: invite.text("code"),
            cluster,
            deployment,
            instance,
        }
    }
}

/// A new cluster that waits for its agent.
pub(crate) async fn agent_cluster(owner: &Client, name: &str) -> String {
    let body = json!({"name": name, "provider": "agent"});
    owner.post("/api/v1/clusters", body).await.text("id")
}

/// The agent of a cluster, with a new token.
pub(crate) async fn agent_of(paddock: &TestPaddock, owner: &Client, cluster: &str) -> Client {
    let path = format!("{}/token", cluster_path(cluster));
    let token = owner.post(&path, json!({})).await.text("token");
    paddock.client.with_token(&token)
}

/// Returns when no cluster of the caller's is on its way any more.
async fn settled(client: &Client) {
    let on_its_way = ["accepted", "provisioning", "provisioned"];
    until("no cluster is on its way", async || {
        let clusters = client.get("/api/v1/clusters").await.expect(200);
        let mut all = clusters["items"].as_array().unwrap().iter();
        !all.any(|one| on_its_way.contains(&one["status"].as_str().unwrap()))
    })
    .await;
}

/// Checks again until it holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("timed out: {what}");
}

/// Asks again until the answer is as expected; the whole answer then.
pub(crate) async fn until_shown(
    client: &Client,
    path: &str,
    is_expected: impl Fn(&Value) -> bool,
) -> Value {
    let mut last = Value::Null;
    for _ in 0..600 {
        last = client.get(path).await.expect(200);
        if is_expected(&last) {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("timed out, {path} is {last:#}");
}

/// Creates a deployment; its id.
pub(crate) async fn deploy(client: &Client, body: Value) -> String {
    client.post("/api/v1/deployments", body).await.text("id")
}

/// The same, once it runs.
pub(crate) async fn deploy_running(paddock: &TestPaddock, client: &Client, body: Value) -> String {
    let id = deploy(client, body).await;
    paddock.until(client, &deployment_path(&id), "status", "running").await;
    id
}

/// The ids of all items.
pub(crate) fn ids(items: &Value) -> Vec<String> {
    let id = |item: &Value| item["id"].as_str().unwrap().to_owned();
    items.as_array().unwrap().iter().map(id).collect()
}

/// Where a deployment is.
pub(crate) fn deployment_path(id: &str) -> String {
    format!("/api/v1/deployments/{id}")
}

/// Where a cluster is.
pub(crate) fn cluster_path(id: &str) -> String {
    format!("/api/v1/clusters/{id}")
}

/// Fails unless the answer is a refusal that says what to do.
#[track_caller]
pub(crate) fn refused(answer: &Answer, what: &str) {
    let problem = &answer.json;
    assert!((400..500).contains(&answer.status), "{what}: {} {problem:#}", answer.status);
    assert_eq!(answer.headers["content-type"], "application/problem+json", "{what}");
    assert_eq!(problem["status"], answer.status, "{what}: {problem:#}");
    assert_eq!(problem["request_id"], answer.headers["x-request-id"].to_str().unwrap(), "{what}");
    let detail = problem["detail"].as_str().unwrap_or_default();
    assert!(detail.len() > 10 && detail.ends_with('.'), "{what}: {problem:#}");
}

/// Fails unless the answer is a 400 that names this field, with a rule.
#[track_caller]
pub(crate) fn names_field(answer: &Answer, field: &str, what: &str) {
    refused(answer, what);
    assert_eq!(answer.status, 400, "{what}: {:#}", answer.json);
    let last = field.rsplit('.').next().unwrap_or(field);
    let errors = answer.json["errors"].as_array().cloned().unwrap_or_default();
    let names = |error: &Value| {
        let (at, detail) = (error["field"].as_str().unwrap(), error["detail"].as_str().unwrap());
        detail.len() > 7 && (at.starts_with(field) || detail.contains(&format!("`{last}`")))
    };
    assert!(errors.iter().any(names), "{what}: {field} is not named: {:#}", answer.json);
}

/// The messages of all field errors in one text.
pub(crate) fn sentences(answer: &Answer) -> String {
    answer.json["detail"].as_str().unwrap_or_default().to_owned()
        + &answer.json["errors"].to_string()
}
