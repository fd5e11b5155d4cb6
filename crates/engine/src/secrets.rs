//! Secrets in desired state: stored encrypted, decrypted when handed to an agent.

use model::DeploymentId;
use model::agent::Desired;

use port::{Encryption, Fault};

/// Encryption context of an environment variable of a deployment.
pub fn purpose(id: DeploymentId, variable: &str) -> String {
    format!("deployment/{id}/env/{variable}")
}

/// Encryption context of the Kubernetes objects of a deployment.
pub fn manifests_purpose(id: DeploymentId) -> String {
    format!("deployment/{id}/manifests")
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
