//! Applies a secret's spec.
//!
//! The order is: read, claim the place, issue, write the mark, write the values, revoke what they
//! replace. After a crash at any point the next server finds the mark, retains what exists, and
//! creates the rest.

use port::{Fault, Outcome, Task};
use serde_json::{Map, Value};

use super::comparison::{Comparison, State};
use super::kv::{Found, Place};
use super::mark::{Issued, Made, Mark};
use super::place::{self, At};
use super::{ADOPTED, VaultSecrets, certificate, generate, outputs, parse};

/// The next content of a secret.
struct Next {
    fields: Map<String, Value>,
    mark: Mark,
    /// Log lines about the changes.
    log: Vec<String>,
}

impl VaultSecrets {
    pub(super) async fn apply_spec(&self, task: &Task) -> Result<Outcome, Fault> {
        let spec = parse(&task.with)?;
        let at = At::of_spec(&spec);
        self.clear_other_places(task, &at).await?;
        let (kv, fingerprints, now) = (self.kv(&at).await?, self.fingerprints(task), (self.now)());
        let existing = kv.read().await?;
        self.pending.add(task, at);
        self.check_owner(task, &kv.place, existing.as_ref())?;
        let existing = match existing {
            None => kv.claim(&Mark::new(task, &fingerprints)).await?,
            existing => existing,
        };
        let found = existing.unwrap_or_default();
        let comparison = Comparison::new(task, &spec, &found, &fingerprints, now);
        let issued = match &spec.certificate {
            Some(one) if comparison.certificate(one) != State::Unchanged => {
                Some(certificate::issue(&self.session, one, &fingerprints, now).await?)
            }
            _ => None,
        };
        let next = self.next(task, &comparison, issued);
        let found = kv.write(&found, &next.fields, &next.mark).await?;
        next.log.iter().for_each(|line| task.log.append(line));
        if !next.mark.former.is_empty() {
            certificate::revoke(&self.session, &next.mark.former, &task.log).await?;
            let mark = Mark { former: Vec::new(), ..next.mark.clone() };
            kv.write(&found, &next.fields, &mark).await?;
        }
        let spec_keys = spec.generate.keys().chain(spec.values.keys());
        let mut keys: Vec<&str> = spec_keys.map(String::as_str).collect();
        if spec.certificate.is_some() {
            keys.extend(certificate::FIELDS);
        }
        Ok(outputs::outcome(&kv.place, keys.into_iter(), Some(&next.mark)))
    }

    /// Checks that this resource may change the secret.
    pub(super) fn check_owner(
        &self,
        task: &Task,
        place: &Place,
        found: Option<&Found>,
    ) -> Result<(), Fault> {
        let Some(found) = found else { return Ok(()) };
        let (at, name) = (place.reference(), self.session.peer().name());
        let why = match &found.mark {
            Some(mark) if !mark.is_of(task) => format!(
                "{at} in {name} belongs to the resource {} of the environment {}. Choose another \
                 path",
                mark.owner, mark.environment
            ),
            Some(mark) if mark.fence > task.fence => {
                format!("{at} in {name} was taken over by another Paddock server")
            }
            // A mark that others deleted from a secret of this resource is restored.
            None if task.applied.as_ref().and_then(place::desired) == Some(at_of(place)) => {
                return Ok(());
            }
            None if task.outputs.get(ADOPTED) != Some(&place.reference().into()) => format!(
                "{at} exists in {name} and was not created by Paddock. Choose another path, \
                 delete the secret, or adopt {}",
                place.path
            ),
            _ => return Ok(()),
        };
        Err(Fault::Refused(why))
    }

    /// The next content: retained, specified and generated values.
    fn next(
        &self,
        task: &Task,
        comparison: &Comparison<'_>,
        issued: Option<(Issued, Map<String, Value>)>,
    ) -> Next {
        let mut mark = Mark::new(task, comparison.fingerprints);
        let (mut fields, mut log) = (comparison.found.fields.clone(), Vec::new());
        for key in comparison.obsolete() {
            fields.remove(&key);
            log.push(format!("Removed {key}."));
        }
        for (key, value) in &comparison.spec.values {
            fields.insert(key.clone(), value.clone().into());
            mark.values.insert(key.clone());
        }
        for (key, one) in &comparison.spec.generate {
            let state = comparison.generated(key, one);
            if !is_retained(state, comparison) {
                fields.insert(key.clone(), generate::value(one, &self.entropy).reveal().into());
                log.push(format!("Generated {key}."));
            }
            let spec = generate::spec_hash(one);
            let print = comparison.fingerprints.compute(key, &fields[key]);
            mark.made.insert(key.clone(), Made { spec, print });
        }
        mark.former = comparison.mark.map(|old| old.former.clone()).unwrap_or_default();
        let before = comparison.mark.and_then(|old| old.certificate.clone());
        mark.certificate = match (issued, &comparison.spec.certificate) {
            (Some((new, issued)), _) => {
                log.push(format!("Issued certificate {}, valid until {}.", new.serial, new.until));
                mark.former.extend(before.map(|old| old.former()));
                fields.extend(issued);
                Some(new)
            }
            (None, Some(_)) => before.map(|old| {
                let print = comparison
                    .fingerprints
                    .compute(certificate::NAME, &certificate::fields_of(&fields).into());
                Issued { print, ..old }
            }),
            (None, None) => {
                mark.former.extend(before.map(|old| old.former()));
                None
            }
        };
        Next { fields, mark, log }
    }

    /// Records an existing secret as adopted; the next apply writes the mark.
    pub(super) async fn adopt_existing(&self, task: &Task, what: &str) -> Result<Outcome, Fault> {
        let spec = parse(&task.with)?;
        let kv = self.kv(&At::of_spec(&spec)).await?;
        let (at, name) = (kv.place.reference(), self.session.peer().name());
        let path = kv.place.path.as_str();
        if ![path, &at, at.trim_start_matches("vault:")].contains(&what) {
            let why = format!("cannot adopt {what}: it must be with.path, which is {path}");
            return Err(Fault::Refused(why));
        }
        let Some(found) = kv.read().await? else {
            let why = format!("cannot adopt {at}: it does not exist in {name}");
            return Err(Fault::Refused(why));
        };
        if found.mark.is_some() {
            self.check_owner(task, &kv.place, Some(&found))?;
        }
        let keys = found.fields.keys().map(String::as_str);
        let mut adopted = outputs::outcome(&kv.place, keys, found.mark.as_ref());
        adopted.outputs.insert(ADOPTED.into(), at.into());
        Ok(adopted)
    }
}

fn at_of(place: &Place) -> At {
    At { mount: place.mount.clone(), path: place.path.clone() }
}

/// Whether a value is retained. Values that existed before an adoption are.
fn is_retained(state: State, comparison: &Comparison<'_>) -> bool {
    state == State::Unchanged || state == State::NotOurs && comparison.mark.is_none()
}
