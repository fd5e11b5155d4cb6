//! Draining: moves the replicas of a cluster elsewhere, as far as other clusters have capacity.

use model::cluster::{Cluster, Reason};
use model::deployment::Deployment;
use model::replica::Replica;
use model::{ReplicaId, deployment};
use store::deployment::moving;

use super::ClusterWorker;
use crate::Error;

/// What remains on a cluster that is being drained.
#[derive(Debug, Default)]
struct Left {
    /// Replicas that could move, one of each deployment: a deployment moves replica by replica.
    candidates: Vec<(Deployment, ReplicaId)>,
    /// How many are moving.
    moving: usize,
    /// How many are stopping: the capacity that they will need is not known yet.
    stopping: usize,
    pinned: usize,
    third_party: usize,
    without_capacity: usize,
}

impl ClusterWorker {
    /// Takes one step of a drain. Returns whether there is something left to wait for.
    pub(super) async fn drain(&self, cluster: &Cluster) -> Result<bool, Error> {
        let mut left = self.remaining_on(cluster).await?;
        if left.stopping == 0 && !left.candidates.is_empty() {
            self.move_replicas(cluster, &mut left).await?;
        }
        let Some(mut locked) = self.lock(cluster).await? else { return Ok(true) };
        locked.explain(left.reason()).await?;
        locked.commit().await?;
        Ok(!left.is_empty())
    }

    async fn remaining_on(&self, cluster: &Cluster) -> Result<Left, Error> {
        let deployments = moving::deployments_on(&mut self.db.read().await?, cluster.id).await?;
        let mut left = Left::default();
        for (deployment, replicas) in deployments {
            left.count(cluster, deployment, &replicas);
        }
        Ok(left)
    }

    async fn move_replicas(&self, cluster: &Cluster, left: &mut Left) -> Result<(), Error> {
        let can_move = self.placement_view.can_move(&left.candidates).await?;
        let reason = deployment::Reason::ClusterDraining { cluster: cluster.name.clone() };
        for ((_, id), can_move) in std::mem::take(&mut left.candidates).into_iter().zip(can_move) {
            if !can_move {
                left.without_capacity += 1;
                continue;
            }
            let Some(mut locked) = self.lock(cluster).await? else { return Ok(()) };
            moving::move_away(&mut locked.tx, id, cluster.id, reason.clone()).await?;
            locked.commit().await?;
            left.moving += 1;
        }
        Ok(())
    }
}

impl Left {
    fn count(&mut self, cluster: &Cluster, deployment: Deployment, replicas: &[Replica]) {
        let here = |r: &&Replica| r.place.as_ref().is_some_and(|place| place.cluster == cluster.id);
        if replicas.iter().filter(here).any(|replica| !replica.status.is_placed()) {
            self.stopping += 1;
            self.moving += 1;
        } else if deployment.pinned_to == Some(cluster.id) {
            self.pinned += 1;
        } else if cluster.hosting.is_foreign {
            self.third_party += 1;
        } else if replicas.iter().any(|r| r.status != deployment::Status::Running) {
            self.moving += 1;
        } else if let Some(first) = replicas.iter().find(here) {
            self.candidates.push((deployment, first.id));
        }
    }

    fn is_empty(&self) -> bool {
        self.moving + self.pinned + self.third_party + self.without_capacity + self.candidates.len()
            == 0
    }

    fn reason(&self) -> Reason {
        if self.is_empty() {
            return Reason::Drained;
        }
        Reason::Draining {
            moving: (self.moving + self.candidates.len()) as u64,
            without_capacity: self.without_capacity as u64,
            pinned: self.pinned as u64,
            third_party: self.third_party as u64,
        }
    }
}
