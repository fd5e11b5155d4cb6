//! Somebody with instances on a running server, who looks at them until they are as they should be.

use std::time::Duration;

use serde_json::{Value, json};
use testing::Client;

use super::process::{PASSWORD, Server, Setup};

/// The kinds that ship.
pub(crate) const KAFKAS: &str = "/api/kafkas_mgmt/v1/kafkas";
pub(crate) const DINOSAURS: &str = "/api/dinosaurs_mgmt/v1/dinosaurs";

/// Breakers open for half a minute, and the machine may be busy.
const PATIENCE: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A server, and the owner of an organization on it.
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

    /// Starts the server again where it was.
    pub(crate) async fn again(&mut self) {
        self.server.again();
        self.ann = self.server.http_as("ann", PASSWORD).await;
    }

    /// Asks for an instance as the fleet managers' users do; its id.
    pub(crate) async fn make(&self, kind: &str, name: &str) -> String {
        let body = json!({"name": name, "multi_az": true});
        let made = self.ann.post(&format!("{kind}?async=true"), body).await;
        assert_eq!((made.status, &made.json["status"]), (202, &json!("accepted")), "{made:#?}");
        made.text("id")
    }

    /// Asks for its end.
    pub(crate) async fn delete(&self, kind: &str, id: &str) {
        self.ann.delete(&format!("{kind}/{id}?async=true")).await.expect(202);
    }

    /// The instance as the platform's API shows it: with its reason and its endpoints.
    pub(crate) async fn get(&self, id: &str) -> Value {
        self.ann.get(&format!("/api/v1/instances/{id}")).await.expect(200)
    }

    /// Waits until the instance has this status and its reason contains that.
    pub(crate) async fn until(&self, id: &str, status: &str, reason: &str) -> Value {
        self.look(&format!("{status}: {reason}"), async || {
            let now = self.get(id).await;
            let said = now["status_reason"].as_str().unwrap();
            if now["status"] == status && said.contains(reason) { Ok(now) } else { Err(now) }
        })
        .await
    }

    pub(crate) async fn until_ready(&self, id: &str) -> Value {
        self.until(id, "ready", "").await
    }

    pub(crate) async fn until_gone(&self, id: &str) {
        self.look("gone", async || {
            let now = self.ann.get(&format!("/api/v1/instances/{id}")).await;
            if now.status == 404 { Ok(()) } else { Err(now.json) }
        })
        .await;
    }

    /// Waits until the foreign system of this name is as it should be.
    pub(crate) async fn until_health(&self, name: &str, status: &str) {
        self.look(&format!("{name} is {status}"), async || {
            let path = "/api/v1/self/liveliness?type=detailed";
            let told = self.ann.get(path).await.expect(200);
            let checks = told["checks"].as_array().unwrap();
            let found = checks.iter().find(|check| check["name"] == name);
            let is_so = found.is_some_and(|check| check["status"] == status);
            if is_so { Ok(()) } else { Err(told) }
        })
        .await;
    }

    /// Looks until it is so; else fails with what was seen last.
    pub(crate) async fn look<T>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut() -> Result<T, Value>,
    ) -> T {
        let began = base::monotonic();
        loop {
            match look().await {
                Ok(found) => return found,
                Err(_) if began.elapsed() < PATIENCE => tokio::time::sleep(LOOK_EVERY).await,
                Err(seen) => panic!("never {what}: {seen:#}\n{}", self.server.stderr()),
            }
        }
    }

    /// Nobody has anything, and nothing is held of any cluster.
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
