//! Locations where an executor may have created something for a resource: recorded before the first
//! write there, and persisted by Paddock with the next `persist`.
//!
//! A location that could not even be read is not recorded: nothing of the resource can be there,
//! and every later step would fail at it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use model::Secret;
use model::operation::Subject;
use port::Task;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The name under which the locations of a resource are persisted.
const PERSISTED_AS: &str = "places";

/// Locations that are not persisted yet.
pub(crate) struct Pending<P>(Mutex<HashMap<Subject, BTreeSet<P>>>);

impl<P> Default for Pending<P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<P: Ord + Clone + Serialize + DeserializeOwned> Pending<P> {
    /// Records that something may be created there from now on.
    pub(crate) fn add(&self, task: &Task, place: P) {
        if persisted::<P>(task).contains(&place) {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(task.id).or_default().insert(place);
    }

    /// The entry to persist, unless all locations are persisted.
    pub(crate) fn to_persist(&self, task: &Task) -> Option<(String, Secret)> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (persisted, pending) = (persisted::<P>(task), all.get(&task.id)?);
        if pending.is_subset(&persisted) {
            all.remove(&task.id);
            return None;
        }
        let both: BTreeSet<&P> = persisted.iter().chain(pending).collect();
        let text = serde_json::to_string(&both).expect("texts can be written as JSON");
        Some((PERSISTED_AS.to_owned(), Secret::new(text)))
    }
}

/// The persisted locations of a resource.
pub(crate) fn persisted<P: Ord + DeserializeOwned>(task: &Task) -> BTreeSet<P> {
    let text = task.persisted.get(PERSISTED_AS);
    text.and_then(|text| serde_json::from_str(text.reveal()).ok()).unwrap_or_default()
}
