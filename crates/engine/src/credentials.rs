//! The organizations' own credentials: stored encrypted, decrypted for executors and agents.

use std::collections::{BTreeMap, HashMap};

use model::agent::Desired;
use model::credential::{PullCredentials, System, purpose, registry_of};
use model::template::Executor;
use model::{OrganizationId, Secret};
use port::{Encryption, Fault};
use store::{Db, Read, credential};

/// The system whose credentials an executor uses.
fn system_of(executor: Executor) -> Option<System> {
    match executor {
        Executor::ConsulKv => Some(System::Consul),
        Executor::VaultSecret => Some(System::Vault),
        Executor::Terraform => Some(System::Terraform),
        Executor::Service | Executor::Deployment | Executor::Command => None,
    }
}

/// The organization's own credentials for an executor, by name; none if it has registered none.
pub(crate) async fn for_executor(
    read: &mut Read,
    seal: &dyn Encryption,
    organization: OrganizationId,
    executor: Executor,
) -> store::Result<Result<BTreeMap<String, Secret>, Fault>> {
    let Some(system) = system_of(executor) else { return Ok(Ok(BTreeMap::new())) };
    let mut opened = BTreeMap::new();
    for (name, _, sealed) in credential::sealed(read, organization, system).await? {
        match seal.decrypt(&purpose(organization, system, &name), &sealed).await {
            Ok(secret) => opened.insert(name, secret),
            Err(fault) => return Ok(Err(fault)),
        };
    }
    Ok(Ok(opened))
}

/// Adds to each replica's desired state its organization's credentials of the image's registry, and
/// of no other. Without them the image is pulled as without credentials, and the start fails with
/// the registry's answer.
pub async fn add_pull_credentials(
    db: &Db,
    seal: &dyn Encryption,
    all: &mut [Desired],
) -> store::Result<()> {
    let mut known: HashMap<OrganizationId, Vec<(String, Option<String>, String)>> = HashMap::new();
    for desired in all {
        let (Some(organization), Some(spec)) = (desired.organization, &mut desired.run) else {
            continue;
        };
        let Some(image) = &spec.image else { continue };
        if let std::collections::hash_map::Entry::Vacant(entry) = known.entry(organization) {
            let mut read = db.read().await?;
            entry.insert(credential::sealed(&mut read, organization, System::Registry).await?);
        }
        let registry = registry_of(image);
        let found = known[&organization].iter().find(|(name, ..)| *name == registry);
        let Some((name, Some(username), sealed)) = found else { continue };
        match seal.decrypt(&purpose(organization, System::Registry, name), sealed).await {
            Ok(password) => {
                let (username, password) = (username.clone(), password.reveal().to_owned());
                spec.pull = Some(PullCredentials { registry, username, password });
            }
            Err(fault) => {
                tracing::warn!(replica = %desired.replica, registry, %fault, "decrypting registry credentials failed");
            }
        }
    }
    Ok(())
}
