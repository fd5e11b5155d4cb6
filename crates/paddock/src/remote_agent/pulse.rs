//! The agent's signs of life, with what its machines have.

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

/// How often, until the server says how often.
const EVERY: Duration = Duration::from_secs(5);
/// The server's word is taken within reason.
const SHORTEST: Duration = Duration::from_millis(100);
/// How long a sign may take to arrive.
const WITHIN: Duration = Duration::from_secs(10);

/// What gives the signs.
pub(super) struct Pulse {
    connection: Arc<Connection>,
    runtime: Arc<dyn Runtime>,
    /// What its machines have; without it, the runtime knows.
    capacity: Option<Resources>,
}

impl Pulse {
    pub(super) fn new(
        connection: Arc<Connection>,
        runtime: Arc<dyn Runtime>,
        capacity: Option<Resources>,
    ) -> Self {
        Self { connection, runtime, capacity }
    }

    fn heartbeat(&self) -> Heartbeat {
        // None if not known yet, or none can be used now: what was said before holds.
        let nodes = self.runtime.nodes().filter(|nodes| !nodes.is_empty());
        let nodes = nodes.filter(|_| self.capacity.is_none());
        Heartbeat {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            runtime: self.runtime.name().to_owned(),
            capacity: self.capacity.clone(),
            nodes: nodes.map(|nodes| nodes.into_iter().map(node).collect()),
        }
    }

    /// Goes on until the server refuses us.
    pub(super) async fn beat(&self) -> anyhow::Result<()> {
        let (mut every, mut was_heard, mut kept) = (EVERY, false, None);
        loop {
            match self.once().await {
                Ok(heard) => {
                    if !was_heard {
                        let server = self.connection.address();
                        tracing::info!(server, cluster = %heard.cluster, "the server hears us");
                    }
                    if let Some(why) =
                        heard.capacity_kept.as_ref().filter(|_| kept != heard.capacity_kept)
                    {
                        tracing::warn!(why, "the server keeps the capacity that it knows");
                    }
                    every = Duration::from_millis(heard.next_ms).clamp(SHORTEST, EVERY);
                    (was_heard, kept) = (true, heard.capacity_kept);
                }
                Err(Failure::Refused(why)) => {
                    let server = self.connection.address();
                    let next = "\"paddock cluster token\" prints another token";
                    bail!("{server} refuses this agent: {why} ({next})")
                }
                Err(Failure::Passing(error)) => {
                    was_heard = false;
                    let server = self.connection.address();
                    tracing::warn!(server, error, "the server does not hear us, trying again");
                }
            }
            tokio::time::sleep(every).await;
        }
    }

    async fn once(&self) -> Result<wire::agent::Pulse, Failure> {
        let body = json!(self.heartbeat());
        let sent =
            self.connection.call(Method::POST, "heartbeat", &[], Some(&body), WITHIN).await?;
        let read = sent.json().await;
        read.map_err(|error| Failure::Passing(format!("the answer is not understood: {error}")))
    }
}

fn node(NewNode { name, capacity, labels }: NewNode) -> wire::cluster::request::NewNode {
    wire::cluster::request::NewNode { name, capacity, labels }
}
