//! Telling everything that runs that it shall come to its end.

use tokio::sync::watch;

/// The one who tells.
pub struct Stopper(watch::Sender<bool>);

/// One of those who are told. If nobody is left to tell, that counts as being told.
#[derive(Clone)]
pub struct Stop(watch::Receiver<bool>);

/// Both ends.
pub fn channel() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Tells everybody.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Were we told?
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when we are told.
    pub async fn told(&mut self) {
        let _ = self.0.wait_for(|told| *told).await;
    }
}
