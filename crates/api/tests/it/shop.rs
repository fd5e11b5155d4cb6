//! Test fixture: an organization with templates and environments, and an executor in memory.

use std::sync::Arc;
use std::time::Duration;

use model::operation::Subject;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use testing::{Answer, Client, Engine, FakeOperation, FakeProbe, TestPaddock, TestSettings};

use crate::secrets::log;
use crate::world::start_with;

pub(crate) const SHOP: &str = "
name: shop
version: 1.0.0
description: A shop
tags: {team: shop}
parameters:
  size: {type: integer, default: 2, minimum: 0, maximum: 9}
  color: {type: string, default: red}
resources:
  - {name: base, executor: vault-secret, with: {path: base}}
  - name: settings
    executor: consul-kv
    with: {prefix: shop/, values: {base: '{{ base.path }}', color: '{{ color }}'}}
  - name: part
    executor: consul-kv
    count: '{{ size }}'
    with: {prefix: 'part/{{ index }}/', values: {}}
    depends_on: [settings]
  - {name: beside, executor: vault-secret, with: {path: beside}}
entry_points: ['https://{{ environment.name }}.shop.local/{{ color }}']
";

/// A server and the owner of an organization.
pub(crate) struct Shop {
    pub(crate) paddock: TestPaddock,
    pub(crate) ann: Client,
    pub(crate) executor: Arc<FakeOperation>,
    pub(crate) probe: Arc<FakeProbe>,
}

impl Shop {
    pub(crate) async fn start(engine: Engine) -> Self {
        Self::start_with(engine, TestSettings::default()).await
    }

    /// Starts a server without workers.
    pub(crate) async fn still(engine: Engine) -> Self {
        Self::start_with(engine, TestSettings { api_only: true, ..TestSettings::default() }).await
    }

    pub(crate) async fn start_with(engine: Engine, settings: TestSettings) -> Self {
        let (executor, probe) = (settings.executor.clone(), settings.probe.clone());
        for color in ["red", "blue"] {
            probe.state().insert(format!("https://mine.shop.local/{color}"), 200);
        }
        let (paddock, ann) = start_with(engine, settings).await;
        Self { paddock, ann, executor, probe }
    }

    /// Starts a server with the published shop template.
    pub(crate) async fn open(engine: Engine) -> Self {
        Self::start(engine).await.opened().await
    }

    /// Same as [`Shop::open`], with settings.
    pub(crate) async fn open_with(engine: Engine, settings: TestSettings) -> Self {
        Self::start_with(engine, settings).await.opened().await
    }

    /// Same as [`Shop::open`], without workers.
    pub(crate) async fn open_still(engine: Engine) -> Self {
        Self::still(engine).await.opened().await
    }

    /// Same as [`Shop::open`], where these may adopt external objects.
    pub(crate) async fn open_for(engine: Engine, adopt: api::Adopters) -> Self {
        let mut settings = TestSettings::default();
        settings.api.adopt = adopt;
        Self::start_with(engine, settings).await.opened().await
    }

    async fn opened(self) -> Self {
        self.publish(SHOP).await.expect(201);
        self
    }

    pub(crate) async fn publish(&self, text: &str) -> Answer {
        publish(&self.ann, text).await
    }

    /// Creates the environment `mine`. Returns its ID.
    pub(crate) async fn create(&self, parameters: Value) -> String {
        let body = json!({"name": "mine", "templates": ["shop@1.0.0"], "parameters": parameters});
        let made = self.ann.post("/api/v1/environments", body).await;
        assert_eq!(made.status, 202, "{:#}", made.json);
        made.text("id")
    }

    /// Creates the environment `mine` and waits until it is deployed.
    pub(crate) async fn deployed(&self, parameters: Value) -> String {
        let id = self.create(parameters).await;
        self.until(&id, "deployed").await;
        id
    }

    pub(crate) async fn until(&self, id: &str, status: &str) -> Value {
        self.paddock.until(&self.ann, &path(id), "status", status).await
    }

    pub(crate) async fn get(&self, id: &str) -> Value {
        self.ann.get(&path(id)).await.expect(200)
    }

    /// Sends a command to an environment.
    pub(crate) async fn command(&self, id: &str, what: &str, body: Value) -> Answer {
        self.ann.post(&format!("{}/{what}", path(id)), body).await
    }

    /// Names of the resources with this executor call; clears the record.
    pub(crate) fn drain_calls(&self, call: &str) -> Vec<String> {
        let mut held = self.executor.state();
        let names = held.names(call);
        held.calls.clear();
        names
    }

    /// Changes a resource's object externally.
    pub(crate) async fn change_externally(&self, id: &str, resource: &str) {
        let found = self.resource(id, resource).await;
        let of = Subject::Resource(found["id"].as_str().unwrap().parse().unwrap());
        let mut held = self.executor.state();
        held.resources.get_mut(&of).unwrap().insert("path".into(), json!("by hand"));
    }

    pub(crate) async fn resource(&self, id: &str, name: &str) -> Value {
        self.ann.get(&format!("{}/resources/{name}", path(id))).await.expect(200)
    }

    pub(crate) async fn until_resource(&self, id: &str, name: &str, status: &str) -> Value {
        let path = format!("{}/resources/{name}", path(id));
        self.paddock.until(&self.ann, &path, "status", status).await
    }

    /// All events as text.
    pub(crate) async fn log(&self) -> String {
        log(&self.paddock).await
    }
}

/// Path of an environment.
pub(crate) fn path(id: &str) -> String {
    format!("/api/v1/environments/{id}")
}

/// Publishes a template in YAML.
pub(crate) async fn publish(client: &Client, text: &str) -> Answer {
    send(client, "application/yaml", text.as_bytes().to_vec()).await
}

/// Publishes a body with this content type.
pub(crate) async fn send(client: &Client, kind: &str, body: Vec<u8>) -> Answer {
    let request = client.request("POST", "/api/v1/templates").header(CONTENT_TYPE, kind);
    client.send(request.body(body)).await
}

/// Content type and body of a response as text.
pub(crate) async fn text(client: &Client, path: &str, accept: &str) -> (String, String) {
    let request = client.request("GET", path).header("accept", accept);
    let response = request.timeout(Duration::from_mins(1)).send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    (kind, response.text().await.unwrap())
}

/// Items of a list.
pub(crate) async fn listed(client: &Client, list: &str) -> Vec<Value> {
    let page = client.get(&format!("/api/v1/{list}")).await.expect(200);
    page["items"].as_array().unwrap().clone()
}
