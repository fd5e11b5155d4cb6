//! Sends the agent's heartbeats, with the capacity of its nodes.

use std::sync::Arc;
use std::time::Duration;

use agent::Runtime;
use anyhow::bail;
use model::Resources;
use model::cluster::NewNode;
use reqwest::Method;
use serde_json::json;
use wire::agent::Heartbeat;

use super::connection::{Connection, Failure};

/// Default and maximum interval; the server may request a shorter one.
const INTERVAL: Duration = Duration::from_secs(5);
const MIN_INTERVAL: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends heartbeats to the server.
pub(super) struct HeartbeatSender {
    connection: Arc<Connection>,
    runtime: Arc<dyn Runtime>,
    /// Configured capacity. If unset, the runtime reports its nodes.
    capacity: Option<Resources>,
}

impl HeartbeatSender {
    pub(super) fn new(
        connection: Arc<Connection>,
        runtime: Arc<dyn Runtime>,
        capacity: Option<Resources>,
    ) -> Self {
        Self { connection, runtime, capacity }
    }

    fn heartbeat(&self) -> Heartbeat {
        // `None` while nodes are unknown or unusable: the server keeps the last reported ones.
        let nodes = self.runtime.nodes().filter(|nodes| !nodes.is_empty());
        let nodes = nodes.filter(|_| self.capacity.is_none());
        Heartbeat {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            runtime: self.runtime.name().to_owned(),
            capacity: self.capacity.clone(),
            nodes: nodes.map(|nodes| nodes.into_iter().map(node).collect()),
        }
    }

    /// Sends heartbeats until the server rejects the token.
    pub(super) async fn run(&self) -> anyhow::Result<()> {
        let (mut interval, mut is_connected, mut capacity_kept) = (INTERVAL, false, None);
        let server = self.connection.address();
        loop {
            match self.send().await {
                Ok(response) => {
                    if !is_connected {
                        tracing::info!(server, cluster = %response.cluster, "agent connected");
                    }
                    let kept = response.capacity_kept;
                    if let Some(reason) = kept.as_ref().filter(|_| kept != capacity_kept) {
                        tracing::warn!(reason, "server rejected the reported capacity");
                    }
                    interval =
                        Duration::from_millis(response.next_ms).clamp(MIN_INTERVAL, INTERVAL);
                    (is_connected, capacity_kept) = (true, kept);
                }
                Err(Failure::Rejected(error)) => {
                    let next = "run \"paddock cluster token\" to create a new token";
                    bail!("{server} rejected this agent's token: {error} ({next})")
                }
                Err(Failure::Transient(error)) => {
                    is_connected = false;
                    tracing::warn!(server, error, "heartbeat failed, retrying");
                }
            }
            tokio::time::sleep(interval).await;
        }
    }

    async fn send(&self) -> Result<wire::agent::HeartbeatResponse, Failure> {
        let body = json!(self.heartbeat());
        let sent =
            self.connection.call(Method::POST, "heartbeat", &[], Some(&body), TIMEOUT).await?;
        let response = sent.json().await;
        response.map_err(|error| Failure::Transient(format!("invalid response: {error}")))
    }
}

fn node(NewNode { name, capacity, labels }: NewNode) -> wire::cluster::request::NewNode {
    wire::cluster::request::NewNode { name, capacity, labels }
}
