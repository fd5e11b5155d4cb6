//! Placement: follows the event log, decides where replicas run, and persists the decisions.
//!
//! Every server maintains a [`World`](model::world::World) to answer queries; the server that holds
//! the lease acts on it. The lease only saves work: the conditions in the store's statements
//! prevent overcommitment. If the store rejects a decision, its input has changed meanwhile: the
//! decision is dropped and the affected deployments are read again.

mod act;
mod reason;
mod state;
mod view;

use std::sync::Arc;
use std::time::Duration;

use base::Stop;
use model::Time;
use model::event::Actor;
use store::{Db, lease};
use tokio::sync::Mutex;

use state::PlacementState;
pub use view::{DryRun, Owners, PlacementExplanation, PlacementView};

use crate::Error;

const NAME: &str = "placement";
const LEASE_LIFE: Duration = Duration::from_secs(10);
const RENEW: Duration = Duration::from_secs(3);
/// Maximum number of decisions per round.
const STEPS: usize = 500;
/// How long to wait after an error.
const RETRY: Duration = Duration::from_secs(1);

/// Settings of placement.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Settings of the placement algorithm.
    pub world: model::world::Settings,
    /// Maximum number of preemptions per organization and hour; unlimited if not set.
    pub preemptions_per_hour: Option<u32>,
    /// How often the state is reloaded, in case an event was missed.
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

/// The placement loop.
pub struct Placement {
    db: Db,
    state: Arc<Mutex<PlacementState>>,
    /// The name under which this server holds the lease.
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
        let state = Arc::new(Mutex::new(PlacementState::new(db.clone(), settings)));
        Self { db, state, holder, held_until: None, renewed: None, resync, read_at }
    }

    /// The read-only view for the API.
    pub fn view(&self) -> PlacementView {
        PlacementView::new(self.state.clone())
    }

    /// Decides whenever something has changed, until stopped.
    pub async fn run(mut self, mut stop: Stop) {
        let mut signal = self.db.event_signal();
        while !stop.is_set() {
            signal.mark_unchanged();
            let sleep = self.reconcile().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "placement failed, retrying");
                RETRY
            });
            tokio::select! {
                () = stop.signalled() => {}
                changed = signal.changed() => if changed.is_err() { break },
                () = tokio::time::sleep(sleep) => {}
            }
        }
        if let Err(error) = self.release().await {
            tracing::debug!(%error, "releasing the placement lease failed, it will expire");
        }
    }

    /// Applies new events and decides until nothing is left. Returns how long to sleep.
    async fn reconcile(&mut self) -> Result<Duration, Error> {
        let (led, leads) = (self.held_until.is_some(), self.is_leader().await?);
        let is_due = self.db.now().since(self.read_at) >= self.resync;
        if is_due {
            self.read_at = self.db.now();
        }
        // Another server may have decided until now, and counted preemptions.
        self.state.lock().await.is_stale |= is_due || (leads && !led);
        while self.is_leader().await? {
            // Queries get the lock between two rounds.
            if let Some(sleep) = self.state.lock().await.round().await? {
                return Ok(sleep);
            }
        }
        self.state.lock().await.catch_up().await?;
        Ok(RENEW)
    }

    /// Whether this server holds the lease. Reads the database only when a renewal is due.
    async fn is_leader(&mut self) -> Result<bool, Error> {
        let now = self.db.now();
        if self.renewed.is_some_and(|at| now.since(at) < RENEW) {
            return Ok(self.held_until.is_some_and(|until| now < until));
        }
        let mut tx = self.db.begin(Actor::Worker(NAME)).await?;
        let fence = lease::acquire(&mut tx, NAME, &self.holder, LEASE_LIFE).await?;
        tx.commit().await?;
        self.renewed = Some(now);
        self.held_until = fence.map(|_| now + LEASE_LIFE);
        Ok(fence.is_some())
    }

    async fn release(&self) -> store::Result<()> {
        let mut tx = self.db.begin(Actor::Worker(NAME)).await?;
        lease::release(&mut tx, NAME, &self.holder).await?;
        tx.commit().await
    }
}

impl PlacementState {
    /// Applies new events and decides once. Returns how long to sleep if nothing is left to decide.
    async fn round(&mut self) -> Result<Option<Duration>, Error> {
        self.catch_up().await?;
        let now = self.db.now();
        self.count_budgets(now);
        let decisions = self.world.decide(now, STEPS);
        if !decisions.is_empty() || !decisions.pending.is_empty() {
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
