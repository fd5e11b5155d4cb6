//! What a secret is found to be, without showing what must not be seen.

use model::resource::Difference;
use port::{Fault, Observed, Task};
use serde_json::{Value, json};

use super::kv::Found;
use super::look::{Look, State};
use super::place::At;
use super::{Secrets, certificate, told};

/// What is said in the place of a value.
const AS_GENERATED: &str = "(as generated)";
const AS_ISSUED: &str = "(as issued)";
const ANOTHER: &str = "(another)";

impl Secrets {
    pub(super) async fn look_at(&self, task: &Task) -> Result<Observed, Fault> {
        let told = told(task.applied.as_ref().unwrap_or(&task.with))?;
        let (kv, prints) = (self.kv(&At::of(&told)).await?, self.prints(task));
        let place = kv.place.reference();
        let Some(found) = kv.read().await? else {
            let drift = vec![difference("path", Some(place.into()), None)];
            return Ok(Observed { drift, ..Observed::default() });
        };
        let look = Look::new(task, &told, &found, &prints, (self.now)());
        if look.mark.is_none() {
            let other = found.mark.as_ref().map(|mark| mark.owner.clone().into());
            let drift = vec![difference("owner", Some(task.id.to_string().into()), other)];
            return Ok(Observed { drift, ..Observed::default() });
        }
        let mut drift = values(&look);
        drift.extend(generated(&look, AS_GENERATED));
        drift.extend(issued(&look));
        Ok(Observed { drift, unexpected: look.unexpected(), outcome: None })
    }

    /// What applying would change.
    pub(super) async fn differences(&self, task: &Task) -> Result<Vec<Difference>, Fault> {
        let told = told(&task.with)?;
        let (kv, prints) = (self.kv(&At::of(&told)).await?, self.prints(task));
        let there = kv.read().await?;
        let is_new = there.is_none();
        let found = there.unwrap_or_default();
        let look = Look::new(task, &told, &found, &prints, (self.now)());
        let mut all = Vec::new();
        if is_new {
            all.push(difference("path", Some(kv.place.reference().into()), None));
        }
        all.extend(values(&look));
        all.extend(generated(&look, "(generated)"));
        all.extend(issued(&look));
        let gone = look.left_over().into_iter();
        all.extend(gone.map(|key| difference(key, None, Some("(made before)".into()))));
        // The next step writes there.
        self.noted.add(task, At::of(&told));
        Ok(all)
    }
}

fn difference(field: impl Into<String>, made: Option<Value>, found: Option<Value>) -> Difference {
    Difference { field: field.into(), made, found }
}

/// Values that are no secret; what is found in their place is shown.
fn values(look: &Look<'_>) -> Vec<Difference> {
    let told = look.told.values.iter().map(|(key, value)| (key, Value::from(value.clone())));
    told.filter(|(key, value)| look.found.fields.get(*key) != Some(value))
        .map(|(key, value)| {
            let found = shown(look.found, key, look);
            difference(format!("values.{key}"), Some(value), found)
        })
        .collect()
}

/// What is found under a key, unless it was generated under that key before.
fn shown(found: &Found, key: &str, look: &Look<'_>) -> Option<Value> {
    let value = found.fields.get(key)?;
    let is_told = look.mark.is_some_and(|mark| mark.values.contains(key));
    Some(if is_told { value.clone() } else { ANOTHER.into() })
}

fn generated(look: &Look<'_>, made: &str) -> Vec<Difference> {
    let mut all = Vec::new();
    for (key, one) in &look.told.generate {
        let found = match look.generated(key, one) {
            State::AsMade => continue,
            State::Foreign if look.mark.is_none() => continue,
            State::Missing => None,
            State::Outdated => Some("(made in another way)".into()),
            _ => Some(ANOTHER.into()),
        };
        all.push(difference(format!("generate.{key}"), Some(made.into()), found));
    }
    all
}

fn issued(look: &Look<'_>) -> Option<Difference> {
    let one = look.told.certificate.as_ref()?;
    let issued = look.mark.and_then(|mark| mark.certificate.as_ref());
    let found = match look.certificate(one) {
        State::AsMade => return None,
        State::Missing => None,
        State::Outdated => Some("(issued in another way)".into()),
        State::Ending => {
            let until = issued.map(|issued| json!(issued.until));
            let made = "at least a third of its life is left".into();
            return Some(difference("certificate.not_after", Some(made), until));
        }
        State::Another | State::Foreign => Some(ANOTHER.into()),
    };
    Some(difference(certificate::NAME, Some(AS_ISSUED.into()), found))
}
