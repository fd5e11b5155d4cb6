//! Messages between remote agents and the server.

use model::agent::{self, Desired, Observed, ReplicaId};
use model::deployment::Spec;
use model::log::{LogLine, LogsFrom};
use model::{ClusterId, DeploymentId, OrganizationId, Resources};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::amount::Amount;
use crate::cluster::request::NewNode;

/// A replica of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReplicaName)]
pub struct ReplicaRef {
    /// ID of the deployment.
    #[schema(value_type = String)]
    pub deployment: DeploymentId,
    /// Replica number, starting at 0.
    pub number: u32,
}

impl From<ReplicaId> for ReplicaRef {
    fn from(id: ReplicaId) -> Self {
        Self { deployment: id.deployment, number: id.number }
    }
}

impl From<ReplicaRef> for ReplicaId {
    fn from(name: ReplicaRef) -> Self {
        Self { deployment: name.deployment, number: name.number }
    }
}

/// Desired state of one replica.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Wish)]
pub struct DesiredReplica {
    /// Replica.
    pub replica: ReplicaRef,
    /// Cluster to run on.
    #[schema(value_type = String)]
    pub cluster: ClusterId,
    /// Node to run on.
    pub node: String,
    /// Incremented by every change of the desired state; reports return it.
    pub generation: i64,
    /// Organization whose loaded images the replica can use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub organization: Option<OrganizationId>,
    /// Spec to run, including environment variables; null to remove the replica.
    #[schema(value_type = Option<Object>)]
    pub run: Option<Spec>,
}

impl From<Desired> for DesiredReplica {
    fn from(Desired { replica, cluster, node, generation, organization, run }: Desired) -> Self {
        Self { replica: replica.into(), cluster, node, generation, organization, run }
    }
}

impl From<DesiredReplica> for Desired {
    fn from(
        DesiredReplica { replica, cluster, node, generation, organization, run }: DesiredReplica,
    ) -> Self {
        Self { replica: replica.into(), cluster, node, generation, organization, run }
    }
}

/// Desired state for an agent. The agent leaves replicas that are not listed unchanged.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Wishes)]
pub struct DesiredState {
    /// Replicas whose desired state changed; empty if nothing changed.
    pub items: Vec<DesiredReplica>,
    /// Version of the returned state: pass it as `seen` to wait for the next change.
    pub cursor: String,
}

/// Observed state of one replica.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Replica.
    pub replica: ReplicaRef,
    /// Cluster of the replica: the agent's own.
    #[schema(value_type = String)]
    pub cluster: ClusterId,
    /// Generation of the desired state that was observed.
    pub generation: i64,
    /// Observed state: `{"state": …}` with `starting`, `running` (and `endpoints`), `restarting`
    /// and `failed` (and a `reason`, with its code and fields in `detail`), `completed` or `gone`.
    #[schema(value_type = Object)]
    pub observed: Observed,
    /// Last lines of the replica's log once it has ended.
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

/// Reports of an agent.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reports {
    /// Reports, oldest first; at most 1000.
    pub reports: Vec<Report>,
}

/// Heartbeat of an agent.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    /// Agent version.
    pub version: String,
    /// Container runtime.
    pub runtime: String,
    /// Capacity of a single-node cluster, by resource type.
    #[schema(value_type = Option<BTreeMap<String, Amount>>)]
    pub capacity: Option<Resources>,
    /// Nodes of the cluster; replaces `capacity`.
    pub nodes: Option<Vec<NewNode>>,
}

/// Response to a heartbeat.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Pulse)]
pub struct HeartbeatResponse {
    /// Cluster of the agent.
    #[schema(value_type = String)]
    pub cluster: ClusterId,
    /// Interval until the next heartbeat, in milliseconds.
    pub next_ms: u64,
    /// Reason why the reported capacity was not applied, if it was not.
    pub capacity_kept: Option<String>,
}

/// Request to read a replica's log.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = LogAsk)]
pub struct LogRequest {
    /// Request ID; responses return it.
    pub id: u32,
    /// Replica whose log to read.
    pub replica: ReplicaRef,
    /// Start position: `"start"`, `{"last": 10}` or `{"after": "…"}`, the `next` of a line.
    #[schema(value_type = serde_json::Value)]
    pub from: LogsFrom,
    /// Whether to keep streaming new lines.
    pub follow: bool,
}

/// Pending log requests.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = LogAsks)]
pub struct LogRequests {
    /// Log requests; each is delivered once.
    pub items: Vec<LogRequest>,
}

/// A chunk of log lines that answers a log request.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LogPart)]
pub struct LogChunk {
    /// Request ID.
    pub id: u32,
    /// Next lines; empty to check whether a client is still reading.
    #[schema(value_type = Vec<Object>)]
    pub lines: Vec<LogLine>,
    /// Whether this is the last chunk.
    #[serde(default)]
    pub end: bool,
}

/// Acknowledgement of a log chunk.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = LogPartTaken)]
pub struct LogChunkAck {
    /// Whether a client is still reading.
    pub go_on: bool,
}
