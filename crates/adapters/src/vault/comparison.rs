//! Compares a secret's spec with its content: which values are retained, and which are generated.

use model::Time;
use model::template::configuration::{self, Certificate, Generate};
use port::Task;
use serde_json::Value;

use super::fingerprint::Fingerprints;
use super::kv::Found;
use super::mark::Mark;
use super::place::{self, At};
use super::{ADOPTED, certificate, generate};

/// The state of a part of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Missing,
    Unchanged,
    /// Paddock created it by another rule.
    Outdated,
    /// Others changed it.
    Changed,
    /// Paddock did not create it.
    NotOurs,
    /// A certificate with less than a third of its lifetime left.
    Expiring,
}

/// The spec and the content of a secret.
pub(super) struct Comparison<'a> {
    pub(super) spec: &'a configuration::VaultSecret,
    pub(super) found: &'a Found,
    /// Its mark, if it belongs to this resource.
    pub(super) mark: Option<&'a Mark>,
    pub(super) fingerprints: &'a Fingerprints,
    /// Whether it was just adopted, so that its values are retained.
    is_adopted: bool,
    /// Whether this resource created it, but others deleted its mark.
    is_mark_lost: bool,
    now: Time,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(
        task: &Task,
        spec: &'a configuration::VaultSecret,
        found: &'a Found,
        fingerprints: &'a Fingerprints,
        now: Time,
    ) -> Self {
        let mark = found.mark.as_ref().filter(|mark| mark.is_of(task));
        let is_adopted = task.outputs.contains_key(ADOPTED);
        let is_applied = task.applied.as_ref().and_then(place::desired) == Some(At::of_spec(spec));
        let is_mark_lost = is_applied && found.mark.is_none();
        Self { spec, found, mark, fingerprints, is_adopted, is_mark_lost, now }
    }

    /// The state of a generated value.
    pub(super) fn generated(&self, key: &str, one: &Generate) -> State {
        let Some(value) = self.found.fields.get(key) else { return State::Missing };
        let Some(made) = self.mark.and_then(|mark| mark.made.get(key)) else {
            // The fingerprint is lost, too: a value that fits the rule is retained, because it may
            // be in use.
            let is_odd = self.is_mark_lost && !self.is_adopted && !generate::fits(one, value);
            return if is_odd { State::Changed } else { State::NotOurs };
        };
        let is_unchanged = if self.can_compare() {
            made.print == self.fingerprints.compute(key, value)
        } else {
            self.is_adopted || generate::fits(one, value)
        };
        if made.spec != generate::spec_hash(one) {
            State::Outdated
        } else if is_unchanged {
            State::Unchanged
        } else {
            State::Changed
        }
    }

    /// The state of the certificate.
    pub(super) fn certificate(&self, one: &Certificate) -> State {
        let fields = certificate::fields_of(&self.found.fields);
        let Some(issued) = self.mark.and_then(|mark| mark.certificate.as_ref()) else {
            return if fields.is_empty() { State::Missing } else { State::NotOurs };
        };
        let serial = fields.get(certificate::SERIAL).and_then(Value::as_str);
        if fields.len() < certificate::FIELDS.len() {
            State::Missing
        } else if issued.spec != certificate::spec_hash(one) {
            State::Outdated
        } else if serial != Some(&issued.serial)
            || self.can_compare()
                && issued.print != self.fingerprints.compute(certificate::NAME, &fields.into())
        {
            State::Changed
        } else if issued.renew_at() <= self.now {
            State::Expiring
        } else {
            State::Unchanged
        }
    }

    /// Existing keys that are not in the spec.
    pub(super) fn unexpected(&self) -> Vec<String> {
        let is_specified = |key: &str| {
            self.spec.values.contains_key(key)
                || self.spec.generate.contains_key(key)
                || self.spec.certificate.is_some() && certificate::FIELDS.contains(&key)
        };
        self.found.fields.keys().filter(|key| !is_specified(key)).cloned().collect()
    }

    /// Existing keys that Paddock created and that are no longer in the spec.
    pub(super) fn obsolete(&self) -> Vec<String> {
        let Some(mark) = self.mark else { return Vec::new() };
        let is_ours = |key: &String| {
            mark.made.contains_key(key)
                || mark.values.contains(key)
                || mark.certificate.is_some() && certificate::FIELDS.contains(&key.as_str())
        };
        self.unexpected().into_iter().filter(is_ours).collect()
    }

    /// Whether fingerprints can be compared. Their key is lost when a server crashes before Paddock
    /// persists it: then values that fit are retained, and get a new fingerprint.
    fn can_compare(&self) -> bool {
        self.mark.is_some_and(|mark| mark.prints_by == self.fingerprints.id)
    }
}
