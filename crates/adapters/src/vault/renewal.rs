//! Keeps Paddock's token at Vault good also while nothing else is asked of Vault.

use std::sync::Arc;
use std::time::Duration;

use super::session::Session;

/// The longest time for which a token is not thought of: clocks may jump.
const LONGEST: Duration = Duration::from_mins(10);
/// The shortest, whatever Vault says of it.
const SHORTEST: Duration = Duration::from_secs(1);
/// How soon to try again to sign in.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// Renews a token in time.
pub struct Renewal(pub(super) Arc<Session>);

impl Renewal {
    /// Does it again and again.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(self.once().await).await;
        }
    }

    /// Does what has to be done now; how long nothing has to be.
    pub async fn once(&self) -> Duration {
        match self.0.keep_signed_in().await {
            Ok(wait) => wait.unwrap_or(LONGEST).clamp(SHORTEST, LONGEST),
            Err(fault) => {
                tracing::warn!(%fault, "Paddock is not signed in at Vault");
                TRY_AGAIN
            }
        }
    }
}
