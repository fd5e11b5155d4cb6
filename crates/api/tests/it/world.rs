//! Test fixture: two organizations with one of everything, and a snapshot of all objects.

use std::time::Duration;

use serde_json::{Value, json};
use testing::{Answer, Client, Engine, TestPaddock, TestSettings};

use crate::calls::Call;

/// Starts a server with ann, the owner of an organization.
pub(crate) async fn start(engine: Engine) -> (TestPaddock, Client) {
    start_with(engine, TestSettings::default()).await
}

/// Same as [`start`], without workers and agent.
pub(crate) async fn start_still(engine: Engine) -> (TestPaddock, Client) {
    start_with(engine, TestSettings { api_only: true, ..TestSettings::default() }).await
}

/// Same as [`start`], with settings.
pub(crate) async fn start_with(engine: Engine, settings: TestSettings) -> (TestPaddock, Client) {
    let paddock = TestPaddock::start_with(engine, settings).await;
    let ann = paddock.owner("ann").await;
    (paddock, ann)
}

/// A server with two organizations.
pub(crate) struct World {
    pub(crate) paddock: TestPaddock,
    /// Owner of one organization.
    pub(crate) ann: Client,
    /// Owner of the other organization.
    pub(crate) zoe: Client,
    pub(crate) admin: Client,
    /// Agent of a cluster of ann's.
    pub(crate) agent: Client,
    pub(crate) ours: Fixtures,
    pub(crate) theirs: Fixtures,
}

/// IDs of one object of every kind.
#[derive(Debug, Clone)]
pub(crate) struct Fixtures {
    pub(crate) organization: String,
    pub(crate) user: String,
    pub(crate) invite: String,
    pub(crate) token: String,
    /// Invite code.
    pub(crate) code: String,
    pub(crate) cluster: String,
    pub(crate) deployment: String,
    pub(crate) instance: String,
    pub(crate) service_account: String,
    /// Reference: `name@version`.
    pub(crate) template: String,
    pub(crate) environment: String,
    pub(crate) resource: String,
}

impl World {
    pub(crate) async fn new(engine: Engine) -> Self {
        let paddock = TestPaddock::start(engine).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        let admin = paddock.admin().await;
        let ours = Fixtures::make(&paddock, &ann).await;
        let theirs = Fixtures::make(&paddock, &zoe).await;
        ann.owns(ours.unique());
        zoe.owns(theirs.unique());
        let agent = agent_of(&paddock, &ann, &agent_cluster(&ann, "far").await).await;
        settle_clusters(&ann).await;
        Self { paddock, ann, zoe, admin, agent, ours, theirs }
    }

    /// Same as [`World::new`], with a snapshot.
    pub(crate) async fn with_snapshot(engine: Engine) -> (Self, Value) {
        let world = Self::new(engine).await;
        let before = world.snapshot().await;
        (world, before)
    }

    /// Client that may send this request.
    pub(crate) fn caller(&self, call: &Call) -> &Client {
        match call {
            _ if call.is_for_agents() => &self.agent,
            _ if call.is_for_admins() => &self.admin,
            _ => &self.ann,
        }
    }

    /// Snapshot of every list and the whole event log.
    pub(crate) async fn snapshot(&self) -> Value {
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
                // Observation times of resources change.
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

impl Fixtures {
    /// IDs and secrets that no other organization may see.
    pub(crate) fn unique(&self) -> [&String; 10] {
        let Self { organization, user, invite, code, cluster, deployment, .. } = self;
        let Self { instance, service_account, environment, resource, .. } = self;
        [
            organization,
            user,
            invite,
            code,
            cluster,
            deployment,
            instance,
            service_account,
            environment,
            resource,
        ]
    }

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
            token: owner.post("/api/v1/tokens", json!({"name": "fixture"})).await.text("id"),
            code: invite.text("code"),
            cluster,
            deployment,
            instance,
            service_account: service_account(owner, "robot").await.text("id"),
        }
    }
}

/// Creates a service account.
pub(crate) async fn service_account(owner: &Client, name: &str) -> Answer {
    owner.post("/api/kafkas_mgmt/v1/service_accounts", json!({"name": name})).await
}

/// Creates a cluster that waits for its agent.
pub(crate) async fn agent_cluster(owner: &Client, name: &str) -> String {
    let body = json!({"name": name, "provider": "agent"});
    owner.post("/api/v1/clusters", body).await.text("id")
}

/// Returns the agent of a cluster, with a new token.
pub(crate) async fn agent_of(_: &TestPaddock, owner: &Client, cluster: &str) -> Client {
    let path = format!("{}/token", cluster_path(cluster));
    let token = owner.post(&path, json!({})).await.text("token");
    owner.with_token(&token)
}

/// Waits until no cluster of the caller is in transition.
async fn settle_clusters(client: &Client) {
    let on_its_way = ["accepted", "provisioning", "provisioned"];
    until("no cluster is in transition", async || {
        let clusters = client.get("/api/v1/clusters").await.expect(200);
        let mut all = clusters["items"].as_array().unwrap().iter();
        !all.any(|one| on_its_way.contains(&one["status"].as_str().unwrap()))
    })
    .await;
}

/// Polls until the condition holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("timed out: {what}");
}

/// Polls until the response is as expected. Returns it.
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

/// Creates a deployment. Returns its ID.
pub(crate) async fn deploy(client: &Client, body: Value) -> String {
    client.post("/api/v1/deployments", body).await.text("id")
}

/// Same as [`deploy`], once it is running.
pub(crate) async fn deploy_running(paddock: &TestPaddock, client: &Client, body: Value) -> String {
    let id = deploy(client, body).await;
    paddock.until(client, &deployment_path(&id), "status", "running").await;
    id
}

/// IDs of all items.
pub(crate) fn ids(items: &Value) -> Vec<String> {
    let id = |item: &Value| item["id"].as_str().unwrap().to_owned();
    items.as_array().unwrap().iter().map(id).collect()
}

/// Path of a deployment.
pub(crate) fn deployment_path(id: &str) -> String {
    format!("/api/v1/deployments/{id}")
}

/// Path of a cluster.
pub(crate) fn cluster_path(id: &str) -> String {
    format!("/api/v1/clusters/{id}")
}

/// Fails unless the response is an error with a detail.
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

/// Fails unless the response is a 400 that names this field with a rule.
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

/// Details of all field errors, concatenated.
pub(crate) fn details(answer: &Answer) -> String {
    answer.json["detail"].as_str().unwrap_or_default().to_owned()
        + &answer.json["errors"].to_string()
}
