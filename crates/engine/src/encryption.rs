//! Keys of stored secrets: which ones the database needs, and their rotation.
//!
//! The database lists the ids of all keys that may have encrypted something ([`encryption_key`]);
//! the newest one encrypts. A server that lacks one of them must not start: it would fail to
//! decrypt, and encrypt with a key that other servers lack. [`RekeyWorker`] re-encrypts everything
//! with the newest key; after that the older ids are removed from the list.

mod rekey;
mod respec;

use std::collections::BTreeSet;

use model::event::Actor;
use model::work::{Key, Lane};
use port::{Encryption, Fault, KeyRing};
use store::{Db, Tx, encrypted, encryption_key, work};

use crate::Reconcile as _;

pub use rekey::RekeyWorker;

/// Why a rotation was not started.
#[derive(Debug, thiserror::Error)]
pub enum RotationError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The key file can't be changed, or Vault does not answer.
    #[error(transparent)]
    Keys(#[from] Fault),
    /// Other servers may lack the new key.
    #[error(
        "several servers may use this PostgreSQL database, and each needs the new key before it \
         is used. Prepare a key, copy seal.key to the data directory of every server, then repeat \
         the request"
    )]
    NotPrepared,
    /// Vault has no prepared keys.
    #[error("the key is in Vault: rotate it there, then start the re-encryption here")]
    NoKeyFile,
}

/// The keys of the stored secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The key that encrypts.
    pub current: String,
    /// Older keys with which something may still be encrypted.
    pub previous: Vec<String>,
    /// Keys of this server that encrypt nothing yet.
    pub prepared: Vec<String>,
}

/// The id of the key of a ciphertext: its first two parts.
fn key_id(sealed: &str) -> &str {
    let mut colons = sealed.match_indices(':').map(|(at, _)| at);
    colons.nth(1).map_or(sealed, |at| &sealed[..at])
}

/// The ids of all keys that encrypted something. Reads all encrypted rows.
pub async fn used(db: &Db) -> store::Result<BTreeSet<String>> {
    let (mut used, mut read) = (BTreeSet::new(), db.read().await?);
    let mut after = String::new();
    loop {
        let page = encrypted::specs(&mut read, &after).await?;
        let Some(last) = page.last() else { break };
        after = last.id.to_string();
        for stored in page.iter().filter(|stored| !stored.is_deleted) {
            used.extend(respec::ciphertexts(&stored.spec).map(|text| key_id(text).to_owned()));
        }
    }
    after.clear();
    loop {
        let page = encrypted::sso_clients(&mut read, &after).await?;
        let Some((last, _)) = page.last() else { break };
        after = last.to_string();
        used.extend(page.iter().map(|(_, text)| key_id(text).to_owned()));
    }
    let mut after = (String::new(), String::new());
    loop {
        let page = encrypted::secrets(&mut read, (&after.0, &after.1)).await?;
        let Some((subject, name, _)) = page.last() else { break };
        after = (subject.to_string(), name.clone());
        used.extend(page.iter().map(|(_, _, text)| key_id(text).to_owned()));
    }
    let mut after = None;
    loop {
        let mut page = encrypted::credentials(&mut read, after.as_ref()).await?;
        used.extend(page.iter().map(|stored| key_id(&stored.sealed).to_owned()));
        let Some(last) = page.pop() else { break };
        after = Some(last);
    }
    Ok(used)
}

/// The keys that stored secrets need and that this server lacks. `is_available` says whether it has
/// a key. The list of keys must be locked.
pub async fn missing(
    db: &Db,
    tx: &mut Tx,
    is_available: impl Fn(&str) -> bool,
) -> store::Result<Vec<String>> {
    let mut registered = encryption_key::list(tx).await?;
    if registered.is_empty() {
        // The first start of a release that has the list.
        for id in used(db).await? {
            encryption_key::register(tx, &id).await?;
            registered.push(id);
        }
    }
    let mut missing: Vec<String> = registered.into_iter().filter(|id| !is_available(id)).collect();
    // A SQLite file has one server; others on PostgreSQL may be about to use the key.
    if !missing.is_empty() && db.engine_name() == "sqlite" {
        let used = used(db).await?;
        for id in missing.extract_if(.., |id| !used.contains(id)) {
            encryption_key::delete(tx, &id).await?;
        }
    }
    Ok(missing)
}

/// Removes lost keys from the list: what they encrypted stays unreadable.
pub async fn forget(tx: &mut Tx, lost: &[String]) -> store::Result<()> {
    for id in lost {
        encryption_key::delete(tx, id).await?;
    }
    Ok(())
}

/// Registers the key that encrypts, or activates a newer one that another server registered.
pub async fn register(tx: &mut Tx, ring: &dyn KeyRing) -> Result<(), RotationError> {
    let (held, registered) = (ring.ids(), encryption_key::list(tx).await?);
    let Some(last) = held.last() else { return Ok(()) };
    match registered.last() {
        Some(newest) if registered.contains(last) && held.contains(newest) => {
            Ok(ring.activate(newest)?)
        }
        _ => Ok(encryption_key::register(tx, last).await?),
    }
}

/// Wakes the worker that re-encrypts.
pub async fn start(db: &Db) -> store::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    wake(&mut tx);
    tx.commit().await
}

fn wake(tx: &mut Tx) {
    work::wake(tx, Lane::Background, Key::new(RekeyWorker::NAME, "all"));
}

/// The keys in use.
pub async fn keys(db: &Db, seal: &dyn Encryption) -> Result<Keys, RotationError> {
    let current = seal.current_key().await?;
    let registered = encryption_key::list(&mut db.read().await?).await?;
    let held = seal.key_ring().map(KeyRing::ids).unwrap_or_default();
    let is_new = |id: &String| *id != current && !registered.contains(id);
    let prepared = held.into_iter().filter(is_new).collect();
    let previous = registered.into_iter().filter(|id| *id != current).collect();
    Ok(Keys { current, previous, prepared })
}

/// Adds a key that decrypts only, to be copied to other servers before it is used.
pub fn prepare(seal: &dyn Encryption) -> Result<String, RotationError> {
    Ok(seal.key_ring().ok_or(RotationError::NoKeyFile)?.prepare()?)
}

/// Makes a prepared or new key the one that encrypts, and starts the re-encryption. With Vault,
/// which rotates its keys itself, only the latter.
pub async fn rotate(db: &Db, seal: &dyn Encryption, by: Actor) -> Result<(), RotationError> {
    let prepared = keys(db, seal).await?.prepared.pop();
    let mut tx = db.begin(by).await?;
    encryption_key::lock(&mut tx).await?;
    if let Some(ring) = seal.key_ring() {
        let id = match prepared {
            Some(id) => ring.activate(&id).map(|()| id)?,
            None if db.engine_name() == "sqlite" => ring.add()?,
            None => return Err(RotationError::NotPrepared),
        };
        encryption_key::register(&mut tx, &id).await?;
    }
    wake(&mut tx);
    Ok(tx.commit().await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_id_is_the_beginning_of_a_ciphertext() {
        assert_eq!(key_id("v1:0a1b2c3d:AAAA"), "v1:0a1b2c3d");
        assert_eq!(key_id("vault:v3:AAAA"), "vault:v3");
        assert_eq!(key_id("unknown"), "unknown");
    }
}
