//! What becomes of what is on a cluster whose agent is silent.

use model::DeploymentId;
use model::cluster::{Cluster, Status};
use model::deployment::Reason;
use store::deployment::losing;

use super::Terraform;
use crate::Error;

impl Terraform {
    /// Has what is on a cluster say whether it is known, one deployment after the other.
    pub(super) async fn annotate(&self, cluster: &Cluster) -> Result<(), Error> {
        let is_lost = cluster.status == Status::Unreachable;
        let mut read = self.db.read().await?;
        let ids = if is_lost {
            losing::undoubted(&mut read, cluster.id).await?
        } else {
            losing::doubted(&mut read, cluster.id).await?
        };
        drop(read);
        let since = cluster.agent.as_ref().map(|heard| heard.at);
        let caveat = is_lost.then(|| Reason::ClusterUnreachable { since, last: Box::default() });
        for id in ids {
            let Some(mut held) = self.still(cluster).await? else { return Ok(()) };
            losing::doubt(&mut held.tx, id, cluster.id, caveat.as_ref()).await?;
            held.commit().await?;
        }
        Ok(())
    }

    /// Lets what was on a cluster start elsewhere.
    pub(super) async fn give_up(&self, cluster: &Cluster) -> Result<(), Error> {
        // A foreign agent knows no fences: nobody could say that its instances are gone for sure.
        if cluster.hosting.is_foreign {
            return Ok(());
        }
        let ids: Vec<DeploymentId> =
            losing::movable(&mut self.db.read().await?, cluster.id).await?;
        let reason = Reason::Evicted { cluster: cluster.name.clone() };
        for id in ids {
            let Some(mut held) = self.still(cluster).await? else { return Ok(()) };
            losing::give_up(&mut held.tx, id, cluster.id, &reason).await?;
            held.commit().await?;
        }
        Ok(())
    }
}
