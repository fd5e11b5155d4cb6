//! A server with an organization that owns instances, and polling helpers.

use std::time::Duration;

use serde_json::{Value, json};
use testing::Client;

use super::process::{PASSWORD, Server, Setup};

/// APIs of the built-in kinds.
pub(crate) const KAFKAS: &str = "/api/kafkas_mgmt/v1/kafkas";
pub(crate) const DINOSAURS: &str = "/api/dinosaurs_mgmt/v1/dinosaurs";

/// Long enough for circuit breakers, which open for 30 s, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A server and the owner of an organization.
pub(crate) struct Fleet {
    pub(crate) server: Server,
    pub(crate) ann: Client,
}

impl Fleet {
    pub(crate) async fn start(setup: Setup) -> Self {
        let server = setup.start();
        let ann = server.http_owner("ann").await;
        Self { server, ann }
    }

    /// Restarts the server on the same directory.
    pub(crate) async fn restart(&mut self) {
        self.server.restart();
        self.ann = self.server.http_as("ann", PASSWORD).await;
    }

    /// Creates an instance through the fleet manager API and returns its id.
    pub(crate) async fn create(&self, kind: &str, name: &str) -> String {
        let body = json!({"name": name, "multi_az": true});
        let created = self.ann.post(&format!("{kind}?async=true"), body).await;
        let outcome = (created.status, &created.json["status"]);
        assert_eq!(outcome, (202, &json!("accepted")), "{created:#?}");
        created.text("id")
    }

    /// Deletes an instance through the fleet manager API.
    pub(crate) async fn delete(&self, kind: &str, id: &str) {
        self.ann.delete(&format!("{kind}/{id}?async=true")).await.expect(202);
    }

    /// The instance from the platform API, with reason and endpoints.
    pub(crate) async fn get(&self, id: &str) -> Value {
        self.ann.get(&format!("/api/v1/instances/{id}")).await.expect(200)
    }

    /// Waits until the instance has a status and its reason contains a text.
    pub(crate) async fn until(&self, id: &str, status: &str, reason: &str) -> Value {
        self.poll(&format!("{status}: {reason}"), async || {
            let now = self.get(id).await;
            let current = now["status_reason"].as_str().unwrap();
            if now["status"] == status && current.contains(reason) { Ok(now) } else { Err(now) }
        })
        .await
    }

    pub(crate) async fn until_ready(&self, id: &str) -> Value {
        self.until(id, "ready", "").await
    }

    pub(crate) async fn until_deleted(&self, id: &str) {
        self.poll("deleted", async || {
            let now = self.ann.get(&format!("/api/v1/instances/{id}")).await;
            if now.status == 404 { Ok(()) } else { Err(now.json) }
        })
        .await;
    }

    /// Waits until an external system has a health status.
    pub(crate) async fn until_health(&self, name: &str, status: &str) {
        self.poll(&format!("{name} is {status}"), async || {
            let path = "/api/v1/self/liveliness?type=detailed";
            let health = self.ann.get(path).await.expect(200);
            let checks = health["checks"].as_array().unwrap();
            let found = checks.iter().find(|check| check["name"] == name);
            let is_reached = found.is_some_and(|check| check["status"] == status);
            if is_reached { Ok(()) } else { Err(health) }
        })
        .await;
    }

    /// Polls until `check` succeeds; panics with the last error after a timeout.
    pub(crate) async fn poll<T>(
        &self,
        what: &str,
        mut check: impl AsyncFnMut() -> Result<T, Value>,
    ) -> T {
        let began = base::monotonic();
        loop {
            match check().await {
                Ok(found) => return found,
                Err(_) if began.elapsed() < TIMEOUT => tokio::time::sleep(POLL_INTERVAL).await,
                Err(last) => panic!("never {what}: {last:#}\n{}", self.server.stderr()),
            }
        }
    }

    /// Asserts that no instance exists and no capacity is used.
    pub(crate) async fn assert_nothing_held(&self) {
        let admin = self.server.http_as("admin", PASSWORD).await;
        let left = admin.get("/api/v1/instances").await.expect(200);
        assert_eq!(left["items"], json!([]));
        let clusters = admin.get("/api/v1/clusters").await.expect(200);
        for cluster in clusters["items"].as_array().unwrap() {
            assert_eq!(cluster["capacity"]["cpu"]["used"], 0, "{cluster:#}");
        }
    }
}
