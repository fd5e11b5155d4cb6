//! A cache of an issuer's keys.
//!
//! One caller at a time fetches keys. How often depends on the clock alone, never on the number of
//! tokens, valid or not.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use base::Instant;
use port::Fault;
use tokio::sync::Mutex;

use super::Denied;
use super::key::Keys;
use super::provider::Provider;

/// After how long keys are refreshed: a withdrawn key must not stay valid.
const MAX_AGE: Duration = Duration::from_hours(1);

/// The minimum interval between fetches for an unknown key or from an unreachable issuer.
const MIN_INTERVAL: Duration = Duration::from_mins(1);

/// The same while there are no keys at all, and so no login works.
const MIN_INTERVAL_WITHOUT_KEYS: Duration = Duration::from_secs(5);

/// An issuer's keys.
pub(super) struct Lookup {
    provider: Provider,
    loaded: RwLock<Option<Loaded>>,
    fetching: Mutex<History>,
}

#[derive(Clone)]
struct Loaded {
    keys: Arc<Keys>,
    at: Instant,
}

/// The results of earlier fetches.
#[derive(Default)]
struct History {
    /// The last fault and its time; cleared by a success.
    failed: Option<(Fault, Instant)>,
    /// When keys were last fetched for an unknown key.
    unknown_at: Option<Instant>,
}

impl Lookup {
    pub(super) fn new(provider: Provider) -> Self {
        Self { provider, loaded: RwLock::default(), fetching: Mutex::default() }
    }

    /// The keys; refreshed, as far as permitted, if `has` does not find its key in them.
    pub(super) async fn keys(&self, has: impl Fn(&Keys) -> bool) -> Result<Arc<Keys>, Denied> {
        match self.loaded() {
            Some(loaded) if has(&loaded.keys) && loaded.is_fresh() => Ok(loaded.keys),
            // Old keys are good enough while another caller fetches new ones.
            Some(loaded) if has(&loaded.keys) => {
                if let Ok(mut history) = self.fetching.try_lock() {
                    return Ok(self.refresh(&mut history, loaded).await);
                }
                Ok(loaded.keys)
            }
            _ => self.fetch_missing(has).await,
        }
    }

    fn loaded(&self) -> Option<Loaded> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn refresh(&self, history: &mut History, old: Loaded) -> Arc<Keys> {
        if history.failed.as_ref().is_some_and(|(_, at)| at.elapsed() < MIN_INTERVAL) {
            return old.keys;
        }
        match self.fetch(history).await {
            Ok(keys) => keys,
            Err(fault) => {
                tracing::warn!(%fault, "refreshing an issuer's keys failed");
                old.keys
            }
        }
    }

    /// Fetches keys for an unknown key, unless that happened recently.
    async fn fetch_missing(&self, has: impl Fn(&Keys) -> bool) -> Result<Arc<Keys>, Denied> {
        let mut history = self.fetching.lock().await;
        let loaded = self.loaded();
        // Another caller may have fetched them meanwhile.
        if let Some(loaded) = loaded.as_ref().filter(|loaded| has(&loaded.keys)) {
            return Ok(loaded.keys.clone());
        }
        let interval = if loaded.is_some() { MIN_INTERVAL } else { MIN_INTERVAL_WITHOUT_KEYS };
        if let Some((fault, at)) = &history.failed
            && at.elapsed() < interval
        {
            return Err(Denied::Unavailable(fault.to_string()));
        }
        if let Some(loaded) = loaded {
            if history.unknown_at.is_some_and(|at| at.elapsed() < MIN_INTERVAL) {
                return Ok(loaded.keys);
            }
            history.unknown_at = Some(base::monotonic());
        }
        self.fetch(&mut history).await.map_err(|fault| Denied::Unavailable(fault.to_string()))
    }

    async fn fetch(&self, history: &mut History) -> Result<Arc<Keys>, Fault> {
        // A cancelled fetch counts as a failure.
        let cancelled = Fault::Unavailable("the issuer's keys are still being fetched".into());
        history.failed = Some((cancelled, base::monotonic()));
        match self.provider.keys().await {
            Ok(keys) => {
                let keys = Arc::new(keys);
                let loaded = Loaded { keys: keys.clone(), at: base::monotonic() };
                *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = Some(loaded);
                history.failed = None;
                Ok(keys)
            }
            Err(fault) => {
                history.failed = Some((fault.clone(), base::monotonic()));
                Err(fault)
            }
        }
    }
}

impl Loaded {
    fn is_fresh(&self) -> bool {
        self.at.elapsed() < MAX_AGE
    }
}
