//! Where logs come from.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use model::ReplicaId;
use model::log::{LogLine, LogsFrom};

/// Lines of a log, as they come.
pub type Lines = BoxStream<'static, LogLine>;

/// Knows what the replicas on this machine say.
pub trait Logs: Send + Sync {
    /// What a replica said and, to who follows, what it says; or why nobody can tell, as a sentence.
    fn logs(
        &self,
        replica: ReplicaId,
        from: LogsFrom,
        follow: bool,
    ) -> BoxFuture<'_, Result<Lines, String>>;
}

/// For a server without an agent of its own.
pub struct NoLogs;

impl Logs for NoLogs {
    fn logs(&self, _: ReplicaId, _: LogsFrom, _: bool) -> BoxFuture<'_, Result<Lines, String>> {
        let reason = "This server has no agent that could tell.";
        Box::pin(async move { Err(reason.to_owned()) })
    }
}
