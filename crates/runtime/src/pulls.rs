//! Slots for image pulls: each owner has its own, so that a slow registry delays only its users.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use base::locks::lock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of concurrent pulls and loads of one owner.
const MAX_OF_OWNER: usize = 4;
/// Maximum number of concurrent pulls and loads of all owners: bounds memory and processes.
const MAX_OF_ALL: usize = 64;

/// Slots of all owners.
pub(crate) struct PullSlots {
    owners: Mutex<HashMap<String, Arc<Semaphore>>>,
    all: Arc<Semaphore>,
}

/// A slot, until it is dropped.
pub(crate) struct PullSlot {
    _permits: [OwnedSemaphorePermit; 2],
}

impl Default for PullSlots {
    fn default() -> Self {
        Self { owners: Mutex::default(), all: Arc::new(Semaphore::new(MAX_OF_ALL)) }
    }
}

impl PullSlots {
    /// Waits for a slot of an owner.
    pub(crate) async fn acquire(&self, owner: Option<&str>) -> PullSlot {
        let owner = self.of(owner.unwrap_or_default());
        // The owner's first: an owner without a free slot must not take one of the others.
        let own = acquire(owner).await;
        PullSlot { _permits: [own, acquire(self.all.clone()).await] }
    }

    fn of(&self, owner: &str) -> Arc<Semaphore> {
        let mut owners = lock(&self.owners);
        if owners.len() > 1024 {
            owners.retain(|_, slots| Arc::strong_count(slots) > 1);
        }
        let slots = owners.entry(owner.to_owned());
        slots.or_insert_with(|| Arc::new(Semaphore::new(MAX_OF_OWNER))).clone()
    }
}

async fn acquire(slots: Arc<Semaphore>) -> OwnedSemaphorePermit {
    slots.acquire_owned().await.expect("the semaphore is never closed")
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn owner_without_a_free_slot_does_not_delay_others() {
        let slots = PullSlots::default();
        let mut held = Vec::new();
        for _ in 0..MAX_OF_OWNER {
            held.push(slots.acquire(Some("a")).await);
        }
        assert!(slots.acquire(Some("a")).now_or_never().is_none());
        assert!(slots.acquire(Some("b")).now_or_never().is_some());
        assert!(slots.acquire(None).now_or_never().is_some());
        held.pop();
        assert!(slots.acquire(Some("a")).now_or_never().is_some());
    }
}
