//! What the replicas on this machine say.

use std::sync::Arc;

use agent::{AnyRuntime, Runtime as _};
use api::{Lines, Logs};
use futures_util::future::BoxFuture;
use model::cluster::Provider;
use model::log::LogsFrom;
use model::{ClusterId, ReplicaId};
use store::{Db, Scope};

/// Asks the runtime of this machine.
pub(super) struct LocalLogs {
    pub(super) db: Db,
    pub(super) runtime: Arc<AnyRuntime>,
}

impl LocalLogs {
    async fn find(
        &self,
        on: ClusterId,
        replica: ReplicaId,
        from: LogsFrom,
        follow: bool,
    ) -> Result<Lines, String> {
        let read = async {
            let mut read = self.db.read().await?;
            store::cluster::get(&mut read, Scope::All, on).await
        };
        match read.await {
            Ok(cluster) if cluster.provider == Provider::Local => {
                Ok(self.runtime.logs(replica, from, follow))
            }
            Ok(cluster) => Err(format!("{} is not served by this machine.", cluster.name)),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Logs for LocalLogs {
    fn logs(
        &self,
        on: ClusterId,
        replica: ReplicaId,
        from: LogsFrom,
        follow: bool,
    ) -> BoxFuture<'_, Result<Lines, String>> {
        Box::pin(self.find(on, replica, from, follow))
    }
}
