//! Where executors may have made something for a resource: noted before the first write there, and
//! told to Paddock with the next `keep`.
//!
//! A place that could not even be looked at is not noted: nothing of ours can be there, and every later
//! step would fail at it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use model::Secret;
use model::operation::Subject;
use port::Task;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Under which name the places of a resource are kept.
const KEPT: &str = "places";

/// Places that Paddock does not keep yet.
pub(crate) struct Noted<P>(Mutex<HashMap<Subject, BTreeSet<P>>>);

impl<P> Default for Noted<P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<P: Ord + Clone + Serialize + DeserializeOwned> Noted<P> {
    /// Something may be made there from now on.
    pub(crate) fn add(&self, task: &Task, place: P) {
        if kept::<P>(task).contains(&place) {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(task.id).or_default().insert(place);
    }

    /// What shall be kept by now under which name, if that is not so.
    pub(crate) fn to_keep(&self, task: &Task) -> Option<(String, Secret)> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, noted) = (kept::<P>(task), all.get(&task.id)?);
        if noted.is_subset(&kept) {
            all.remove(&task.id);
            return None;
        }
        let both: BTreeSet<&P> = kept.iter().chain(noted).collect();
        let text = serde_json::to_string(&both).expect("texts can be written as JSON");
        Some((KEPT.to_owned(), Secret::new(text)))
    }
}

/// The places of a resource that Paddock keeps.
pub(crate) fn kept<P: Ord + DeserializeOwned>(task: &Task) -> BTreeSet<P> {
    let kept = task.kept.get(KEPT);
    kept.and_then(|text| serde_json::from_str(text.reveal()).ok()).unwrap_or_default()
}
