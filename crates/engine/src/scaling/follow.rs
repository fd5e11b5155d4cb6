//! Wakes pools after changes, with a short delay that batches them. Idle without pools or changes.

use std::time::Duration;

use base::Stop;
use model::event::{Actor, Kind};
use store::{Db, event, pool};

use crate::rules::RulesReader;

/// How long to wait for further changes.
const BATCH_DELAY: Duration = Duration::from_millis(200);
/// How long to wait after an error.
const RETRY: Duration = Duration::from_secs(1);
/// Changes per read.
const BATCH: i64 = 1000;

/// Wakes pools until stopped.
pub async fn follow(db: Db, rules: RulesReader, mut stop: Stop) {
    let (mut signal, mut in_force) = (db.event_signal(), rules.changes());
    let mut reader = Reader { db, rules, seq: 0, is_new: true };
    while !stop.is_set() {
        signal.mark_unchanged();
        if let Err(error) = reader.wake_pools().await {
            tracing::warn!(%error, "waking pools failed, retrying");
            let _ = tokio::time::timeout(RETRY, stop.signalled()).await;
            continue;
        }
        let has_pools = !reader.rules.pools().is_empty();
        tokio::select! {
            () = stop.signalled() => {}
            changed = signal.changed(), if has_pools => if changed.is_err() { break },
            changed = in_force.changed() => match changed {
                Ok(()) => reader.is_new = true,
                Err(_) => stop.signalled().await,
            },
        }
        let _ = tokio::time::timeout(BATCH_DELAY, stop.signalled()).await;
    }
}

struct Reader {
    db: Db,
    rules: RulesReader,
    /// Position in the event log up to which changes were read.
    seq: i64,
    /// Whether to wake all pools, regardless of changes.
    is_new: bool,
}

impl Reader {
    async fn wake_pools(&mut self) -> store::Result<()> {
        let pools = self.rules.pools();
        if pools.is_empty() {
            return Ok(());
        }
        if self.is_new {
            self.seq = event::last(&mut self.db.read().await?).await?;
        } else if !self.has_relevant_changes().await? {
            return Ok(());
        }
        let mut tx = self.db.begin(Actor::Worker(pool::WORKER)).await?;
        pools.iter().for_each(|one| pool::wake(&mut tx, &one.name));
        // Retired pools may still have clusters to delete.
        pool::resync(&mut tx).await?;
        tx.commit().await?;
        self.is_new = false;
        Ok(())
    }

    /// Whether a change affects pools.
    async fn has_relevant_changes(&mut self) -> store::Result<bool> {
        self.db.number_events().await?;
        let mut has_relevant_changes = false;
        loop {
            let changes = event::changes(&mut self.db.read().await?, self.seq, BATCH).await?;
            let Some((last, ..)) = changes.last() else { return Ok(has_relevant_changes) };
            self.seq = *last;
            let kinds = [Kind::Cluster.as_str(), Kind::Deployment.as_str()];
            has_relevant_changes |=
                changes.iter().any(|(_, kind, _)| kinds.contains(&kind.as_str()));
        }
    }
}
