//! Log sources.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use model::ReplicaId;
use model::log::{LogLine, LogsFrom};

/// Stream of log lines.
pub type Lines = BoxStream<'static, LogLine>;

/// Source of the logs of local replicas.
pub trait Logs: Send + Sync {
    /// Returns a replica's log, followed by new lines if `follow` is set; or the reason why it is
    /// not available.
    fn logs(
        &self,
        replica: ReplicaId,
        from: LogsFrom,
        follow: bool,
    ) -> BoxFuture<'_, Result<Lines, String>>;
}

/// Log source of a server without a local agent.
pub struct NoLogs;

impl Logs for NoLogs {
    fn logs(&self, _: ReplicaId, _: LogsFrom, _: bool) -> BoxFuture<'_, Result<Lines, String>> {
        let reason = "This server has no local agent to read logs from.";
        Box::pin(async move { Err(reason.to_owned()) })
    }
}
