//! Secrets of deployments: stored encrypted, decrypted for agents and for their owner.

use model::agent::Desired;
use model::deployment::{Deployment, HIDDEN, Spec};
use model::{DeploymentId, Secret};

use port::{Encryption, Fault};

/// Encryption context of an environment variable of a deployment.
pub fn purpose(id: DeploymentId, variable: &str) -> String {
    format!("deployment/{id}/env/{variable}")
}

/// Encryption context of the Kubernetes objects of a deployment.
pub fn manifests_purpose(id: DeploymentId) -> String {
    format!("deployment/{id}/manifests")
}

/// Encrypts the environment variables of a deployment.
pub async fn encrypt_env(
    seal: &dyn Encryption,
    id: DeploymentId,
    spec: &mut Spec,
) -> Result<(), Fault> {
    for (name, text) in &spec.env {
        let sealed = seal.encrypt(&purpose(id, name), &Secret::new(text)).await?;
        spec.sealed_env.insert(name.clone(), sealed);
    }
    spec.env.clear();
    Ok(())
}

/// Decrypts the environment variables of a deployment for its owner. A value that can't be
/// decrypted now is hidden, so that the status stays visible. Variables of an instance's deployment
/// belong to Paddock and stay encrypted.
pub async fn decrypt_env(seal: &dyn Encryption, deployment: &mut Deployment) {
    if deployment.instance_id.is_some() {
        return;
    }
    for (name, sealed) in std::mem::take(&mut deployment.spec.sealed_env) {
        let opened = seal.decrypt(&purpose(deployment.id, &name), &sealed).await;
        let text = match opened {
            Ok(text) => text.reveal().to_owned(),
            Err(fault) => {
                tracing::warn!(deployment = %deployment.id, variable = name, %fault, "decrypting environment variable failed");
                HIDDEN.to_owned()
            }
        };
        deployment.spec.env.insert(name, text);
    }
}

/// Hides the environment variables of a deployment from users who may not read them.
pub fn hide_env(deployment: &mut Deployment) {
    let Deployment { spec, .. } = deployment;
    let names = std::mem::take(&mut spec.sealed_env).into_keys();
    let names: Vec<String> = names.chain(std::mem::take(&mut spec.env).into_keys()).collect();
    spec.env = names.into_iter().map(|name| (name, HIDDEN.to_owned())).collect();
}

/// Decrypts the secrets of each replica's desired state. A replica that can't be decrypted is left
/// out, so that it does not block the others. Returns how many were left out.
pub async fn decrypt_all(seal: &dyn Encryption, all: Vec<Desired>) -> (Vec<Desired>, usize) {
    let (count, mut opened) = (all.len(), Vec::with_capacity(all.len()));
    for mut desired in all {
        match open(seal, &mut desired).await {
            Ok(()) => opened.push(desired),
            Err(fault) => {
                tracing::warn!(replica = %desired.replica, %fault, "decrypting secrets failed");
            }
        }
    }
    let left_out = count - opened.len();
    (opened, left_out)
}

async fn open(seal: &dyn Encryption, desired: &mut Desired) -> Result<(), Fault> {
    let Some(spec) = &mut desired.run else { return Ok(()) };
    for (name, sealed) in std::mem::take(&mut spec.sealed_env) {
        let text = seal.decrypt(&purpose(desired.replica.deployment, &name), &sealed).await?;
        spec.env.insert(name, text.reveal().to_owned());
    }
    if let Some(sealed) = spec.sealed_manifests.take() {
        let text = seal.decrypt(&manifests_purpose(desired.replica.deployment), &sealed).await?;
        // The parser's error would contain secrets.
        spec.manifests = serde_json::from_str(text.reveal())
            .map_err(|_| Fault::Refused("decrypted manifests are not valid JSON".into()))?;
    }
    Ok(())
}
