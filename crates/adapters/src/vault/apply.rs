//! Brings a secret to what it should be.
//!
//! Look, take the place, issue, note what is made, write it, revoke what it replaces. A server can die
//! after any of these: the next finds the mark, keeps what is there, and makes what is missing.

use port::{Fault, Outcome, Task};
use serde_json::{Map, Value};

use super::kv::{Found, Place};
use super::look::{Look, State};
use super::mark::{Issued, Made, Mark};
use super::place::{self, At};
use super::{ADOPTED, Secrets, certificate, generate, outputs, told};

/// What a secret becomes.
struct Next {
    fields: Map<String, Value>,
    mark: Mark,
    /// What is done, in sentences.
    words: Vec<String>,
}

impl Secrets {
    pub(super) async fn bring(&self, task: &Task) -> Result<Outcome, Fault> {
        let told = told(&task.with)?;
        let at = At::of(&told);
        self.clear_all_but(task, &at).await?;
        let (kv, prints, now) = (self.kv(&at).await?, self.prints(task), (self.now)());
        let there = kv.read().await?;
        self.noted.add(task, at);
        self.may_change(task, &kv.place, there.as_ref())?;
        let there = match there {
            None => kv.claim(&Mark::new(task, &prints)).await?,
            there => there,
        };
        let found = there.unwrap_or_default();
        let look = Look::new(task, &told, &found, &prints, now);
        let issued = match &told.certificate {
            Some(one) if look.certificate(one) != State::AsMade => {
                Some(certificate::issue(&self.session, one, &prints, now).await?)
            }
            _ => None,
        };
        let next = self.next(task, &look, issued);
        let found = kv.write(&found, &next.fields, &next.mark).await?;
        next.words.iter().for_each(|words| task.log.say(words));
        if !next.mark.former.is_empty() {
            certificate::revoke(&self.session, &next.mark.former, &task.log).await?;
            let mark = Mark { former: Vec::new(), ..next.mark.clone() };
            kv.write(&found, &next.fields, &mark).await?;
        }
        let told_keys = told.generate.keys().chain(told.values.keys());
        let mut keys: Vec<&str> = told_keys.map(String::as_str).collect();
        if told.certificate.is_some() {
            keys.extend(certificate::FIELDS);
        }
        Ok(outputs::of(&kv.place, keys.into_iter(), Some(&next.mark)))
    }

    /// Is it this resource's to change?
    pub(super) fn may_change(
        &self,
        task: &Task,
        place: &Place,
        found: Option<&Found>,
    ) -> Result<(), Fault> {
        let Some(found) = found else { return Ok(()) };
        let (at, name) = (place.reference(), self.session.peer().name());
        let why = match &found.mark {
            Some(mark) if !mark.is_of(task) => format!(
                "{at} in {name} belongs to the resource {} of the environment {}: choose another path",
                mark.owner, mark.environment
            ),
            Some(mark) if mark.fence > task.fence => {
                format!("another server of Paddock has taken over {at} in {name}")
            }
            // Who has made it here puts a mark back that somebody has taken away.
            None if task.applied.as_ref().and_then(place::told) == Some(at_of(place)) => {
                return Ok(());
            }
            None if task.outputs.get(ADOPTED) != Some(&place.reference().into()) => format!(
                "{at} exists in {name} and was not made by Paddock: choose another path, remove it, \
                 or take it over by adopting {}",
                place.path
            ),
            _ => return Ok(()),
        };
        Err(Fault::Refused(why))
    }

    /// What it becomes: what stays, what was told, what is made.
    fn next(
        &self,
        task: &Task,
        look: &Look<'_>,
        issued: Option<(Issued, Map<String, Value>)>,
    ) -> Next {
        let mut mark = Mark::new(task, look.prints);
        let (mut fields, mut words) = (look.found.fields.clone(), Vec::new());
        for key in look.left_over() {
            fields.remove(&key);
            words.push(format!("{key} is removed."));
        }
        for (key, value) in &look.told.values {
            fields.insert(key.clone(), value.clone().into());
            mark.values.insert(key.clone());
        }
        for (key, one) in &look.told.generate {
            let state = look.generated(key, one);
            if !is_kept(state, look) {
                fields.insert(key.clone(), generate::value(one, &self.entropy).reveal().into());
                words.push(format!("{key} is generated."));
            }
            let (spec, print) = (generate::spec(one), look.prints.of(key, &fields[key]));
            mark.made.insert(key.clone(), Made { spec, print });
        }
        mark.former = look.mark.map(|old| old.former.clone()).unwrap_or_default();
        let before = look.mark.and_then(|old| old.certificate.clone());
        mark.certificate = match (issued, &look.told.certificate) {
            (Some((new, made)), _) => {
                words.push(format!("The certificate {} is good until {}.", new.serial, new.until));
                mark.former.extend(before.map(|old| old.former()));
                fields.extend(made);
                Some(new)
            }
            (None, Some(_)) => before.map(|old| {
                let print = look.prints.of(certificate::NAME, &certificate::of(&fields).into());
                Issued { print, ..old }
            }),
            (None, None) => {
                mark.former.extend(before.map(|old| old.former()));
                None
            }
        };
        Next { fields, mark, words }
    }

    /// What exists is remembered as taken over; the next apply leaves the mark.
    pub(super) async fn take_over(&self, task: &Task, what: &str) -> Result<Outcome, Fault> {
        let told = told(&task.with)?;
        let kv = self.kv(&At::of(&told)).await?;
        let (at, name) = (kv.place.reference(), self.session.peer().name());
        let path = kv.place.path.as_str();
        if ![path, &at, at.trim_start_matches("vault:")].contains(&what) {
            let why =
                format!("{what} can't be taken over: with.path is {path}, and both must agree");
            return Err(Fault::Refused(why));
        }
        let Some(found) = kv.read().await? else {
            let why = format!("there is no {at} in {name} that could be taken over");
            return Err(Fault::Refused(why));
        };
        if found.mark.is_some() {
            self.may_change(task, &kv.place, Some(&found))?;
        }
        let mut applied =
            outputs::of(&kv.place, found.fields.keys().map(String::as_str), found.mark.as_ref());
        applied.outputs.insert(ADOPTED.into(), at.into());
        Ok(applied)
    }
}

fn at_of(place: &Place) -> At {
    At { mount: place.mount.clone(), path: place.path.clone() }
}

/// Does a value stay? What was there before it was taken over does.
fn is_kept(state: State, look: &Look<'_>) -> bool {
    state == State::AsMade || state == State::Foreign && look.mark.is_none()
}
