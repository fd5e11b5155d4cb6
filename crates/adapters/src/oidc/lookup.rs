//! The keys of an issuer, as they were last published.
//!
//! One caller at a time asks the issuer. How often depends on the clock alone, never on how many
//! tokens come, good or bad.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use base::Instant;
use port::Fault;
use tokio::sync::Mutex;

use super::Denied;
use super::key::Keys;
use super::provider::Provider;

/// After how long the keys are asked for again: what was withdrawn must not be good for ever.
const FRESH: Duration = Duration::from_hours(1);

/// How often at most a key that is not known, or an issuer that does not answer, is asked for.
const PAUSE: Duration = Duration::from_mins(1);

/// The same while there are no keys at all, and so nobody can sign in.
const PAUSE_WITHOUT_KEYS: Duration = Duration::from_secs(5);

/// An issuer's keys.
pub(super) struct Lookup {
    provider: Provider,
    loaded: RwLock<Option<Loaded>>,
    asking: Mutex<Asked>,
}

#[derive(Clone)]
struct Loaded {
    keys: Arc<Keys>,
    at: Instant,
}

/// What came of asking before.
#[derive(Default)]
struct Asked {
    /// The last fault, and when; cleared by the next answer.
    failed: Option<(Fault, Instant)>,
    /// When a key was asked for that was not known.
    unknown_at: Option<Instant>,
}

impl Lookup {
    pub(super) fn new(provider: Provider) -> Self {
        Self { provider, loaded: RwLock::default(), asking: Mutex::default() }
    }

    /// The keys; the newest that may be had if `has` does not find in them what it needs.
    pub(super) async fn keys(&self, has: impl Fn(&Keys) -> bool) -> Result<Arc<Keys>, Denied> {
        match self.loaded() {
            Some(loaded) if has(&loaded.keys) && loaded.is_fresh() => Ok(loaded.keys),
            // Old keys are good enough while somebody is asking for new ones.
            Some(loaded) if has(&loaded.keys) => {
                if let Ok(mut asked) = self.asking.try_lock() {
                    return Ok(self.refreshed(&mut asked, loaded).await);
                }
                Ok(loaded.keys)
            }
            _ => self.asked(has).await,
        }
    }

    fn loaded(&self) -> Option<Loaded> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn refreshed(&self, asked: &mut Asked, old: Loaded) -> Arc<Keys> {
        if asked.failed.as_ref().is_some_and(|(_, at)| at.elapsed() < PAUSE) {
            return old.keys;
        }
        match self.ask(asked).await {
            Ok(keys) => keys,
            Err(fault) => {
                tracing::warn!("the keys of an issuer could not be renewed: {fault}");
                old.keys
            }
        }
    }

    /// Asks for a key that is not known, unless that was done just now.
    async fn asked(&self, has: impl Fn(&Keys) -> bool) -> Result<Arc<Keys>, Denied> {
        let mut asked = self.asking.lock().await;
        let loaded = self.loaded();
        // Somebody may have asked while this waited for its turn.
        if let Some(loaded) = loaded.as_ref().filter(|loaded| has(&loaded.keys)) {
            return Ok(loaded.keys.clone());
        }
        let pause = if loaded.is_some() { PAUSE } else { PAUSE_WITHOUT_KEYS };
        if let Some((fault, at)) = &asked.failed
            && at.elapsed() < pause
        {
            return Err(Denied::Unavailable(fault.to_string()));
        }
        if let Some(loaded) = loaded {
            if asked.unknown_at.is_some_and(|at| at.elapsed() < PAUSE) {
                return Ok(loaded.keys);
            }
            asked.unknown_at = Some(base::monotonic());
        }
        self.ask(&mut asked).await.map_err(|fault| Denied::Unavailable(fault.to_string()))
    }

    async fn ask(&self, asked: &mut Asked) -> Result<Arc<Keys>, Fault> {
        // Should this be dropped while it waits, it counts as a try.
        let dropped = Fault::Unavailable("an issuer is slow to tell its keys".into());
        asked.failed = Some((dropped, base::monotonic()));
        match self.provider.keys().await {
            Ok(keys) => {
                let keys = Arc::new(keys);
                let loaded = Loaded { keys: keys.clone(), at: base::monotonic() };
                *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = Some(loaded);
                asked.failed = None;
                Ok(keys)
            }
            Err(fault) => {
                asked.failed = Some((fault.clone(), base::monotonic()));
                Err(fault)
            }
        }
    }
}

impl Loaded {
    fn is_fresh(&self) -> bool {
        self.at.elapsed() < FRESH
    }
}
