//! What clusters and deployments have in common on the command line: they are found by name or
//! id, made, waited for and deleted in the same way.

use std::time::Duration;

use model::Xid;
use serde::Deserialize;
use serde_json::Value;

use super::call::Call;
use super::error::Error;
use super::http::{Answer, Api};
use super::page;
use super::print::Printer;
use super::prompt;
use super::wait::{Goal, wait};

/// One kind of subject.
pub(crate) struct Kind {
    /// As in events and on the command line.
    pub(crate) word: &'static str,
    /// As in addresses.
    pub(crate) path: &'static str,
    /// Where `--wait` ends well.
    pub(crate) up: &'static [&'static str],
}

/// Clusters.
pub(crate) const CLUSTER: Kind = Kind { word: "cluster", path: "clusters", up: &["ready"] };
/// Deployments.
pub(crate) const DEPLOYMENT: Kind =
    Kind { word: "deployment", path: "deployments", up: &["running", "completed"] };

impl Kind {
    /// Why a subject did not get where it should, and where more is to be read.
    pub(crate) fn failure(&self, subject: &Subject, what: String) -> Error {
        if self.word != DEPLOYMENT.word {
            return Error::failed(what);
        }
        Error::failed_but(what, format!(r#""paddock deployment logs {}" may say more"#, subject.id))
    }
}

/// More things of one name than anybody wants to see.
const MAX_CANDIDATES: usize = 100;

/// The part that all subjects have.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Subject {
    pub(crate) id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    status: String,
}

impl Subject {
    /// The name, or the id of what has none.
    pub(crate) fn label(&self) -> &str {
        self.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(&self.id)
    }
}

/// Whether `text` has the form of an id. A name may have it too.
pub(crate) fn is_id(text: &str) -> bool {
    text.parse::<Xid>().is_ok()
}

/// Finds a subject by id or, failing that, by name.
pub(crate) async fn find(api: &Api, kind: &Kind, which: &str) -> Result<Subject, Error> {
    if is_id(which) {
        match api.send(&Call::get(&[kind.path, which])).await {
            Err(error) if error.status() == Some(404) => {}
            answer => return api.read(&answer?),
        }
    }
    let call = Call::get(&[kind.path]).query("name", Some(which));
    let named = page::list(api, call, MAX_CANDIDATES).await?;
    choose(kind, which, named.read(api)?)
}

/// The id of what was named, if anything was.
pub(crate) async fn id_if_named(
    api: &Api,
    kind: &Kind,
    which: Option<&str>,
) -> Result<Option<String>, Error> {
    match which {
        Some(which) => Ok(Some(find(api, kind, which).await?.id)),
        None => Ok(None),
    }
}

fn choose(kind: &Kind, which: &str, mut named: Vec<Subject>) -> Result<Subject, Error> {
    match named.len() {
        1 => Ok(named.remove(0)),
        0 => Err(Error::failed_but(
            format!("there is no {} {which:?}", kind.word),
            format!(r#""paddock {} list" shows them all"#, kind.word),
        )),
        count => Err(Error::failed_but(
            format!("{count} {} have the name {which:?}:{}", kind.path, candidates(&named)),
            "say which one by its id",
        )),
    }
}

fn candidates(subjects: &[Subject]) -> String {
    let lines = subjects.iter().map(|subject| format!("\n  {} ({})", subject.id, subject.status));
    lines.collect()
}

/// Makes a subject; with `limit`, the answer is what it is after the wait.
pub(crate) async fn create(
    api: &Api,
    kind: &Kind,
    body: Value,
    limit: Option<Duration>,
) -> Result<Answer, Error> {
    let answer = api.send(&Call::create(&[kind.path], body)).await?;
    let Some(limit) = limit else { return Ok(answer) };
    let subject: Subject = api.read(&answer)?;
    wait(api, kind, &subject, Goal::Up, limit).await?;
    api.send(&Call::get(&[kind.path, &subject.id])).await
}

/// Deletes a subject, after a question if there is somebody to ask.
pub(crate) async fn delete(
    api: &Api,
    printer: &mut Printer,
    kind: &Kind,
    which: &str,
    yes: bool,
    limit: Option<Duration>,
) -> Result<(), Error> {
    let subject = find(api, kind, which).await?;
    let label = format!("{} {}", kind.word, subject.label());
    prompt::confirm(&format!("Delete {label} ({})?", subject.id), yes)?;
    let answer = api.send(&Call::delete(&[kind.path, &subject.id])).await?;
    let Some(limit) = limit else {
        return printer.answer_or_note(&answer, &format!("{label} is being deleted"));
    };
    wait(api, kind, &subject, Goal::Gone, limit).await?;
    printer.answer_or_note(&answer, &format!("{label} is gone"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(id: &str, name: &str) -> Subject {
        Subject { id: id.into(), name: Some(name.into()), status: "ready".into() }
    }

    #[test]
    fn ids_have_twenty_characters() {
        for (text, want) in [
            ("9m4e2mr0ui3e8a215n4g", true),
            ("9m4e2mr0ui3e8a215n4", false),
            ("9m4e2mr0ui3e8a215n4z", false),
            ("9M4E2MR0UI3E8A215N4G", false),
            ("prod", false),
        ] {
            assert_eq!(is_id(text), want, "{text}");
        }
    }

    #[test]
    fn a_name_must_mean_one_thing() {
        assert_eq!(choose(&CLUSTER, "a", vec![subject("1", "a")]).unwrap().id, "1");
        let two = vec![subject("2", "b"), subject("3", "b")];
        for (which, named, what) in [
            ("b", two, "2 clusters have the name \"b\":\n  2 (ready)\n  3 (ready)"),
            ("c", vec![], "there is no cluster \"c\""),
        ] {
            assert_eq!(choose(&CLUSTER, which, named).unwrap_err().what(), what);
        }
    }
}
