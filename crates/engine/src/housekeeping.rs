//! Forgets what nobody needs any more: ended tokens, old answers, who yielded to whom.

use std::time::Duration;

use model::event::Actor;
use model::work::{Key, Lane, Next};
use store::deployment::placing;
use store::{Db, agent_token, idempotency, token, work};

use crate::{Error, Reconcile};

/// How often.
const EVERY: Duration = Duration::from_hours(1);
/// How long an answer to a creating call is kept for a repeat.
pub const KEEP_ANSWERS: Duration = Duration::from_hours(24);

/// The worker.
pub struct Housekeeping {
    /// Where.
    pub db: Db,
}

impl Reconcile for Housekeeping {
    const NAME: &'static str = "housekeeping";

    async fn reconcile(&self, _key: &str) -> Result<Next, Error> {
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        token::prune(&mut tx).await?;
        agent_token::prune(&mut tx).await?;
        let oldest = tx.now() - KEEP_ANSWERS;
        idempotency::prune(&mut tx, oldest).await?;
        let hour_ago = tx.now() - Duration::from_hours(1);
        placing::forget_preemptions(&mut tx, hour_ago).await?;
        tx.commit().await?;
        Ok(Next::At(self.db.now() + EVERY))
    }
}

/// Has it begin; it keeps itself going.
pub async fn start(db: &Db) -> store::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    work::wake(&mut tx, Lane::Background, Key::new(Housekeeping::NAME, "all"));
    tx.commit().await
}
