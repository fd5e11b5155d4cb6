//! Who somebody is, remembered for seconds, so that not every request asks the database.
//!
//! Entries are dropped at once when any user changes or signs out, in this replica by the handler
//! and in the others by the event that they follow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::Time;
use model::user::User;
use store::{Db, Scope, event};

use crate::oidc::Foreign;

/// How long an answer is believed.
const BELIEVED_FOR: Duration = Duration::from_secs(10);
const MAX_ENTRIES: usize = 50_000;

/// Users by the hash of what they showed.
#[derive(Default)]
pub(crate) struct Cache(Mutex<Known>);

#[derive(Default)]
struct Known {
    users: HashMap<String, (Signed, Time)>,
    /// How often all was forgotten.
    epoch: u64,
}

/// A user, and what its token says beside that.
type Signed = (User, Option<Arc<Foreign>>);

/// When somebody began to look: what was seen before a change is not remembered after it.
#[derive(Clone, Copy)]
pub(crate) struct Epoch(u64);

impl Cache {
    /// Who that is, if it is known; otherwise what [`Cache::put`] wants to know later.
    pub(crate) fn get(&self, hash: &str, now: Time) -> Result<Signed, Epoch> {
        let known = self.lock();
        let found = known.users.get(hash).filter(|(_, until)| *until > now);
        found.map(|(signed, _)| signed.clone()).ok_or(Epoch(known.epoch))
    }

    /// Remembers a user, until `end` at the latest; not if anybody has changed meanwhile.
    pub(crate) fn put(
        &self,
        hash: &str,
        (user, foreign): (&User, Option<Arc<Foreign>>),
        since: Epoch,
        now: Time,
        end: Time,
    ) {
        let mut known = self.lock();
        if known.epoch != since.0 {
            return;
        }
        if known.users.len() >= MAX_ENTRIES {
            known.users.clear();
        }
        let until = (now + BELIEVED_FOR).min(end);
        known.users.insert(hash.to_owned(), ((user.clone(), foreign), until));
    }

    pub(crate) fn clear(&self) {
        let mut known = self.lock();
        known.users.clear();
        known.epoch += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows the event log and forgets everybody when a user has changed.
pub(crate) async fn follow(db: Db, cache: std::sync::Weak<crate::app::Inner>) {
    let mut signal = db.event_signal();
    let users = event::Filter { kind: Some("user".into()), ..event::Filter::default() };
    let mut seen = None;
    while signal.changed().await.is_ok() {
        let Some(app) = cache.upgrade() else { return };
        let changed = async {
            let mut read = db.read().await?;
            let after = match seen {
                Some(seq) => seq,
                None => event::last(&mut read).await?,
            };
            let (events, last) = event::next(&mut read, Scope::All, &users, after, 1000).await?;
            Ok::<_, store::Error>((last, seen.is_none() || !events.is_empty()))
        };
        match changed.await {
            Ok((last, changed)) => {
                seen = Some(last);
                if changed {
                    app.cache.clear();
                }
            }
            Err(_) => app.cache.clear(),
        }
    }
}
