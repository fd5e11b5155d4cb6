//! Re-encryption of a deployment's spec.

use model::Secret;
use model::deployment::Spec;
use port::{Encryption, Fault};
use store::encrypted::StoredSpec;

use crate::secrets::{manifests_purpose, purpose};

/// The ciphertexts of a spec.
pub(super) fn ciphertexts(spec: &Spec) -> impl Iterator<Item = &str> {
    spec.sealed_env.values().chain(&spec.sealed_manifests).map(String::as_str)
}

/// The spec with everything encrypted by the current key, if that is a change. A deleted
/// deployment keeps no variables: nothing reads them. Variables of internal deployments that are not
/// encrypted are no secrets: they come from the kind.
pub(super) async fn renewed(
    seal: &dyn Encryption,
    stored: &StoredSpec,
    current: &str,
) -> Result<Option<Spec>, Fault> {
    let (id, old) = (stored.id, &stored.spec);
    if stored.is_deleted {
        return Ok(Some(old.without_secrets()).filter(|new| new != old));
    }
    let mut new = old.clone();
    for (name, text) in &mut new.sealed_env {
        renew(seal, &purpose(id, name), text, current).await?;
    }
    if let Some(text) = &mut new.sealed_manifests {
        renew(seal, &manifests_purpose(id), text, current).await?;
    }
    if !stored.is_internal {
        crate::secrets::encrypt_env(seal, id, &mut new).await?;
    }
    Ok(Some(new).filter(|new| new != old))
}

/// Encrypts a ciphertext again, unless the current key encrypted it.
pub(super) async fn renew(
    seal: &dyn Encryption,
    purpose: &str,
    text: &mut String,
    current: &str,
) -> Result<(), Fault> {
    if !is_current(text, current) {
        *text = again(seal, purpose, text).await?;
    }
    Ok(())
}

/// Whether that key made the ciphertext.
pub(super) fn is_current(text: &str, key: &str) -> bool {
    text.strip_prefix(key).is_some_and(|rest| rest.starts_with(':'))
}

async fn again(seal: &dyn Encryption, purpose: &str, text: &str) -> Result<String, Fault> {
    let open: Secret = seal.decrypt(purpose, text).await?;
    seal.encrypt(purpose, &open).await
}
