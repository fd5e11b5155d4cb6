//! Secrets in what agents shall run: encrypted wherever they are kept, opened where they are handed out.

use model::DeploymentId;
use model::agent::Desired;

use port::{Fault, Seal};

/// For which purpose an environment variable of a deployment is encrypted.
pub fn purpose(id: DeploymentId, variable: &str) -> String {
    format!("deployment/{id}/env/{variable}")
}

/// For which purpose the Kubernetes objects of a deployment are encrypted.
pub fn manifests_purpose(id: DeploymentId) -> String {
    format!("deployment/{id}/manifests")
}

/// Opens what is encrypted in each wish. One that can't be opened now is left out, so that it does not
/// keep the others; how many these are.
pub async fn open_all(seal: &dyn Seal, wishes: Vec<Desired>) -> (Vec<Desired>, usize) {
    let (all, mut opened) = (wishes.len(), Vec::with_capacity(wishes.len()));
    for mut wish in wishes {
        match open(seal, &mut wish).await {
            Ok(()) => opened.push(wish),
            Err(fault) => {
                tracing::warn!(replica = %wish.replica, %fault, "its secrets can't be opened");
            }
        }
    }
    let left_out = all - opened.len();
    (opened, left_out)
}

async fn open(seal: &dyn Seal, wish: &mut Desired) -> Result<(), Fault> {
    let Some(spec) = &mut wish.run else { return Ok(()) };
    for (name, sealed) in std::mem::take(&mut spec.sealed_env) {
        let text = seal.open(&purpose(wish.replica.deployment, &name), &sealed).await?;
        spec.env.insert(name, text.reveal().to_owned());
    }
    if let Some(sealed) = spec.sealed_manifests.take() {
        let text = seal.open(&manifests_purpose(wish.replica.deployment), &sealed).await?;
        // What a parser says would repeat what it has read.
        spec.manifests = serde_json::from_str(text.reveal())
            .map_err(|_| Fault::Refused("its manifests can't be read".into()))?;
    }
    Ok(())
}
