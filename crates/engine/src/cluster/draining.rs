//! Draining: has what is on a cluster move elsewhere, as far as placement finds room for it there.

use model::cluster::{Cluster, Reason};
use model::deployment::Deployment;
use model::replica::Replica;
use model::{ReplicaId, deployment};
use store::deployment::moving;

use super::Terraform;
use crate::Error;

/// What is on a cluster that is being drained.
#[derive(Debug, Default)]
struct Left {
    /// Who could move, one replica of each deployment: a deployment moves step by step.
    candidates: Vec<(Deployment, ReplicaId)>,
    /// How many are on their way.
    moving: usize,
    /// How many stop right now: nobody knows yet which room they will need.
    stopping: usize,
    pinned: usize,
    foreign: usize,
    no_room: usize,
}

impl Terraform {
    /// One look at a cluster that is being drained; whether there is something to wait for.
    pub(super) async fn drain(&self, cluster: &Cluster) -> Result<bool, Error> {
        let mut left = self.left_on(cluster).await?;
        if left.stopping == 0 && !left.candidates.is_empty() {
            self.have_move(cluster, &mut left).await?;
        }
        let Some(mut held) = self.still(cluster).await? else { return Ok(true) };
        held.explain(left.reason()).await?;
        held.commit().await?;
        Ok(!left.is_empty())
    }

    async fn left_on(&self, cluster: &Cluster) -> Result<Left, Error> {
        let standing = moving::on(&mut self.db.read().await?, cluster.id).await?;
        let mut left = Left::default();
        for (deployment, replicas) in standing {
            left.count(cluster, deployment, &replicas);
        }
        Ok(left)
    }

    async fn have_move(&self, cluster: &Cluster, left: &mut Left) -> Result<(), Error> {
        let could = self.outlook.could_move(&left.candidates).await?;
        let reason = deployment::Reason::ClusterDraining { cluster: cluster.name.clone() };
        for ((_, id), could) in std::mem::take(&mut left.candidates).into_iter().zip(could) {
            if !could {
                left.no_room += 1;
                continue;
            }
            let Some(mut held) = self.still(cluster).await? else { return Ok(()) };
            moving::leave(&mut held.tx, id, cluster.id, reason.clone()).await?;
            held.commit().await?;
            left.moving += 1;
        }
        Ok(())
    }
}

impl Left {
    fn count(&mut self, cluster: &Cluster, deployment: Deployment, replicas: &[Replica]) {
        let here = |r: &&Replica| r.place.as_ref().is_some_and(|place| place.cluster == cluster.id);
        if replicas.iter().filter(here).any(|replica| !replica.status.is_wanted()) {
            self.stopping += 1;
            self.moving += 1;
        } else if deployment.pinned_to == Some(cluster.id) {
            self.pinned += 1;
        } else if cluster.hosting.is_foreign {
            self.foreign += 1;
        } else if replicas.iter().any(|r| r.status != deployment::Status::Running) {
            self.moving += 1;
        } else if let Some(first) = replicas.iter().find(here) {
            self.candidates.push((deployment, first.id));
        }
    }

    fn is_empty(&self) -> bool {
        self.moving + self.pinned + self.foreign + self.no_room + self.candidates.len() == 0
    }

    fn reason(&self) -> Reason {
        if self.is_empty() {
            return Reason::Drained;
        }
        Reason::Draining {
            moving: (self.moving + self.candidates.len()) as u64,
            without_capacity: self.no_room as u64,
            pinned: self.pinned as u64,
            third_party: self.foreign as u64,
        }
    }
}
