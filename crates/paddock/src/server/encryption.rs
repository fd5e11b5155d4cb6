//! Opens the keys of stored secrets, and refuses to start without one that they need.

use std::path::Path;
use std::sync::Arc;

use adapters::encryption::{LocalKey, Migrating, local, vault};
use adapters::guard::Guarded;
use anyhow::{Context, bail};
use base::{Entropy as _, OsEntropy};
use engine::encryption;
use model::event::Actor;
use port::{Encryption, KeyRing, Monitored};
use store::{Db, Tx, encryption_key};

use super::external::guard;
use crate::settings::Settings;

/// Builds the encryption of stored secrets: Vault's transit engine, or the key file.
pub(super) async fn open(
    settings: &Settings,
    db: &Db,
    watched: &mut Vec<Arc<dyn Monitored>>,
) -> anyhow::Result<Arc<dyn Encryption>> {
    let path = settings.data_dir.join("seal.key");
    let set = settings.external.vault.as_ref();
    let transit = set.and_then(|vault| Some((&vault.addr, vault.transit.as_ref()?)));
    // Servers that start together wait here, so that one creates the key.
    let mut tx = db.begin(Actor::Server).await?;
    encryption_key::lock(&mut tx).await?;
    let file = LocalKey::load(&path, entropy()).context("--data-dir")?;
    let held = file.as_ref().map(KeyRing::ids).unwrap_or_default();
    let is_available = |id: &str| {
        held.iter().any(|held| held == id) || transit.is_some() && id.starts_with("vault:")
    };
    let missing = encryption::missing(db, &mut tx, is_available).await?;
    if !missing.is_empty() {
        accept_loss(&mut tx, &missing, &path, settings.accept_lost_keys).await?;
    }
    let seal: Arc<dyn Encryption> = match transit {
        Some((addr, (token, key))) => {
            let options = vault::Options::new(addr, token.clone(), key);
            let vault = vault::Vault::new(options).context("--vault-addr")?;
            let current = Guarded::new(vault, guard("Vault", watched));
            match file {
                Some(before) => Arc::new(Migrating { current, before }),
                None => Arc::new(current),
            }
        }
        None => {
            let key = match file {
                Some(file) => file,
                None => LocalKey::load_or_create(&path, entropy()).context("--data-dir")?,
            };
            encryption::register(&mut tx, &key).await.context("--data-dir")?;
            Arc::new(key)
        }
    };
    tx.commit().await?;
    Ok(seal)
}

fn entropy() -> local::Entropy {
    Arc::new(|buffer: &mut [u8]| OsEntropy.fill(buffer))
}

/// Fails, unless the operator accepts that secrets of the missing keys stay unreadable.
async fn accept_loss(
    tx: &mut Tx,
    missing: &[String],
    path: &Path,
    is_accepted: bool,
) -> anyhow::Result<()> {
    let ids = missing.join(", ");
    if is_accepted {
        encryption::forget(tx, missing).await?;
        tracing::warn!(
            keys = ids,
            "encryption keys are lost: secrets that they encrypted stay unreadable"
        );
        return Ok(());
    }
    if missing.iter().all(|id| id.starts_with("vault:")) {
        bail!(
            "--vault-transit-key: stored secrets are encrypted by Vault's transit engine ({ids}). \
             Set --vault-addr and --vault-transit-key as before"
        );
    }
    let problem = if path.exists() { "lacks keys" } else { "is missing" };
    bail!(
        "--data-dir: {} {problem}: stored secrets are encrypted with {ids}. Restore the file from \
         a backup, or copy it from another server on this database. If the keys are lost, start once \
         with --accept-lost-keys true: these secrets then stay unreadable",
        path.display()
    );
}
