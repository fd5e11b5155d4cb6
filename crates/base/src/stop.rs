//! The shutdown signal: one [`Stopper`], any number of [`Stop`]s.

use tokio::sync::watch;

/// The sending end of the shutdown signal.
pub struct Stopper(watch::Sender<bool>);

/// The receiving end. A dropped [`Stopper`] counts as a shutdown.
#[derive(Clone)]
pub struct Stop(watch::Receiver<bool>);

/// Creates both ends.
pub fn channel() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Signals the shutdown to every receiver.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Whether the shutdown was signalled.
    pub fn is_set(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Returns once the shutdown is signalled.
    pub async fn signalled(&mut self) {
        let _ = self.0.wait_for(|is_set| *is_set).await;
    }
}
