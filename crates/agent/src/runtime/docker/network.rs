//! A network per organization: containers of two organizations do not reach each other.
//!
//! A network exists while the organization has containers on the engine, since an engine has
//! addresses for a few dozen networks only.

use std::collections::HashMap;

use bollard::errors::Error as EngineError;
use bollard::models::{NetworkCreateRequest, NetworkInspect};
use bollard::query_parameters::{InspectNetworkOptions, ListContainersOptions};
use model::OrganizationId;

use super::body::{INSTANCE, NETWORK};
use super::fault::is_missing;
use super::{Docker, Engine};
use crate::Error;

impl Docker {
    /// Name of an organization's network.
    pub(super) fn network_name(&self, organization: Option<OrganizationId>) -> String {
        let instance = &self.options.instance;
        match organization {
            Some(organization) => format!("paddock-{instance}-{organization}"),
            None => format!("paddock-{instance}"),
        }
    }

    /// Creates a network unless it exists. The caller holds the read lock on networks until its
    /// container exists.
    pub(super) async fn ensure_network(&self, name: &str) -> Result<(), Error> {
        if let Some(found) = self.find_network(name).await? {
            return self.check_network(&found, name);
        }
        let created = self.api.create_network(request(self.engine, &self.options.instance, name));
        match created.await {
            // 409: another start has just created it.
            Ok(_) | Err(EngineError::DockerResponseServerError { status_code: 409, .. }) => Ok(()),
            Err(error) => Err(self.failed("failed to create a network", &error)),
        }
    }

    /// Removes a network of ours that has no containers, not even stopped ones.
    pub(super) async fn remove_unused_network(&self, name: &str) {
        let _lock = self.networks.write().await;
        let Ok(Some(found)) = self.find_network(name).await else { return };
        if self.check_network(&found, name).is_err() {
            return;
        }
        let label = HashMap::from([("label".to_owned(), vec![format!("{NETWORK}={name}")])]);
        let options =
            ListContainersOptions { all: true, filters: Some(label), ..Default::default() };
        let users = self.api.list_containers(Some(options)).await;
        if !users.is_ok_and(|users| users.is_empty()) {
            return;
        }
        if let Err(error) = self.api.remove_network(name).await {
            tracing::warn!(%error, network = name, "removing a network failed");
        }
    }

    async fn find_network(&self, name: &str) -> Result<Option<NetworkInspect>, Error> {
        match self.api.inspect_network(name, None::<InspectNetworkOptions>).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(self.failed("failed to inspect a network", &error)),
        }
    }

    /// Rejects a network of another owner: its containers may be anybody's.
    fn check_network(&self, found: &NetworkInspect, name: &str) -> Result<(), Error> {
        let instance = found.labels.as_ref().and_then(|labels| labels.get(INSTANCE));
        if instance == Some(&self.options.instance) {
            return Ok(());
        }
        Err(Error::Conflict(format!(
            "Network {name} exists but is not managed by paddock: remove it."
        )))
    }
}

fn request(engine: Engine, instance: &str, name: &str) -> NetworkCreateRequest {
    // Docker separates its networks from each other; Podman does so on request.
    let options = match engine {
        Engine::Docker => HashMap::new(),
        Engine::Podman => HashMap::from([("isolate".to_owned(), "true".to_owned())]),
    };
    NetworkCreateRequest {
        name: name.to_owned(),
        driver: Some("bridge".to_owned()),
        enable_ipv6: Some(false),
        options: Some(options),
        labels: Some(HashMap::from([(INSTANCE.to_owned(), instance.to_owned())])),
        ..NetworkCreateRequest::default()
    }
}
