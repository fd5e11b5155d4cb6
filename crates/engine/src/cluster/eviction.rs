//! Unreachable clusters: marks their deployments, and evicts replicas.

use model::DeploymentId;
use model::cluster::{Cluster, Status};
use model::deployment::Reason;
use store::deployment::eviction;

use super::ClusterWorker;
use crate::Error;

impl ClusterWorker {
    /// Records in the deployments of a cluster whether it is unreachable, one transaction each.
    pub(super) async fn annotate(&self, cluster: &Cluster) -> Result<(), Error> {
        let is_unreachable = cluster.status == Status::Unreachable;
        let mut read = self.db.read().await?;
        let ids = if is_unreachable {
            eviction::without_caveat(&mut read, cluster.id).await?
        } else {
            eviction::with_caveat(&mut read, cluster.id).await?
        };
        drop(read);
        let since = cluster.agent.as_ref().map(|agent| agent.at);
        let caveat =
            is_unreachable.then(|| Reason::ClusterUnreachable { since, last: Box::default() });
        for id in ids {
            let Some(mut locked) = self.lock(cluster).await? else { return Ok(()) };
            eviction::set_caveat(&mut locked.tx, id, cluster.id, caveat.as_ref()).await?;
            locked.commit().await?;
        }
        Ok(())
    }

    /// Reschedules the replicas of an unreachable cluster elsewhere.
    pub(super) async fn evict(&self, cluster: &Cluster) -> Result<(), Error> {
        // Third-party agents know no fencing tokens: nothing proves that their instances have
        // stopped.
        if cluster.hosting.is_foreign {
            return Ok(());
        }
        let ids: Vec<DeploymentId> =
            eviction::movable(&mut self.db.read().await?, cluster.id).await?;
        let reason = Reason::Evicted { cluster: cluster.name.clone() };
        for id in ids {
            let Some(mut locked) = self.lock(cluster).await? else { return Ok(()) };
            eviction::evict(&mut locked.tx, id, cluster.id, &reason).await?;
            locked.commit().await?;
        }
        Ok(())
    }
}
