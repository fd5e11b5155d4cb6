//! Named locks, and a mutex that survives a panic.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A lock per name.
pub type Locks<T> = Mutex<HashMap<String, Arc<tokio::sync::Mutex<T>>>>;

/// Returns the lock of a name. Evicts unused locks when there are many.
pub fn named_lock<T: Default>(locks: &Locks<T>, name: &str) -> Arc<tokio::sync::Mutex<T>> {
    let mut locks = lock(locks);
    if locks.len() > 1024 {
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
    }
    locks.entry(name.to_owned()).or_default().clone()
}

/// Locks a mutex, even if it is poisoned by a panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
