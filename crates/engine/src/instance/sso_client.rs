//! The SSO client of an instance, stored encrypted.

use model::instance::{External, Instance};
use model::{InstanceId, Secret};
use serde::{Deserialize, Serialize};
use store::Db;

use super::InstanceWorker;
use crate::Error;
use crate::locked::Locked;
use port::{Encryption, Fault, Sso, SsoClient};

/// Stored form of a client, before encryption.
#[derive(Serialize, Deserialize)]
struct StoredClient {
    id: String,
    secret: String,
    handle: String,
}

/// Why a step failed: internally, or in an external system.
pub(super) enum StepError {
    Internal(Error),
    External(External, Fault),
}

impl StepError {
    /// Returns a constructor for faults of that system.
    pub(super) fn external(system: External) -> impl Fn(Fault) -> Self {
        move |fault| Self::External(system, fault)
    }
}

impl From<store::Error> for StepError {
    fn from(error: store::Error) -> Self {
        Self::Internal(error.into())
    }
}

/// Encryption context of an instance's client.
pub(crate) fn purpose(id: InstanceId) -> String {
    format!("instance/{id}/sign-in")
}

/// Name of an instance's client.
fn name(instance: &Instance) -> String {
    format!("{}-{}", instance.kind, instance.id)
}

/// The stored client of an instance.
pub(super) async fn client(
    db: &Db,
    seal: &dyn Encryption,
    id: InstanceId,
) -> Result<Option<SsoClient>, StepError> {
    let sealed = store::instance::sso_client(&mut db.read().await?, id).await?;
    let Some(sealed) = sealed else { return Ok(None) };
    let secrets = StepError::external(External::Secrets);
    let opened = seal.decrypt(&purpose(id), &sealed).await.map_err(&secrets)?;
    let stored: StoredClient = serde_json::from_str(opened.reveal())
        .map_err(|_| secrets(Fault::Refused("stored SSO client is not valid JSON".into())))?;
    let (secret, handle) = (Secret::new(stored.secret), Secret::new(stored.handle));
    Ok(Some(SsoClient { id: stored.id, secret, handle }))
}

/// The SSO client of an instance, for a third-party agent; or an error message.
pub async fn credentials(
    db: &Db,
    seal: &dyn Encryption,
    id: InstanceId,
) -> Result<Option<SsoClient>, String> {
    client(db, seal, id).await.map_err(|error| match error {
        StepError::Internal(error) => error.to_string(),
        StepError::External(_, fault) => fault.to_string(),
    })
}

/// Returns the client of an instance, and whether its secret changed. Creates it if it does not
/// exist, or was removed at the provider.
pub(super) async fn ensure(
    ctx: &InstanceWorker,
    sso: &dyn Sso,
    instance: &Instance,
) -> Result<(SsoClient, bool), StepError> {
    let failed = StepError::external(External::Sso);
    let stored = client(&ctx.db, &*ctx.external.seal, instance.id).await?;
    if let Some(stored) = stored {
        match sso.find(&stored).await.map_err(&failed)? {
            Some(found) if found == stored => return Ok((found, false)),
            Some(found) => {
                let is_changed = found.secret != stored.secret;
                store_client(ctx, instance, &found).await?;
                return Ok((found, is_changed));
            }
            None => {}
        }
    }
    let made = sso.create(&name(instance)).await.map_err(failed)?;
    store_client(ctx, instance, &made).await?;
    Ok((made, true))
}

/// Rotates the secret of an instance's client if it is too old.
///
/// After a crash before the new secret is stored, [`ensure`] reads it from the provider.
pub(super) async fn rotate(
    ctx: &InstanceWorker,
    sso: &dyn Sso,
    instance: &Instance,
    client: &SsoClient,
) -> Result<Option<SsoClient>, StepError> {
    let since = instance.detail.sso_since.unwrap_or(instance.created_at);
    let is_old = ctx.external.rotate_every.is_some_and(|life| since + life <= ctx.db.now());
    if !is_old {
        return Ok(None);
    }
    let rotated = sso.rotate(client).await.map_err(StepError::external(External::Sso))?;
    store_client(ctx, instance, &rotated).await?;
    Ok(Some(rotated))
}

/// Stores the client encrypted, if the instance has not changed.
pub(super) async fn store_client(
    ctx: &InstanceWorker,
    instance: &Instance,
    client: &SsoClient,
) -> Result<(), StepError> {
    let stored = StoredClient {
        id: client.id.clone(),
        secret: client.secret.reveal().to_owned(),
        handle: client.handle.reveal().to_owned(),
    };
    let text = Secret::new(serde_json::to_string(&stored).expect("plain text"));
    let sealed = ctx.external.seal.encrypt(&purpose(instance.id), &text).await;
    let sealed = sealed.map_err(StepError::external(External::Secrets))?;
    let Some(Locked { mut tx, mut now }) = ctx.lock(instance).await.map_err(StepError::Internal)?
    else {
        return Ok(());
    };
    store::instance::set_sso_client(&mut tx, now.id, Some(&sealed)).await?;
    now.detail.sso_client = Some(client.id.clone());
    now.detail.sso_since = Some(tx.now());
    store::instance::save(&mut tx, &mut now, "signed_up").await?;
    Ok(tx.commit().await?)
}
