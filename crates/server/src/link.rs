//! Link between the control plane and the agent in the same process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent::{Link, LinkError};
use engine::{agent_reports, credentials, secrets};
use model::agent::{Desired, Report};
use model::cluster::Provider;
use port::Encryption;
use store::Db;
use store::deployment::reports::{self, ServedClusters};
use tokio::sync::{Mutex, watch};

/// Link for all clusters of one provider.
pub struct InProcess {
    db: Db,
    provider: Provider,
    /// Retains the last event, so that no change between two fetches is missed.
    signal: Mutex<watch::Receiver<u64>>,
    seal: Arc<dyn Encryption>,
    /// Whether the last response lacks replicas whose secrets could not be decrypted.
    is_incomplete: AtomicBool,
}

/// Pause before another attempt to decrypt.
const DECRYPT_RETRY: Duration = Duration::from_secs(2);

impl InProcess {
    /// Creates a link for the clusters of a provider.
    pub fn new(db: Db, provider: Provider, seal: Arc<dyn Encryption>) -> Self {
        let signal = Mutex::new(db.event_signal());
        Self { db, provider, signal, seal, is_incomplete: AtomicBool::new(false) }
    }

    async fn read(&self, all: bool) -> store::Result<Vec<Desired>> {
        reports::desired(&mut self.db.read().await?, ServedClusters::Provider(self.provider), all)
            .await
    }
}

impl Link for InProcess {
    async fn desired(&self, all: bool) -> Result<Vec<Desired>, LinkError> {
        let desired = self.read(all).await.map_err(|error| LinkError(error.to_string()))?;
        let (mut decrypted, omitted) = secrets::decrypt_all(&*self.seal, desired).await;
        credentials::add_pull_credentials(&self.db, &*self.seal, &mut decrypted)
            .await
            .map_err(|error| LinkError(error.to_string()))?;
        self.is_incomplete.store(omitted > 0, Ordering::Relaxed);
        Ok(decrypted)
    }

    async fn changed(&self) {
        let mut signal = self.signal.lock().await;
        let limit =
            if self.is_incomplete.load(Ordering::Relaxed) { DECRYPT_RETRY } else { Duration::MAX };
        let _ = tokio::time::timeout(limit, signal.changed()).await;
    }

    async fn report(&self, reports: &[Report]) -> Result<(), LinkError> {
        let recorded = agent_reports::record(&self.db, reports).await;
        recorded.map_err(|error| LinkError(error.to_string()))
    }
}
