//! Recounts the quota usage of organizations, in case servers of the release before, which do not
//! count, changed rows during an upgrade.

use std::time::Duration;

use model::event::Actor;
use model::work::{Key, Lane, Requeue};
use store::{Db, Page, Scope, organization, organization_quota, work};

use crate::{Error, Reconcile};

/// Interval between two runs; each server start runs it as well.
const EVERY: Duration = Duration::from_hours(24);
/// Number of organizations read at once.
const PAGE: i64 = 500;

/// The worker that recounts quota usage.
pub struct RecountWorker {
    /// The database.
    pub db: Db,
}

impl Reconcile for RecountWorker {
    const NAME: &'static str = "quota";

    async fn reconcile(&self, _key: &str) -> Result<Requeue, Error> {
        let mut page = Page::first(PAGE);
        loop {
            let mut read = self.db.read().await?;
            let found = organization::list(&mut read, Scope::All, &page).await?;
            drop(read);
            let Some(last) = found.last() else { break };
            page.after = Some(last.id.to_string());
            for organization in found {
                let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
                let changed = organization_quota::recount(&mut tx, organization.id).await?;
                tx.commit().await?;
                for (kind, counter, rows) in changed {
                    let organization = organization.id;
                    tracing::warn!(%organization, %kind, counter, rows, "quota usage corrected");
                }
            }
        }
        Ok(Requeue::At(self.db.now() + EVERY))
    }
}

/// Queues the first run; each run schedules the next.
pub async fn start(db: &Db) -> store::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    work::wake(&mut tx, Lane::Background, Key::new(RecountWorker::NAME, "all"));
    tx.commit().await
}
