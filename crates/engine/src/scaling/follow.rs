//! Has pools looked at when something has changed, a little later: what changes together is looked at
//! once. Costs nothing while there are no pools, or nothing changes.

use std::time::Duration;

use base::Stop;
use model::event::{Actor, Kind};
use store::{Db, event, pool};

use crate::rules::Rules;

/// How long to wait for more.
const TOGETHER: Duration = Duration::from_millis(200);
/// How long to wait after an error.
const RETRY: Duration = Duration::from_secs(1);
/// How many changes are read at once.
const BATCH: i64 = 1000;

/// Wakes pools until told to stop.
pub async fn follow(db: Db, rules: Rules, mut stop: Stop) {
    let (mut signal, mut in_force) = (db.event_signal(), rules.changes());
    let mut reader = Reader { db, rules, seq: 0, is_new: true };
    while !stop.is_set() {
        signal.mark_unchanged();
        if let Err(error) = reader.turn().await {
            tracing::warn!(%error, "pools are looked at a little later");
            let _ = tokio::time::timeout(RETRY, stop.told()).await;
            continue;
        }
        let has_pools = !reader.rules.pools().is_empty();
        tokio::select! {
            () = stop.told() => {}
            changed = signal.changed(), if has_pools => if changed.is_err() { break },
            changed = in_force.changed() => match changed {
                Ok(()) => reader.is_new = true,
                Err(_) => stop.told().await,
            },
        }
        let _ = tokio::time::timeout(TOGETHER, stop.told()).await;
    }
}

struct Reader {
    db: Db,
    rules: Rules,
    /// The place in the log up to which everything is known.
    seq: i64,
    /// Must all be looked at, whatever has changed?
    is_new: bool,
}

impl Reader {
    async fn turn(&mut self) -> store::Result<()> {
        let pools = self.rules.pools();
        if pools.is_empty() {
            return Ok(());
        }
        if self.is_new {
            self.seq = event::last(&mut self.db.read().await?).await?;
        } else if !self.is_concerned().await? {
            return Ok(());
        }
        let mut tx = self.db.begin(Actor::Worker(pool::WORKER)).await?;
        pools.iter().for_each(|one| pool::wake(&mut tx, &one.name));
        // Those that are not in force any more may have clusters that can go.
        pool::resync(&mut tx).await?;
        tx.commit().await?;
        self.is_new = false;
        Ok(())
    }

    /// Has anything changed that pools go by?
    async fn is_concerned(&mut self) -> store::Result<bool> {
        self.db.settle_events().await?;
        let mut is_concerned = false;
        loop {
            let changes = event::changes(&mut self.db.read().await?, self.seq, BATCH).await?;
            let Some((last, ..)) = changes.last() else { return Ok(is_concerned) };
            self.seq = *last;
            let kinds = [Kind::Cluster.as_str(), Kind::Deployment.as_str()];
            is_concerned |= changes.iter().any(|(_, kind, _)| kinds.contains(&kind.as_str()));
        }
    }
}
