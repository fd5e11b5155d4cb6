//! Search: an in-memory index of all subjects, which follows the event log on every server.
//!
//! A query waits until the index includes everything that was durable when the query arrived, so
//! that new objects are found. Queries read only the index, never the database.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use base::Stop;
use model::Xid;
use model::event::Kind;
use model::search_index::{Document, Hit, Index, KINDS, Query};
use store::{Db, event, search_index};
use tokio::sync::watch;

/// Rows per read.
const BATCH: i64 = 1000;
/// How long to wait after an error.
const RETRY: Duration = Duration::from_secs(1);
/// How long a query waits for the index to catch up.
const MAX_LAG: Duration = Duration::from_secs(1);
/// Position before the first complete read.
const NOTHING: i64 = -1;

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The index is still being built after a start.
    #[error("the search index is still being built")]
    IndexNotReady,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// The search index. Cheap to clone.
#[derive(Clone)]
pub struct SearchIndex {
    db: Db,
    index: Arc<RwLock<Index>>,
    /// Position in the event log up to which the index is complete.
    seq: Arc<watch::Sender<i64>>,
}

impl SearchIndex {
    /// Creates an empty index, which [`follow`] fills.
    pub fn new(db: Db) -> Self {
        let index = Arc::new(RwLock::new(Index::new([])));
        Self { db, index, seq: Arc::new(watch::Sender::new(NOTHING)) }
    }

    /// Returns the best matches, best first. Includes everything that was durable before the call,
    /// unless the index lags behind by more than a second.
    pub async fn search(&self, query: &Query) -> Result<Vec<Hit>, Error> {
        self.db.number_events().await?;
        let newest = event::last(&mut self.db.read().await?).await?;
        let mut position = self.seq.subscribe();
        let caught_up =
            tokio::time::timeout(MAX_LAG, position.wait_for(|seq| *seq >= newest)).await;
        if caught_up.is_err() && *self.seq.borrow() == NOTHING {
            return Err(Error::IndexNotReady);
        }
        Ok(self.index.read().unwrap_or_else(PoisonError::into_inner).find(query))
    }

    fn change(&self, change: impl FnOnce(&mut Index)) {
        change(&mut self.index.write().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Keeps the index up to date until stopped.
pub async fn follow(search_index: SearchIndex, mut stop: Stop) {
    let mut signal = search_index.db.event_signal();
    while !stop.is_set() {
        signal.mark_unchanged();
        if let Err(error) = catch_up(&search_index).await {
            tracing::warn!(%error, "updating the search index failed, retrying");
            let _ = tokio::time::timeout(RETRY, stop.signalled()).await;
            continue;
        }
        tokio::select! {
            () = stop.signalled() => {}
            changed = signal.changed() => if changed.is_err() { break },
        }
    }
}

/// Applies the changes since the last call.
async fn catch_up(search_index: &SearchIndex) -> store::Result<()> {
    search_index.db.number_events().await?;
    if *search_index.seq.borrow() == NOTHING {
        rebuild(search_index).await?;
    }
    loop {
        let seq = *search_index.seq.borrow();
        let changes = event::changes(&mut search_index.db.read().await?, seq, BATCH).await?;
        let Some((last, ..)) = changes.last() else { return Ok(()) };
        apply_changes(search_index, &changes).await?;
        search_index.seq.send_replace(*last);
    }
}

async fn rebuild(search_index: &SearchIndex) -> store::Result<()> {
    let mut read = search_index.db.read().await?;
    // Changes during the read are applied again afterwards.
    let seq = event::last(&mut read).await?;
    let mut all = Vec::new();
    for kind in KINDS {
        let mut after = None;
        loop {
            let part = search_index::page(&mut read, kind, after, BATCH).await?;
            all.extend(part.documents);
            after = part.next;
            if after.is_none() {
                break;
            }
        }
    }
    let index = Index::new(all);
    search_index.change(|old| *old = index);
    search_index.seq.send_replace(seq);
    Ok(())
}

/// Reads changed subjects again.
async fn apply_changes(
    search_index: &SearchIndex,
    changes: &[(i64, String, String)],
) -> store::Result<()> {
    let mut ids_by_kind: BTreeMap<&str, Vec<Xid>> = BTreeMap::new();
    for (_, kind, subject) in changes {
        // Some subjects have no id, for example denied owners.
        if let Ok(id) = subject.parse() {
            ids_by_kind.entry(kind).or_default().push(id);
        }
    }
    for kind in KINDS {
        let mut ids = ids_by_kind.remove(kind.as_str()).unwrap_or_default();
        ids.sort_unstable();
        ids.dedup();
        refresh(search_index, kind, &ids).await?;
    }
    Ok(())
}

async fn refresh(search_index: &SearchIndex, kind: Kind, ids: &[Xid]) -> store::Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let found = search_index::by_ids(&mut search_index.db.read().await?, kind, ids).await?;
    let mut found: BTreeMap<Xid, Document> = found.into_iter().map(|one| (one.id, one)).collect();
    for id in ids {
        // One write lock per document, so that queries wait for one change at most.
        search_index.change(|index| match found.remove(id) {
            Some(document) => index.set(document),
            None => index.remove(*id),
        });
    }
    Ok(())
}
