//! Stopping a replica: all that its record names goes, the last first, and the record after it.

use std::time::Duration;

use base::locks::{lock, one_of};
use kube::Client;
use kube::api::ListParams;
use model::agent::ReplicaId;

use super::Kubernetes;
use super::fault::Refusal;
use super::names::{self, DEPLOYMENT, OBJECTS};
use super::object::Place;
use crate::Error;

/// How long the first lists take, about.
const LISTED_SOON: Duration = Duration::from_millis(20);
/// When to look though nothing was heard: not everything that goes is watched.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long something may take to be gone before that is worth saying.
const PATIENCE: Duration = Duration::from_mins(2);

impl Kubernetes {
    pub(super) async fn stop_replica(&self, id: ReplicaId) -> Result<(), Error> {
        lock(&self.runs).remove(&id);
        let turn = one_of(&self.deployments, &id.deployment.to_string());
        let _turn = turn.lock().await;
        self.once_known().await;
        self.clear(id).await?;
        self.world.forget(&names::label(id));
        Ok(())
    }

    /// Removes all that is left of a replica. The deployment's turn is held.
    pub(super) async fn clear(&self, id: ReplicaId) -> Result<(), Error> {
        let record = self.record(id);
        if let Some(found) = self.get(&record).await? {
            self.check_ours(id, &record).await?;
            let annotations = found.metadata.annotations.unwrap_or_default();
            let objects = annotations.get(OBJECTS).map_or("[]", String::as_str);
            let places: Vec<Place> = serde_json::from_str(objects).unwrap_or_default();
            let gone = tokio::time::timeout(PATIENCE, self.remove_all(id, &places)).await;
            gone.unwrap_or_else(|_| {
                Err(Error::Failed(format!("it is not gone after {} s", PATIENCE.as_secs())))
            })?;
            self.delete(&record).await?;
        }
        self.remove_service(id).await
    }

    async fn remove_all(&self, id: ReplicaId, places: &[Place]) -> Result<(), Error> {
        // What binds our rights in a namespace goes with it.
        let places = places.iter().rev().filter(|place| place.kind != "RoleBinding");
        for place in places {
            // What has that name now may be somebody else's.
            if self.check_ours(id, place).await.is_ok() {
                self.delete(place).await?;
                self.until_gone(id, place).await?;
            }
        }
        self.until_no_pods(id).await;
        Ok(())
    }

    /// Returns when all pods and nodes were told once.
    pub(super) async fn once_known(&self) {
        while !self.world.with(|known| known.pods.is_whole && known.nodes.is_whole) {
            tokio::time::sleep(LISTED_SOON).await;
        }
    }

    pub(super) async fn until_gone(&self, id: ReplicaId, place: &Place) -> Result<(), Refusal> {
        let mut signal = self.world.signal(&names::label(id));
        loop {
            signal.borrow_and_update();
            if self.get(place).await?.is_none() {
                return Ok(());
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, signal.changed()).await;
        }
    }

    /// Pods may outlive what made them by their last seconds, in which they still use their node.
    async fn until_no_pods(&self, id: ReplicaId) {
        let label = names::label(id);
        let mut signal = self.world.signal(&label);
        loop {
            signal.borrow_and_update();
            let is_left = self.world.with(|known| {
                known
                    .pods_of(&label)
                    .iter()
                    .any(|pod| !matches!(pod.phase(), "Succeeded" | "Failed"))
            });
            if !is_left {
                return;
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, signal.changed()).await;
        }
    }

    /// Removes the Service of a deployment of which no replica is left.
    async fn remove_service(&self, id: ReplicaId) -> Result<(), Error> {
        let selector = format!("{DEPLOYMENT}={}", id.deployment);
        let records = self.record(id);
        let left = self.connection.call("list what is left of a deployment", |client: Client| {
            let (api, all) = (records.api(client), ListParams::default().labels(&selector));
            async move { api.list(&all).await }
        });
        if !left.await?.items.is_empty() {
            return Ok(());
        }
        let service = self.service(id);
        let Some(found) = self.get(&service).await? else { return Ok(()) };
        let labels = found.metadata.labels.unwrap_or_default();
        if labels.get(DEPLOYMENT) == Some(&id.deployment.to_string()) {
            self.delete(&service).await?;
        }
        Ok(())
    }
}
