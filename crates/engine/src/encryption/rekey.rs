//! The worker that re-encrypts stored secrets with the newest key.
//!
//! Every pass reads all encrypted rows and replaces those of other keys. Requests that were under
//! way during a pass may still have stored something with an older key, so older keys are removed
//! from the list only after a pass that found nothing to replace.

use std::sync::Arc;
use std::time::Duration;

use model::credential;
use model::event::Actor;
use model::work::Requeue;
use port::{Encryption, Fault};
use store::{Db, Tx, encrypted, encryption_key};

use super::{respec, used};
use crate::instance::sso_purpose;
use crate::{Error, Reconcile};

/// Pause between two passes.
const SETTLE: Duration = Duration::from_secs(5);
/// Pause after a failure of the key file or of Vault.
const RETRY: Duration = Duration::from_secs(30);

/// Re-encrypts stored secrets.
pub struct RekeyWorker {
    /// The database.
    pub db: Db,
    /// Encrypts and decrypts.
    pub seal: Arc<dyn Encryption>,
}

/// Why a pass ended early.
enum Stop {
    Store(store::Error),
    Keys(Fault),
}

impl From<store::Error> for Stop {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Keys(fault)
    }
}

/// What a pass did.
#[derive(Default)]
struct Pass {
    replaced: u64,
    unreadable: u64,
}

impl Reconcile for RekeyWorker {
    const NAME: &'static str = "encryption";

    async fn reconcile(&self, _key: &str) -> Result<Requeue, Error> {
        match self.pass().await {
            Ok(Pass { replaced: 0, .. }) => Ok(Requeue::OnChange),
            Ok(_) => Ok(Requeue::At(self.db.now() + SETTLE)),
            Err(Stop::Store(error)) => Err(error.into()),
            Err(Stop::Keys(fault)) => {
                tracing::warn!(%fault, "re-encrypting secrets failed, retrying");
                Ok(Requeue::At(self.db.now() + RETRY))
            }
        }
    }
}

impl RekeyWorker {
    async fn pass(&self) -> Result<Pass, Stop> {
        let current = self.current_key().await?;
        let mut pass = Pass::default();
        self.specs(&current, &mut pass).await?;
        self.sso_clients(&current, &mut pass).await?;
        self.secrets(&current, &mut pass).await?;
        self.credentials(&current, &mut pass).await?;
        let Pass { replaced, unreadable } = pass;
        if replaced + unreadable > 0 {
            tracing::info!(key = current, replaced, unreadable, "stored secrets re-encrypted");
        }
        if replaced == 0 {
            self.delete_unused(&current).await?;
        }
        Ok(pass)
    }

    /// The newest key, activated on this server, or Vault's.
    async fn current_key(&self) -> Result<String, Stop> {
        let registered = encryption_key::list(&mut self.db.read().await?).await?;
        if let (Some(ring), Some(newest)) = (self.seal.key_ring(), registered.last()) {
            ring.activate(newest)?;
        }
        let current = self.seal.current_key().await?;
        if !registered.contains(&current) {
            let mut tx = self.begin().await?;
            encryption_key::register(&mut tx, &current).await?;
            tx.commit().await?;
        }
        Ok(current)
    }

    async fn begin(&self) -> store::Result<Tx> {
        self.db.begin(Actor::Worker(Self::NAME)).await
    }

    async fn specs(&self, current: &str, pass: &mut Pass) -> Result<(), Stop> {
        let mut after = String::new();
        loop {
            let page = encrypted::specs(&mut self.db.read().await?, &after).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.id.to_string();
            let mut renewed = Vec::new();
            for stored in page {
                let new = respec::renewed(&*self.seal, &stored, current).await;
                if let Some(Some(new)) = readable(pass, &stored.id, new)? {
                    renewed.push((stored, new));
                }
            }
            let mut tx = self.begin().await?;
            for (stored, new) in renewed {
                pass.replaced += u64::from(encrypted::set_spec(&mut tx, &stored, &new).await?);
            }
            tx.commit().await?;
        }
    }

    async fn sso_clients(&self, current: &str, pass: &mut Pass) -> Result<(), Stop> {
        let mut after = String::new();
        loop {
            let page = encrypted::sso_clients(&mut self.db.read().await?, &after).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = last.to_string();
            for (id, old) in page {
                let mut new = old.clone();
                let renewed = respec::renew(&*self.seal, &sso_purpose(id), &mut new, current).await;
                if readable(pass, &id, renewed)?.is_none() || new == old {
                    continue;
                }
                let mut tx = self.begin().await?;
                let is_replaced = encrypted::set_sso_client(&mut tx, id, &old, &new).await?;
                tx.commit().await?;
                pass.replaced += u64::from(is_replaced);
            }
        }
    }

    async fn secrets(&self, current: &str, pass: &mut Pass) -> Result<(), Stop> {
        let mut after = (String::new(), String::new());
        loop {
            let read = &mut self.db.read().await?;
            let page = encrypted::secrets(read, (&after.0, &after.1)).await?;
            let Some((subject, name, _)) = page.last() else { return Ok(()) };
            after = (subject.to_string(), name.clone());
            for (subject, name, old) in page {
                let mut new = old.clone();
                let purpose = subject.purpose(&name);
                let renewed = respec::renew(&*self.seal, &purpose, &mut new, current).await;
                if readable(pass, &subject, renewed)?.is_none() || new == old {
                    continue;
                }
                let mut tx = self.begin().await?;
                let texts = [old.as_str(), new.as_str()];
                let is_replaced = encrypted::set_secret(&mut tx, subject, &name, texts).await?;
                tx.commit().await?;
                pass.replaced += u64::from(is_replaced);
            }
        }
    }

    async fn credentials(&self, current: &str, pass: &mut Pass) -> Result<(), Stop> {
        let mut after = None;
        loop {
            let read = &mut self.db.read().await?;
            let page = encrypted::credentials(read, after.as_ref()).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.clone());
            for old in page {
                let mut new = old.sealed.clone();
                let purpose = credential::purpose(old.organization, old.system, &old.name);
                let renewed = respec::renew(&*self.seal, &purpose, &mut new, current).await;
                if readable(pass, &old.organization, renewed)?.is_none() || new == old.sealed {
                    continue;
                }
                let mut tx = self.begin().await?;
                let is_replaced = encrypted::set_credential(&mut tx, &old, &new).await?;
                tx.commit().await?;
                pass.replaced += u64::from(is_replaced);
            }
        }
    }

    /// Removes older keys that encrypt nothing any more from the list.
    async fn delete_unused(&self, current: &str) -> Result<(), Stop> {
        let registered = encryption_key::list(&mut self.db.read().await?).await?;
        let old: Vec<String> = registered.into_iter().filter(|id| id != current).collect();
        if old.is_empty() {
            return Ok(());
        }
        let used = used(&self.db).await?;
        let mut tx = self.begin().await?;
        for id in old.iter().filter(|id| !used.contains(*id)) {
            encryption_key::delete(&mut tx, id).await?;
            tracing::info!(key = id, "encryption key is no longer used");
        }
        Ok(tx.commit().await?)
    }
}

/// Skips a row that can't be decrypted; stops if Vault does not answer.
fn readable<T>(
    pass: &mut Pass,
    subject: &impl std::fmt::Display,
    outcome: Result<T, Fault>,
) -> Result<Option<T>, Stop> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(Fault::Refused(reason)) => {
            tracing::warn!(%subject, reason, "secret not re-encrypted: decrypting failed");
            pass.unreadable += 1;
            Ok(None)
        }
        Err(other) => Err(other.into()),
    }
}
