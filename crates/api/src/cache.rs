//! Cache of authenticated users: saves a database query per request for a few seconds.
//!
//! All entries are dropped as soon as any user changes or logs out: in this replica by the handler,
//! in others by the event that they follow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::Time;
use model::token::Token;
use model::user::User;
use store::{Db, Scope, event};
use tokio::sync::watch;

use crate::oidc::ExternalClaims;

/// Lifetime of an entry.
const ENTRY_LIFE: Duration = Duration::from_secs(10);
const MAX_ENTRIES: usize = 50_000;

/// Users by the hash of their credentials.
#[derive(Default)]
pub(crate) struct Cache {
    entries: Mutex<Entries>,
    /// Number of times the cache was cleared.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Entries {
    users: HashMap<String, (Authenticated, Time)>,
    /// Number of times the cache was cleared.
    epoch: u64,
}

/// A user, the additional claims of an OIDC token, and the end of the session if it has one.
#[derive(Clone)]
pub(crate) struct Authenticated {
    pub(crate) user: User,
    pub(crate) external: Option<Arc<ExternalClaims>>,
    pub(crate) expires_at: Option<Time>,
    /// The token, unless a password or an OIDC token was used.
    pub(crate) grant: Option<Arc<Token>>,
}

/// Epoch at the start of a lookup: a result read before a change is not cached after it.
#[derive(Clone, Copy)]
pub(crate) struct Epoch(u64);

impl Cache {
    /// Returns the cached user, or the epoch to pass to [`Cache::put`].
    pub(crate) fn get(&self, hash: &str, now: Time) -> Result<Authenticated, Epoch> {
        let entries = self.lock();
        let found = entries.users.get(hash).filter(|(_, until)| *until > now);
        found.map(|(user, _)| user.clone()).ok_or(Epoch(entries.epoch))
    }

    /// Caches a user until `end` at the latest, unless the cache was cleared meanwhile.
    pub(crate) fn put(
        &self,
        hash: &str,
        authenticated: &Authenticated,
        since: Epoch,
        now: Time,
        end: Time,
    ) {
        let mut entries = self.lock();
        if entries.epoch != since.0 {
            return;
        }
        if entries.users.len() >= MAX_ENTRIES {
            entries.users.clear();
        }
        let until = (now + ENTRY_LIFE).min(end);
        entries.users.insert(hash.to_owned(), (authenticated.clone(), until));
    }

    pub(crate) fn clear(&self) {
        let mut entries = self.lock();
        entries.users.clear();
        entries.epoch += 1;
        self.changes.send_replace(entries.epoch);
    }

    /// Follows changes of users.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows the event log and clears the cache when a user changes.
pub(crate) async fn follow(db: Db, cache: std::sync::Weak<crate::app::Inner>) {
    let mut signal = db.event_signal();
    let users = event::Filter { kind: Some("user".into()), ..event::Filter::default() };
    let mut last_seq = None;
    while signal.changed().await.is_ok() {
        let Some(app) = cache.upgrade() else { return };
        let changed = async {
            let mut read = db.read().await?;
            let after = match last_seq {
                Some(seq) => seq,
                None => event::last(&mut read).await?,
            };
            let (events, last) = event::next(&mut read, Scope::All, &users, after, 1000).await?;
            Ok::<_, store::Error>((last, last_seq.is_none() || !events.is_empty()))
        };
        match changed.await {
            Ok((last, changed)) => {
                last_seq = Some(last);
                if changed {
                    app.cache.clear();
                }
            }
            Err(_) => app.cache.clear(),
        }
    }
}
