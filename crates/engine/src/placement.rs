//! Placement: follows the log of events, decides, and makes durable what was decided.
//!
//! Every server keeps the [`World`](model::world::World) that way, to answer questions; the one that holds the lease acts
//! on it. That is for economy: what keeps capacity from being given out twice is the condition in
//! the store's statements. A decision that the store refuses was made from something that has
//! changed meanwhile, so it is forgotten and what it was about is looked at again.

mod act;
mod known;
mod outlook;
mod reason;

use std::sync::Arc;
use std::time::Duration;

use base::Stop;
use model::Time;
use model::event::Actor;
use store::{Db, lease};
use tokio::sync::Mutex;

use known::Known;
pub use outlook::{Explained, Foreseen, Outlook, Owners};

use crate::Error;

const NAME: &str = "placement";
const LEASE_LIFE: Duration = Duration::from_secs(10);
const RENEW: Duration = Duration::from_secs(3);
/// How long one round of deciding may take, in steps.
const STEPS: usize = 500;
/// How long to wait after an error.
const RETRY: Duration = Duration::from_secs(1);

/// What can be set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How the world decides.
    pub world: model::world::Settings,
    /// How many replicas an organization may have yield in an hour; no limit when there is none.
    pub preemptions_per_hour: Option<u32>,
    /// How often everything is read anew, should something have been missed.
    pub resync: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            world: model::world::Settings::default(),
            preemptions_per_hour: Some(1000),
            resync: Duration::from_mins(10),
        }
    }
}

/// Decides what runs where.
pub struct Placement {
    db: Db,
    known: Arc<Mutex<Known>>,
    /// Who we are among those who could do it.
    holder: String,
    held_until: Option<Time>,
    renewed: Option<Time>,
    resync: Duration,
    read_at: Time,
}

impl Placement {
    /// `holder` names this server among those that share the database.
    pub fn new(db: Db, settings: Settings, holder: String) -> Self {
        let (resync, read_at) = (settings.resync, db.now());
        let known = Arc::new(Mutex::new(Known::new(db.clone(), settings)));
        Self { db, known, holder, held_until: None, renewed: None, resync, read_at }
    }

    /// What the API asks.
    pub fn outlook(&self) -> Outlook {
        Outlook::new(self.known.clone())
    }

    /// Decides whenever something has changed, until told to stop.
    pub async fn run(mut self, mut stop: Stop) {
        let mut signal = self.db.event_signal();
        while !stop.is_set() {
            signal.mark_unchanged();
            let sleep = self.turn().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "placement could not go on, trying again");
                RETRY
            });
            tokio::select! {
                () = stop.told() => {}
                changed = signal.changed() => if changed.is_err() { break },
                () = tokio::time::sleep(sleep) => {}
            }
        }
        if let Err(error) = self.give_back().await {
            tracing::debug!(%error, "the lease of placement runs out by itself");
        }
    }

    /// Learns what is new and decides until there is nothing left to decide; how long to sleep if
    /// nothing happens.
    async fn turn(&mut self) -> Result<Duration, Error> {
        let (led, leads) = (self.held_until.is_some(), self.lead().await?);
        let is_due = self.db.now().since(self.read_at) >= self.resync;
        if is_due {
            self.read_at = self.db.now();
        }
        // Another one may have decided until now, and counted who yielded to whom.
        self.known.lock().await.is_stale |= is_due || (leads && !led);
        while self.lead().await? {
            // Between two rounds others can ask.
            if let Some(sleep) = self.known.lock().await.round().await? {
                return Ok(sleep);
            }
        }
        self.known.lock().await.catch_up().await?;
        Ok(RENEW)
    }

    /// Is it ours to decide? Asks the database only now and then.
    async fn lead(&mut self) -> Result<bool, Error> {
        let now = self.db.now();
        if self.renewed.is_some_and(|at| now.since(at) < RENEW) {
            return Ok(self.held_until.is_some_and(|until| now < until));
        }
        let mut tx = self.db.begin(Actor::Worker(NAME)).await?;
        let fence = lease::take(&mut tx, NAME, &self.holder, LEASE_LIFE).await?;
        tx.commit().await?;
        self.renewed = Some(now);
        self.held_until = fence.map(|_| now + LEASE_LIFE);
        Ok(fence.is_some())
    }

    async fn give_back(&self) -> store::Result<()> {
        let mut tx = self.db.begin(Actor::Worker(NAME)).await?;
        lease::give_back(&mut tx, NAME, &self.holder).await?;
        tx.commit().await
    }
}

impl Known {
    /// Learns what is new and decides once; how long to sleep if there is nothing left to decide.
    async fn round(&mut self) -> Result<Option<Duration>, Error> {
        self.catch_up().await?;
        let now = self.db.now();
        self.count_budgets(now);
        let decisions = self.world.decide(now, STEPS);
        if !decisions.is_empty() || !decisions.waits.is_empty() {
            self.act(decisions).await?;
            return Ok(None);
        }
        if !decisions.is_complete {
            return Ok(None);
        }
        let due = self.world.next_due().map_or(RENEW, |due| due.since(now));
        Ok(Some(due.clamp(Duration::from_millis(1), RENEW)))
    }
}
