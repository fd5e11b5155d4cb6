//! Stops replicas: deletes the objects of the record in reverse order, then the record.

use std::time::Duration;

use base::locks::{lock, named_lock};
use kube::Client;
use kube::api::ListParams;
use model::agent::ReplicaId;

use super::Kubernetes;
use super::fault::Refusal;
use super::names::{self, DEPLOYMENT, OBJECTS};
use super::object::ObjectRef;
use crate::Error;

/// Poll interval until the cache is synced.
const SYNC_POLL: Duration = Duration::from_millis(20);
/// Poll interval for deletions: not all kinds are watched.
const DELETION_POLL: Duration = Duration::from_secs(1);
/// Timeout of a deletion.
const DELETION_TIMEOUT: Duration = Duration::from_mins(2);

impl Kubernetes {
    pub(super) async fn stop_replica(&self, id: ReplicaId) -> Result<(), Error> {
        lock(&self.runs).remove(&id);
        let deployment = named_lock(&self.deployments, &id.deployment.to_string());
        let _guard = deployment.lock().await;
        self.until_synced().await;
        self.remove_objects(id).await?;
        self.cache.remove_signal(&names::label(id));
        Ok(())
    }

    /// Deletes all objects of a replica. The caller holds the deployment's lock.
    pub(super) async fn remove_objects(&self, id: ReplicaId) -> Result<(), Error> {
        let record = self.record_ref(id);
        if let Some(found) = self.get(&record).await? {
            self.check_ours(id, &record).await?;
            let annotations = found.metadata.annotations.unwrap_or_default();
            let objects = annotations.get(OBJECTS).map_or("[]", String::as_str);
            let objects: Vec<ObjectRef> = serde_json::from_str(objects).unwrap_or_default();
            let deleted =
                tokio::time::timeout(DELETION_TIMEOUT, self.delete_all(id, &objects)).await;
            deleted.unwrap_or_else(|_| {
                let seconds = DELETION_TIMEOUT.as_secs();
                Err(Error::Failed(format!("deletion timed out after {seconds} s")))
            })?;
            self.delete(&record).await?;
        }
        self.remove_service(id).await
    }

    async fn delete_all(&self, id: ReplicaId, objects: &[ObjectRef]) -> Result<(), Error> {
        // The agent's role binding is deleted with its namespace.
        let objects = objects.iter().rev().filter(|object| object.kind != "RoleBinding");
        for object in objects {
            // An object of that name may have another owner by now.
            if self.check_ours(id, object).await.is_ok() {
                self.delete(object).await?;
                self.until_deleted(id, object).await?;
            }
        }
        self.until_no_pods(id).await;
        Ok(())
    }

    /// Returns when pods and nodes were listed once.
    pub(super) async fn until_synced(&self) {
        while !self.cache.read(|state| state.pods.is_synced && state.nodes.is_synced) {
            tokio::time::sleep(SYNC_POLL).await;
        }
    }

    pub(super) async fn until_deleted(
        &self,
        id: ReplicaId,
        object: &ObjectRef,
    ) -> Result<(), Refusal> {
        let mut signal = self.cache.signal(&names::label(id));
        loop {
            signal.borrow_and_update();
            if self.get(object).await?.is_none() {
                return Ok(());
            }
            let _ = tokio::time::timeout(DELETION_POLL, signal.changed()).await;
        }
    }

    /// Waits for the replica's pods: they may outlive their controller and still use their node.
    async fn until_no_pods(&self, id: ReplicaId) {
        let label = names::label(id);
        let mut signal = self.cache.signal(&label);
        loop {
            signal.borrow_and_update();
            let is_left = self.cache.read(|state| {
                state
                    .pods_of(&label)
                    .iter()
                    .any(|pod| !matches!(pod.phase(), "Succeeded" | "Failed"))
            });
            if !is_left {
                return;
            }
            let _ = tokio::time::timeout(DELETION_POLL, signal.changed()).await;
        }
    }

    /// Deletes the Service of a deployment without replicas.
    async fn remove_service(&self, id: ReplicaId) -> Result<(), Error> {
        let selector = format!("{DEPLOYMENT}={}", id.deployment);
        let records = self.record_ref(id);
        let left = self.connection.call("list replicas of a deployment", |client: Client| {
            let (api, all) = (records.api(client), ListParams::default().labels(&selector));
            async move { api.list(&all).await }
        });
        if !left.await?.items.is_empty() {
            return Ok(());
        }
        let service = self.service_ref(id);
        let Some(found) = self.get(&service).await? else { return Ok(()) };
        let labels = found.metadata.labels.unwrap_or_default();
        if labels.get(DEPLOYMENT) == Some(&id.deployment.to_string()) {
            self.delete(&service).await?;
        }
        Ok(())
    }
}
