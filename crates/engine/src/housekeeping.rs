//! Deletes expired tokens, stored idempotent responses, and old preemption records.

use std::time::Duration;

use model::event::Actor;
use model::work::{Key, Lane, Requeue};
use store::deployment::placement;
use store::{Db, agent_token, idempotency, password_reset, token, work};

use crate::{Error, Reconcile};

/// Interval between two runs.
const EVERY: Duration = Duration::from_hours(1);
/// How long the response of a create request is stored for repeated requests.
pub const RESPONSE_RETENTION: Duration = Duration::from_hours(24);

/// The housekeeping worker.
pub struct Housekeeping {
    /// The database.
    pub db: Db,
}

impl Reconcile for Housekeeping {
    const NAME: &'static str = "housekeeping";

    async fn reconcile(&self, _key: &str) -> Result<Requeue, Error> {
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        token::prune(&mut tx).await?;
        agent_token::prune(&mut tx).await?;
        password_reset::prune(&mut tx).await?;
        let oldest = tx.now() - RESPONSE_RETENTION;
        idempotency::prune(&mut tx, oldest).await?;
        let hour_ago = tx.now() - Duration::from_hours(1);
        placement::delete_preemptions(&mut tx, hour_ago).await?;
        tx.commit().await?;
        Ok(Requeue::At(self.db.now() + EVERY))
    }
}

/// Queues the first run; each run schedules the next.
pub async fn start(db: &Db) -> store::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    work::wake(&mut tx, Lane::Background, Key::new(Housekeeping::NAME, "all"));
    tx.commit().await
}
