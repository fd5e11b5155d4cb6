//! Common operations on clusters, deployments, instances and environments: find by name or id,
//! create, wait and delete.

use std::time::Duration;

use model::Xid;
use serde_json::Value;

use super::call::Call;
use super::error::Error;
use super::http::{Api, ApiResponse};
use super::page;
use super::print::Printer;
use super::prompt;
use super::wait::{Goal, settle, wait};
pub(crate) use wire::subject::Subject;

/// A kind of subject.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind<'a> {
    /// Kind in events.
    pub(crate) event: &'static str,
    /// Name in messages.
    pub(crate) noun: &'a str,
    /// Command that manages it.
    pub(crate) command: &'a str,
    /// Service kind of instances.
    pub(crate) service: Option<&'a str>,
    /// Collection in URLs.
    pub(crate) path: &'static str,
    /// Statuses in which it is operational.
    pub(crate) up: &'static [&'static str],
    /// Status after deletion.
    pub(crate) deleted: &'static str,
    /// Kind of its parts in events, if they have events.
    pub(crate) parts: Option<&'static str>,
}

/// Clusters.
pub(crate) const CLUSTER: Kind<'static> = Kind {
    event: "cluster",
    noun: "cluster",
    command: "cluster",
    service: None,
    path: "clusters",
    up: &["ready"],
    deleted: "deleted",
    parts: None,
};
/// Deployments.
pub(crate) const DEPLOYMENT: Kind<'static> = Kind {
    event: "deployment",
    noun: "deployment",
    command: "deployment",
    service: None,
    path: "deployments",
    up: &["running", "completed"],
    deleted: "deleted",
    parts: None,
};
/// Instances of any service kind, for administrators.
pub(crate) const INSTANCE: Kind<'static> = Kind {
    event: "instance",
    noun: "instance",
    command: "admin instance",
    service: None,
    path: "instances",
    up: &["ready"],
    deleted: "deleted",
    parts: None,
};
/// Environments.
pub(crate) const ENVIRONMENT: Kind<'static> = Kind {
    event: "environment",
    noun: "environment",
    command: "env",
    service: None,
    path: "environments",
    up: &["deployed"],
    deleted: "destroyed",
    parts: Some("resource"),
};

impl Kind<'_> {
    /// Whether `subject` is of this kind: instances of all service kinds share one collection.
    fn has(&self, subject: &Subject) -> bool {
        self.service.is_none() || self.service == subject.kind.as_deref()
    }
}

/// Maximum number of listed subjects with the same name.
const MAX_CANDIDATES: usize = 100;

/// Whether `text` has the format of an id; names may have it as well.
pub(crate) fn is_id(text: &str) -> bool {
    text.parse::<Xid>().is_ok()
}

/// Finds a subject by id, or else by name.
pub(crate) async fn find(api: &Api, kind: &Kind<'_>, which: &str) -> Result<Subject, Error> {
    choose(kind, which, candidates(api, kind, which).await?)
}

/// Like [`find`]; `None` if no subject has this id or name.
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

/// The subject with this id, or else all with this name.
async fn candidates(api: &Api, kind: &Kind<'_>, which: &str) -> Result<Vec<Subject>, Error> {
    if is_id(which) {
        match api.send(&Call::get(&[kind.path, which])).await {
            Err(error) if error.status() == Some(404) => {}
            response => {
                let found: Subject = api.read(&response?)?;
                if kind.has(&found) {
                    return Ok(vec![found]);
                }
            }
        }
    }
    let call = Call::get(&[kind.path]).query("name", Some(which)).query("kind", kind.service);
    page::list(api, call, MAX_CANDIDATES).await?.read(api)
}

/// Id of a subject, if one is given.
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
        0 => Err(Error::failed_with_hint(
            format!("{} {which:?} not found", kind.noun),
            format!(r#"run "paddock {} list" to see all"#, kind.command),
        )),
        _ => {
            let line = |subject: &Subject| format!("{} ({})", subject.id, subject.status);
            Err(ambiguous(kind.path, which, &named.iter().map(line).collect::<Vec<_>>()))
        }
    }
}

/// Error for a name that several subjects have, one per line.
pub(crate) fn ambiguous(nouns: &str, which: &str, lines: &[String]) -> Error {
    let (count, lines) = (lines.len(), lines.join("\n  "));
    Error::failed_with_hint(
        format!("{count} {nouns} have the name {which:?}:\n  {lines}"),
        "use the id",
    )
}

/// Creates a subject; with `limit`, waits and returns its state after the wait.
pub(crate) async fn create(
    api: &Api,
    kind: &Kind<'_>,
    body: Value,
    limit: Option<Duration>,
) -> Result<ApiResponse, Error> {
    let response = api.send(&Call::create(&[kind.path], body)).await?;
    settle(api, kind, response, Goal::up(kind), limit).await
}

/// Deletes a subject after confirmation.
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

/// Deletes a subject with a specific call.
pub(crate) async fn delete_by(
    api: &Api,
    printer: &mut Printer,
    kind: &Kind<'_>,
    subject: &Subject,
    call: Call,
    yes: bool,
    limit: Option<Duration>,
) -> Result<(), Error> {
    let label = format!("{} {}", kind.noun, subject.label());
    prompt::confirm(&format!("Delete {label} ({})?", subject.id), yes)?;
    let response = api.send(&call).await?;
    let Some(limit) = limit else {
        return printer.response_or_note(&response, &format!("{label} is being deleted"));
    };
    wait(api, kind, subject, Goal::DELETED, limit).await?;
    printer.response_or_note(&response, &format!("{label} deleted"))
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
    fn instances_are_filtered_by_service_kind() {
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
    fn name_must_be_unambiguous() {
        assert_eq!(choose(&CLUSTER, "a", vec![subject("1", "a")]).unwrap().id, "1");
        let two = vec![subject("2", "b"), subject("3", "b")];
        for (which, named, message) in [
            ("b", two, "2 clusters have the name \"b\":\n  2 (ready)\n  3 (ready)"),
            ("c", vec![], "cluster \"c\" not found"),
        ] {
            assert_eq!(choose(&CLUSTER, which, named).unwrap_err().message(), message);
        }
    }
}
