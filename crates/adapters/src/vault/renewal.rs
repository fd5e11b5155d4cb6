//! Renews Paddock's token at Vault, also while Vault is not used otherwise.

use std::sync::Arc;
use std::time::Duration;

use super::session::Session;

/// The longest interval between checks: clocks may jump.
const MAX_INTERVAL: Duration = Duration::from_mins(10);
/// The shortest interval, whatever Vault says.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// The interval after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// Renews a token before it expires.
pub struct Renewal(pub(super) Arc<Session>);

impl Renewal {
    /// Runs forever.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(self.once().await).await;
        }
    }

    /// Renews the token if needed; returns the time until the next check.
    pub async fn once(&self) -> Duration {
        match self.0.renew().await {
            Ok(wait) => wait.unwrap_or(MAX_INTERVAL).clamp(MIN_INTERVAL, MAX_INTERVAL),
            Err(fault) => {
                tracing::warn!(%fault, "authentication to Vault failed");
                RETRY_INTERVAL
            }
        }
    }
}
