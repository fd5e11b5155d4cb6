//! What clusters, deployments, instances and environments have in common on the command line: they are
//! found by name or id, made, waited for and deleted in the same way.

use std::time::Duration;

use model::Xid;
use serde_json::Value;

use super::call::Call;
use super::error::Error;
use super::http::{Answer, Api};
use super::page;
use super::print::Printer;
use super::prompt;
use super::wait::{Goal, settle, wait};
pub(crate) use wire::subject::Subject;

/// One kind of subject.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind<'a> {
    /// As in events.
    pub(crate) event: &'static str,
    /// As people call it.
    pub(crate) word: &'a str,
    /// The command that has its verbs.
    pub(crate) command: &'a str,
    /// The kind of service that its subjects are instances of.
    pub(crate) service: Option<&'a str>,
    /// As in addresses.
    pub(crate) path: &'static str,
    /// The statuses in which it does its work.
    pub(crate) up: &'static [&'static str],
    /// The status of one that no longer exists.
    pub(crate) gone: &'static str,
    /// The kind of its parts in events, if they have events of their own.
    pub(crate) parts: Option<&'static str>,
}

/// Clusters.
pub(crate) const CLUSTER: Kind<'static> = Kind {
    event: "cluster",
    word: "cluster",
    command: "cluster",
    service: None,
    path: "clusters",
    up: &["ready"],
    gone: "deleted",
    parts: None,
};
/// Deployments.
pub(crate) const DEPLOYMENT: Kind<'static> = Kind {
    event: "deployment",
    word: "deployment",
    command: "deployment",
    service: None,
    path: "deployments",
    up: &["running", "completed"],
    gone: "deleted",
    parts: None,
};
/// Instances of any kind of service, as administrators see them.
pub(crate) const INSTANCE: Kind<'static> = Kind {
    event: "instance",
    word: "instance",
    command: "admin instance",
    service: None,
    path: "instances",
    up: &["ready"],
    gone: "deleted",
    parts: None,
};
/// Environments.
pub(crate) const ENVIRONMENT: Kind<'static> = Kind {
    event: "environment",
    word: "environment",
    command: "env",
    service: None,
    path: "environments",
    up: &["deployed"],
    gone: "destroyed",
    parts: Some("resource"),
};

impl Kind<'_> {
    /// Whether `subject` is of this kind: instances of all kinds of service have the same address.
    fn has(&self, subject: &Subject) -> bool {
        self.service.is_none() || self.service == subject.kind.as_deref()
    }
}

/// More things of one name than anybody wants to see.
const MAX_CANDIDATES: usize = 100;

/// Whether `text` has the form of an id. A name may have it too.
pub(crate) fn is_id(text: &str) -> bool {
    text.parse::<Xid>().is_ok()
}

/// Finds a subject by id or, failing that, by name.
pub(crate) async fn find(api: &Api, kind: &Kind<'_>, which: &str) -> Result<Subject, Error> {
    choose(kind, which, candidates(api, kind, which).await?)
}

/// The same; none if there is nothing of that id or name.
pub(crate) async fn find_if_any(
    api: &Api,
    kind: &Kind<'_>,
    which: &str,
) -> Result<Option<Subject>, Error> {
    let candidates = candidates(api, kind, which).await?;
    if candidates.is_empty() {
        return Ok(None);
    }
    choose(kind, which, candidates).map(Some)
}

/// The one of that id or, failing that, all of that name.
async fn candidates(api: &Api, kind: &Kind<'_>, which: &str) -> Result<Vec<Subject>, Error> {
    if is_id(which) {
        match api.send(&Call::get(&[kind.path, which])).await {
            Err(error) if error.status() == Some(404) => {}
            answer => {
                let found: Subject = api.read(&answer?)?;
                if kind.has(&found) {
                    return Ok(vec![found]);
                }
            }
        }
    }
    let call = Call::get(&[kind.path]).query("name", Some(which)).query("kind", kind.service);
    page::list(api, call, MAX_CANDIDATES).await?.read(api)
}

/// The id of what was named, if anything was.
pub(crate) async fn id_if_named(
    api: &Api,
    kind: &Kind<'_>,
    which: Option<&str>,
) -> Result<Option<String>, Error> {
    match which {
        Some(which) => Ok(Some(find(api, kind, which).await?.id)),
        None => Ok(None),
    }
}

pub(crate) fn choose(
    kind: &Kind<'_>,
    which: &str,
    mut named: Vec<Subject>,
) -> Result<Subject, Error> {
    match named.len() {
        1 => Ok(named.remove(0)),
        0 => Err(Error::failed_but(
            format!("there is no {} {which:?}", kind.word),
            format!(r#""paddock {} list" shows them all"#, kind.command),
        )),
        _ => {
            let line = |subject: &Subject| format!("{} ({})", subject.id, subject.status);
            Err(ambiguous(kind.path, which, &named.iter().map(line).collect::<Vec<_>>()))
        }
    }
}

/// A name that several things have, each told in a line.
pub(crate) fn ambiguous(things: &str, which: &str, lines: &[String]) -> Error {
    let (count, lines) = (lines.len(), lines.join("\n  "));
    Error::failed_but(
        format!("{count} {things} have the name {which:?}:\n  {lines}"),
        "say which one by its id",
    )
}

/// Makes a subject; with `limit`, the answer is what it is after the wait.
pub(crate) async fn create(
    api: &Api,
    kind: &Kind<'_>,
    body: Value,
    limit: Option<Duration>,
) -> Result<Answer, Error> {
    let answer = api.send(&Call::create(&[kind.path], body)).await?;
    settle(api, kind, answer, Goal::up(kind), limit).await
}

/// Deletes a subject, after a question if there is somebody to ask.
pub(crate) async fn delete(
    api: &Api,
    printer: &mut Printer,
    kind: &Kind<'_>,
    which: &str,
    yes: bool,
    limit: Option<Duration>,
) -> Result<(), Error> {
    let subject = find(api, kind, which).await?;
    let call = Call::delete(&[kind.path, &subject.id]);
    delete_by(api, printer, kind, &subject, call, yes, limit).await
}

/// Deletes a subject by another call than its own address has.
pub(crate) async fn delete_by(
    api: &Api,
    printer: &mut Printer,
    kind: &Kind<'_>,
    subject: &Subject,
    call: Call,
    yes: bool,
    limit: Option<Duration>,
) -> Result<(), Error> {
    let label = format!("{} {}", kind.word, subject.label());
    prompt::confirm(&format!("Delete {label} ({})?", subject.id), yes)?;
    let answer = api.send(&call).await?;
    let Some(limit) = limit else {
        return printer.answer_or_note(&answer, &format!("{label} is being deleted"));
    };
    wait(api, kind, subject, Goal::GONE, limit).await?;
    printer.answer_or_note(&answer, &format!("{label} is gone"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(id: &str, name: &str) -> Subject {
        Subject { id: id.into(), name: Some(name.into()), status: "ready".into(), kind: None }
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
    fn an_instance_is_of_its_kind_of_service() {
        let of = |kind: Option<&str>| Subject { kind: kind.map(Into::into), ..subject("1", "a") };
        let service = |service| Kind { service, ..INSTANCE };
        for (kind, subject, want) in [
            (service(Some("rhino")), of(Some("rhino")), true),
            (service(Some("rhino")), of(Some("hippo")), false),
            (service(None), of(Some("hippo")), true),
            (CLUSTER, of(None), true),
        ] {
            assert_eq!(kind.has(&subject), want, "{kind:?}");
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
