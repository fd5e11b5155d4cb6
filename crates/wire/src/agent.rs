//! What agents over the network and the server exchange.

use model::agent::{self, Desired, Observed, ReplicaId};
use model::deployment::Spec;
use model::log::{LogLine, LogsFrom};
use model::{ClusterId, DeploymentId, Resources};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::amount::Amount;
use crate::cluster::request::NewNode;

/// One replica of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplicaName {
    /// The deployment's id.
    #[schema(value_type = String)]
    pub deployment: DeploymentId,
    /// Which of its replicas, from 0.
    pub number: u32,
}

impl From<ReplicaId> for ReplicaName {
    fn from(id: ReplicaId) -> Self {
        Self { deployment: id.deployment, number: id.number }
    }
}

impl From<ReplicaName> for ReplicaId {
    fn from(name: ReplicaName) -> Self {
        Self { deployment: name.deployment, number: name.number }
    }
}

/// What shall be true of one replica.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Wish {
    /// Which replica.
    pub replica: ReplicaName,
    /// On which cluster.
    #[schema(value_type = String)]
    pub cluster: ClusterId,
    /// On which of its nodes.
    pub node: String,
    /// Counts the changes of this wish; reports carry it back.
    pub generation: i64,
    /// What shall run, with its environment; nothing: it shall be gone.
    #[schema(value_type = Option<Object>)]
    pub run: Option<Spec>,
}

impl From<Desired> for Wish {
    fn from(Desired { replica, cluster, node, generation, run }: Desired) -> Self {
        Self { replica: replica.into(), cluster, node, generation, run }
    }
}

impl From<Wish> for Desired {
    fn from(Wish { replica, cluster, node, generation, run }: Wish) -> Self {
        Self { replica: replica.into(), cluster, node, generation, run }
    }
}

/// What an agent shall do. What is not named is left alone.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Wishes {
    /// The wishes; none if there is no news.
    pub items: Vec<Wish>,
    /// Names this state of what was not answered: give it as `seen` to wait for another.
    pub cursor: String,
}

/// What is true of one replica.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Which replica.
    pub replica: ReplicaName,
    /// On which cluster: the agent's own.
    #[schema(value_type = String)]
    pub cluster: ClusterId,
    /// The generation of the wish that this answers.
    pub generation: i64,
    /// How it is doing: `{"state": …}` with `starting`, `running` (and `endpoints`), `restarting`
    /// and `failed` (and a `reason`, with its code and fields in `detail`), `completed` or `gone`.
    #[schema(value_type = Object)]
    pub observed: Observed,
    /// The last lines of its log, when it has ended.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub tail: Vec<LogLine>,
}

impl From<agent::Report> for Report {
    fn from(report: agent::Report) -> Self {
        let agent::Report { replica, cluster, generation, observed, tail } = report;
        Self { replica: replica.into(), cluster, generation, observed, tail }
    }
}

/// What an agent has to say.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reports {
    /// The reports, oldest first; at most 1000.
    pub reports: Vec<Report>,
}

/// A sign of life.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    /// The agent's version.
    pub version: String,
    /// What it runs containers with.
    pub runtime: String,
    /// How much its one node has of each resource type.
    #[schema(value_type = Option<BTreeMap<String, Amount>>)]
    pub capacity: Option<Resources>,
    /// What its cluster is made of, instead of `capacity`.
    pub nodes: Option<Vec<NewNode>>,
}

/// What an agent should know.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Pulse {
    /// Its cluster.
    #[schema(value_type = String)]
    pub cluster: ClusterId,
    /// How soon the next sign of life is expected, in milliseconds.
    pub next_ms: u64,
    /// Why the capacity that it reported was not taken over, if it was not.
    pub capacity_kept: Option<String>,
}

/// A question about a log.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LogAsk {
    /// Names the question; answers carry it back.
    pub id: u32,
    /// Whose log.
    pub replica: ReplicaName,
    /// Where to begin: `"start"`, `{"last": 10}` or `{"after": "…"}`, the `next` of a line.
    #[schema(value_type = serde_json::Value)]
    pub from: LogsFrom,
    /// Whether to go on as more is said.
    pub follow: bool,
}

/// Questions about logs.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LogAsks {
    /// The questions; each is asked once.
    pub items: Vec<LogAsk>,
}

/// A part of the answer to a question.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogPart {
    /// The question's id.
    pub id: u32,
    /// The next lines; none to see whether somebody still listens.
    #[schema(value_type = Vec<Object>)]
    pub lines: Vec<LogLine>,
    /// Is this all?
    #[serde(default)]
    pub end: bool,
}

/// Whether to go on.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LogPartTaken {
    /// Does somebody still listen?
    pub go_on: bool,
}
