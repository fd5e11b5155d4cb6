//! Named locks, and a mutex that survives a panic.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One lock for each of many names.
pub type Locks<T> = Mutex<HashMap<String, Arc<tokio::sync::Mutex<T>>>>;

/// The lock of one name. Those that nobody holds are forgotten when there are many.
pub fn one_of<T: Default>(locks: &Locks<T>, name: &str) -> Arc<tokio::sync::Mutex<T>> {
    let mut locks = lock(locks);
    if locks.len() > 1024 {
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
    }
    locks.entry(name.to_owned()).or_default().clone()
}

/// What a mutex guards, also after a panic elsewhere.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
