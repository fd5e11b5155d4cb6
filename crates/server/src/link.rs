//! The link between the control plane and the agent inside the same process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent::{Link, LinkError};
use engine::{agent_reports, sealed};
use model::agent::{Desired, Report};
use model::cluster::Provider;
use port::Seal;
use store::Db;
use store::deployment::reporting::{self, Served};
use tokio::sync::{Mutex, watch};

/// Serves all clusters of one provider.
pub struct InProcess {
    db: Db,
    provider: Provider,
    /// Remembers what was seen, so that a change between two looks is not missed.
    signal: Mutex<watch::Receiver<u64>>,
    seal: Arc<dyn Seal>,
    /// Was something left out of the last answer because it could not be opened?
    is_short: AtomicBool,
}

/// How soon to look again for what could not be opened.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

impl InProcess {
    /// A link for the clusters of that provider.
    pub fn new(db: Db, provider: Provider, seal: Arc<dyn Seal>) -> Self {
        let signal = Mutex::new(db.event_signal());
        Self { db, provider, signal, seal, is_short: AtomicBool::new(false) }
    }

    async fn read(&self, all: bool) -> store::Result<Vec<Desired>> {
        reporting::desired(&mut self.db.read().await?, Served::Provider(self.provider), all).await
    }
}

impl Link for InProcess {
    async fn desired(&self, all: bool) -> Result<Vec<Desired>, LinkError> {
        let desired = self.read(all).await.map_err(|error| LinkError(error.to_string()))?;
        let (opened, left_out) = sealed::open_all(&*self.seal, desired).await;
        self.is_short.store(left_out > 0, Ordering::Relaxed);
        Ok(opened)
    }

    async fn changed(&self) {
        let mut signal = self.signal.lock().await;
        let limit = if self.is_short.load(Ordering::Relaxed) { LOOK_AGAIN } else { Duration::MAX };
        let _ = tokio::time::timeout(limit, signal.changed()).await;
    }

    async fn report(&self, reports: &[Report]) -> Result<(), LinkError> {
        let taken = agent_reports::record(&self.db, reports).await;
        taken.map_err(|error| LinkError(error.to_string()))
    }
}
