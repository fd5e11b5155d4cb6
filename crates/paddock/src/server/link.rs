//! The link between the control plane and the agent inside the same process.

use agent::{Link, LinkError};
use engine::local_agent;
use model::agent::{Desired, Report};
use model::cluster::Provider;
use store::Db;
use tokio::sync::{Mutex, watch};

/// Speaks for all clusters of one provider.
pub(super) struct InProcess {
    db: Db,
    provider: Provider,
    /// Remembers what was seen, so that a change between two looks is not missed.
    signal: Mutex<watch::Receiver<u64>>,
}

impl InProcess {
    pub(super) fn new(db: Db, provider: Provider) -> Self {
        let signal = Mutex::new(db.event_signal());
        Self { db, provider, signal }
    }
}

impl Link for InProcess {
    async fn desired(&self, all: bool) -> Result<Vec<Desired>, LinkError> {
        let desired = local_agent::desired(&self.db, self.provider, all).await;
        desired.map_err(|error| LinkError(error.to_string()))
    }

    async fn changed(&self) {
        let _ = self.signal.lock().await.changed().await;
    }

    async fn report(&self, reports: &[Report]) -> Result<(), LinkError> {
        let taken = local_agent::report(&self.db, reports).await;
        taken.map_err(|error| LinkError(error.to_string()))
    }
}
