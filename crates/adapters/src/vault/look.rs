//! What was told, beside what is found: which values stay, and which are made.

use model::Time;
use model::template::with::{self, Certificate, Generate};
use port::Task;
use serde_json::Value;

use super::kv::Found;
use super::mark::Mark;
use super::place::{self, At};
use super::prints::Prints;
use super::{ADOPTED, certificate, generate};

/// How a part of a secret is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Missing,
    AsMade,
    /// Paddock has made it, in another way.
    Outdated,
    /// It was changed by somebody else.
    Another,
    /// Paddock has not made it.
    Foreign,
    /// A certificate of which less than a third of its life is left.
    Ending,
}

/// What is there for a resource.
pub(super) struct Look<'a> {
    pub(super) told: &'a with::VaultSecret,
    pub(super) found: &'a Found,
    /// Its mark, if it is this resource's.
    pub(super) mark: Option<&'a Mark>,
    pub(super) prints: &'a Prints,
    /// Was it just taken over, so that its values stay whatever they are?
    is_adopted: bool,
    /// Was it made here, and somebody has taken its mark away?
    is_mark_lost: bool,
    now: Time,
}

impl<'a> Look<'a> {
    pub(super) fn new(
        task: &Task,
        told: &'a with::VaultSecret,
        found: &'a Found,
        prints: &'a Prints,
        now: Time,
    ) -> Self {
        let mark = found.mark.as_ref().filter(|mark| mark.is_of(task));
        let is_adopted = task.outputs.contains_key(ADOPTED);
        let was_made = task.applied.as_ref().and_then(place::told) == Some(At::of(told));
        let is_mark_lost = was_made && found.mark.is_none();
        Self { told, found, mark, prints, is_adopted, is_mark_lost, now }
    }

    /// How a value is found that is to be generated.
    pub(super) fn generated(&self, key: &str, one: &Generate) -> State {
        let Some(value) = self.found.fields.get(key) else { return State::Missing };
        let Some(made) = self.mark.and_then(|mark| mark.made.get(key)) else {
            // Its print is lost, too: what looks right is believed, as others use it.
            let is_odd = self.is_mark_lost && !self.is_adopted && !generate::fits(one, value);
            return if is_odd { State::Another } else { State::Foreign };
        };
        let is_made = if self.can_compare() {
            made.print == self.prints.of(key, value)
        } else {
            self.is_adopted || generate::fits(one, value)
        };
        if made.spec != generate::spec(one) {
            State::Outdated
        } else if is_made {
            State::AsMade
        } else {
            State::Another
        }
    }

    /// How a certificate is found.
    pub(super) fn certificate(&self, one: &Certificate) -> State {
        let fields = certificate::of(&self.found.fields);
        let Some(issued) = self.mark.and_then(|mark| mark.certificate.as_ref()) else {
            return if fields.is_empty() { State::Missing } else { State::Foreign };
        };
        let serial = fields.get(certificate::SERIAL).and_then(Value::as_str);
        if fields.len() < certificate::FIELDS.len() {
            State::Missing
        } else if issued.spec != certificate::spec(one) {
            State::Outdated
        } else if serial != Some(&issued.serial)
            || self.can_compare()
                && issued.print != self.prints.of(certificate::NAME, &fields.into())
        {
            State::Another
        } else if issued.renew_at() <= self.now {
            State::Ending
        } else {
            State::AsMade
        }
    }

    /// Names that are there and neither told nor made.
    pub(super) fn unexpected(&self) -> Vec<String> {
        let is_told = |key: &str| {
            self.told.values.contains_key(key)
                || self.told.generate.contains_key(key)
                || self.told.certificate.is_some() && certificate::FIELDS.contains(&key)
        };
        self.found.fields.keys().filter(|key| !is_told(key)).cloned().collect()
    }

    /// Names that are there, are not told any more, and were told or made by Paddock.
    pub(super) fn left_over(&self) -> Vec<String> {
        let Some(mark) = self.mark else { return Vec::new() };
        let is_ours = |key: &String| {
            mark.made.contains_key(key)
                || mark.values.contains(key)
                || mark.certificate.is_some() && certificate::FIELDS.contains(&key.as_str())
        };
        self.unexpected().into_iter().filter(is_ours).collect()
    }

    /// The key of prints is lost when a server dies before Paddock keeps it: then what is there is
    /// believed if it looks right, and gets a new print.
    fn can_compare(&self) -> bool {
        self.mark.is_some_and(|mark| mark.prints_by == self.prints.id)
    }
}
