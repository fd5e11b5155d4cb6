//! Draining: has what is on a cluster move elsewhere, as far as placement finds room for it there.

use model::cluster::Cluster;
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
        held.explain(left.words()).await?;
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
        let reason = format!("Moves: its cluster {} is being drained.", cluster.name);
        for ((_, id), could) in std::mem::take(&mut left.candidates).into_iter().zip(could) {
            if !could {
                left.no_room += 1;
                continue;
            }
            let Some(mut held) = self.still(cluster).await? else { return Ok(()) };
            moving::leave(&mut held.tx, id, cluster.id, &reason).await?;
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

    fn words(&self) -> String {
        if self.is_empty() {
            return "It is drained: nothing is on it. Delete it, or end the drain.".into();
        }
        let parts = [
            (self.moving + self.candidates.len(), "on the move"),
            (self.no_room, "without room elsewhere"),
            (self.pinned, "pinned to it"),
            (self.foreign, "kept by its own agent"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
        format!(
            "It is being drained and takes nothing new; deployments on it: {}.",
            parts.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_said() {
        assert!(Left::default().words().starts_with("It is drained"));
        let left = Left { moving: 2, pinned: 1, ..Left::default() };
        let words = left.words();
        assert!(words.ends_with("deployments on it: 2 on the move, 1 pinned to it."), "{words}");
    }
}
