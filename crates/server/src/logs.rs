//! Logs of the replicas on this machine.

use std::sync::Arc;

use agent::Runtime;
use api::{Lines, Logs};
use futures_util::future::BoxFuture;
use model::ReplicaId;
use model::log::LogsFrom;

/// Reads logs from the container runtime.
pub(crate) struct LocalLogs(pub(crate) Arc<dyn Runtime>);

impl Logs for LocalLogs {
    fn logs(
        &self,
        replica: ReplicaId,
        from: LogsFrom,
        follow: bool,
    ) -> BoxFuture<'_, Result<Lines, String>> {
        Box::pin(async move { Ok(self.0.logs(replica, from, follow)) })
    }
}
