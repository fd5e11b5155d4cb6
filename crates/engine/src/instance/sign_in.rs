//! What an instance signs in with: its client at the OpenID provider, kept encrypted.

use model::instance::{External, Instance};
use model::{InstanceId, Secret};
use serde::{Deserialize, Serialize};
use store::Db;

use super::Instances;
use crate::Error;
use crate::held::Held;
use port::{Client, Fault, Seal, Sso};

/// A client as it is kept, before it is encrypted.
#[derive(Serialize, Deserialize)]
struct Kept {
    id: String,
    secret: String,
    handle: String,
}

/// What went wrong: with us, or with an external system.
pub(super) enum Trouble {
    Ours(Error),
    Outside(External, Fault),
}

impl Trouble {
    /// A fault of that system.
    pub(super) fn of(system: External) -> impl Fn(Fault) -> Self {
        move |fault| Self::Outside(system, fault)
    }
}

impl From<store::Error> for Trouble {
    fn from(error: store::Error) -> Self {
        Self::Ours(error.into())
    }
}

fn purpose(id: InstanceId) -> String {
    format!("instance/{id}/sign-in")
}

/// What the client of an instance is called.
fn name(instance: &Instance) -> String {
    format!("{}-{}", instance.kind, instance.id)
}

/// The client of an instance, if it has one.
pub(super) async fn client(
    db: &Db,
    seal: &dyn Seal,
    id: InstanceId,
) -> Result<Option<Client>, Trouble> {
    let sealed = store::instance::sealed(&mut db.read().await?, id).await?;
    let Some(sealed) = sealed else { return Ok(None) };
    let secrets = Trouble::of(External::Secrets);
    let opened = seal.open(&purpose(id), &sealed).await.map_err(&secrets)?;
    let kept: Kept = serde_json::from_str(opened.reveal())
        .map_err(|_| secrets(Fault::Refused("what it signs in with can't be read".into())))?;
    let (secret, handle) = (Secret::new(kept.secret), Secret::new(kept.handle));
    Ok(Some(Client { id: kept.id, secret, handle }))
}

/// What an instance signs in with, if it has something, for who hands it to a foreign agent; or why it
/// can't be had now.
pub async fn credentials(
    db: &Db,
    seal: &dyn Seal,
    id: InstanceId,
) -> Result<Option<Client>, String> {
    client(db, seal, id).await.map_err(|trouble| match trouble {
        Trouble::Ours(error) => error.to_string(),
        Trouble::Outside(_, fault) => fault.to_string(),
    })
}

/// The client of an instance, and whether its secret is another than before; made if there is none, or
/// if somebody has removed it.
pub(super) async fn ensure(
    all: &Instances,
    sso: &dyn Sso,
    instance: &Instance,
) -> Result<(Client, bool), Trouble> {
    let failed = Trouble::of(External::Sso);
    let kept = client(&all.db, &*all.outside.seal, instance.id).await?;
    if let Some(kept) = kept {
        match sso.find(&kept).await.map_err(&failed)? {
            Some(found) if found == kept => return Ok((found, false)),
            Some(found) => {
                let is_other = found.secret != kept.secret;
                keep(all, instance, &found).await?;
                return Ok((found, is_other));
            }
            None => {}
        }
    }
    let made = sso.create(&name(instance)).await.map_err(failed)?;
    keep(all, instance, &made).await?;
    Ok((made, true))
}

/// Gives the client of an instance another secret, if the one that it has is old.
///
/// Should this end before the new one is kept, [`ensure`] finds it at the provider.
pub(super) async fn rotate(
    all: &Instances,
    sso: &dyn Sso,
    instance: &Instance,
    client: &Client,
) -> Result<Option<Client>, Trouble> {
    let since = instance.detail.sso_since.unwrap_or(instance.created_at);
    let is_old = all.outside.rotate_every.is_some_and(|life| since + life <= all.db.now());
    if !is_old {
        return Ok(None);
    }
    let rotated = sso.rotate(client).await.map_err(Trouble::of(External::Sso))?;
    keep(all, instance, &rotated).await?;
    Ok(Some(rotated))
}

/// Keeps a client, encrypted, if the instance is still where it was.
pub(super) async fn keep(
    all: &Instances,
    instance: &Instance,
    client: &Client,
) -> Result<(), Trouble> {
    let kept = Kept {
        id: client.id.clone(),
        secret: client.secret.reveal().to_owned(),
        handle: client.handle.reveal().to_owned(),
    };
    let text = Secret::new(serde_json::to_string(&kept).expect("plain text"));
    let sealed = all.outside.seal.seal(&purpose(instance.id), &text).await;
    let sealed = sealed.map_err(Trouble::of(External::Secrets))?;
    let Some(Held { mut tx, mut now }) = all.still(instance).await.map_err(Trouble::Ours)? else {
        return Ok(());
    };
    store::instance::set_sealed(&mut tx, now.id, Some(&sealed)).await?;
    now.detail.sso_client = Some(client.id.clone());
    now.detail.sso_since = Some(tx.now());
    store::instance::save(&mut tx, &mut now, "signed_up").await?;
    Ok(tx.commit().await?)
}
