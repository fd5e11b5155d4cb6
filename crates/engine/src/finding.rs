//! Search: an index of everything in memory, which follows the log of events on every server.
//!
//! Whoever searches waits until the index knows what was durable when the question came, so that what
//! was just made is found. Only the index is asked then: the database is not searched.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use base::Stop;
use model::Xid;
use model::event::Kind;
use model::finding::{Document, Hit, Index, KINDS, Query};
use store::{Db, event, finding};
use tokio::sync::watch;

/// How much is read at once.
const BATCH: i64 = 1000;
/// How long to wait after an error.
const RETRY: Duration = Duration::from_secs(1);
/// How long somebody who searches waits for the index.
const PATIENCE: Duration = Duration::from_secs(1);
/// Before everything was read for the first time.
const NOTHING: i64 = -1;

/// Why nothing could be searched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Everything is still being read, after a start.
    #[error("the index is still being made")]
    NotYet,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Finds things. Cheap to clone.
#[derive(Clone)]
pub struct Finder {
    db: Db,
    index: Arc<RwLock<Index>>,
    /// The place in the log up to which everything is known.
    seq: Arc<watch::Sender<i64>>,
}

impl Finder {
    /// One that knows nothing until [`follow`] runs.
    pub fn new(db: Db) -> Self {
        let index = Arc::new(RwLock::new(Index::new([])));
        Self { db, index, seq: Arc::new(watch::Sender::new(NOTHING)) }
    }

    /// What fits best, best first. Whatever was durable before this was called is found, unless the index
    /// can't keep up: then what it knows is all there is to say.
    pub async fn find(&self, query: &Query) -> Result<Vec<Hit>, Error> {
        self.db.settle_events().await?;
        let newest = event::last(&mut self.db.read().await?).await?;
        let mut known = self.seq.subscribe();
        let caught_up = tokio::time::timeout(PATIENCE, known.wait_for(|seq| *seq >= newest)).await;
        if caught_up.is_err() && *self.seq.borrow() == NOTHING {
            return Err(Error::NotYet);
        }
        Ok(self.index.read().unwrap_or_else(PoisonError::into_inner).find(query))
    }

    fn change(&self, change: impl FnOnce(&mut Index)) {
        change(&mut self.index.write().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Keeps an index up to date until told to stop.
pub async fn follow(finder: Finder, mut stop: Stop) {
    let mut signal = finder.db.event_signal();
    while !stop.is_set() {
        signal.mark_unchanged();
        if let Err(error) = catch_up(&finder).await {
            tracing::warn!(%error, "the index of search could not go on, trying again");
            let _ = tokio::time::timeout(RETRY, stop.told()).await;
            continue;
        }
        tokio::select! {
            () = stop.told() => {}
            changed = signal.changed() => if changed.is_err() { break },
        }
    }
}

/// Learns what has changed since the last time.
async fn catch_up(finder: &Finder) -> store::Result<()> {
    finder.db.settle_events().await?;
    if *finder.seq.borrow() == NOTHING {
        read_all(finder).await?;
    }
    loop {
        let seq = *finder.seq.borrow();
        let changes = event::changes(&mut finder.db.read().await?, seq, BATCH).await?;
        let Some((last, ..)) = changes.last() else { return Ok(()) };
        learn(finder, &changes).await?;
        finder.seq.send_replace(*last);
    }
}

async fn read_all(finder: &Finder) -> store::Result<()> {
    let mut read = finder.db.read().await?;
    // What changes while we read is read again.
    let seq = event::last(&mut read).await?;
    let mut all = Vec::new();
    for kind in KINDS {
        let mut after = None;
        loop {
            let part = finding::page(&mut read, kind, after, BATCH).await?;
            all.extend(part.documents);
            after = part.next;
            if after.is_none() {
                break;
            }
        }
    }
    let index = Index::new(all);
    finder.change(|old| *old = index);
    finder.seq.send_replace(seq);
    Ok(())
}

/// Reads again what has changed.
async fn learn(finder: &Finder, changes: &[(i64, String, String)]) -> store::Result<()> {
    let mut touched: BTreeMap<&str, Vec<Xid>> = BTreeMap::new();
    for (_, kind, subject) in changes {
        // Some are about what has no id, such as a name that is denied.
        if let Ok(id) = subject.parse() {
            touched.entry(kind).or_default().push(id);
        }
    }
    for kind in KINDS {
        let mut ids = touched.remove(kind.as_str()).unwrap_or_default();
        ids.sort_unstable();
        ids.dedup();
        learn_some(finder, kind, &ids).await?;
    }
    Ok(())
}

async fn learn_some(finder: &Finder, kind: Kind, ids: &[Xid]) -> store::Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let found = finding::some(&mut finder.db.read().await?, kind, ids).await?;
    let mut found: BTreeMap<Xid, Document> = found.into_iter().map(|one| (one.id, one)).collect();
    for id in ids {
        // One at a time: whoever searches waits for one change at most.
        finder.change(|index| match found.remove(id) {
            Some(document) => index.set(document),
            None => index.remove(*id),
        });
    }
    Ok(())
}
