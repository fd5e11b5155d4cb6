//! Records when tokens were last used: in the background, at most once a minute per token.
//!
//! A use that can't be recorded is dropped: no request waits for it or fails with it.

use std::collections::HashMap;

use model::Time;
use model::event::Actor;
use model::token::{Token, USE_INTERVAL};
use store::{Db, token};
use tokio::sync::mpsc;

/// Maximum number of uses that wait to be recorded.
const MAX_WAITING: usize = 4096;

/// Uses to record, by the hash of the token.
pub(crate) struct TokenUses(mpsc::Sender<(String, Time)>);

/// Creates the channel, and the task that records what it receives until the channel is closed.
pub(crate) fn channel(db: Db) -> (TokenUses, impl Future<Output = ()> + Send) {
    let (sender, mut receiver) = mpsc::channel(MAX_WAITING);
    let recorder = async move {
        let mut waiting = Vec::new();
        while receiver.recv_many(&mut waiting, MAX_WAITING).await > 0 {
            let uses: HashMap<String, Time> = waiting.drain(..).collect();
            if let Err(error) = record(&db, uses).await {
                tracing::debug!(%error, "token uses not recorded");
            }
        }
    };
    (TokenUses(sender), recorder)
}

impl TokenUses {
    /// Records a use, unless one within the last minute is recorded.
    pub(crate) fn record(&self, hash: &str, token: &Token, now: Time) {
        if token.last_used_at.is_none_or(|last| last + USE_INTERVAL <= now) {
            // If the channel is full, a later use is recorded.
            let _ = self.0.try_send((hash.to_owned(), now));
        }
    }
}

async fn record(db: &Db, uses: HashMap<String, Time>) -> store::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    for (hash, at) in uses {
        token::set_used(&mut tx, &hash, at).await?;
    }
    tx.commit().await
}
