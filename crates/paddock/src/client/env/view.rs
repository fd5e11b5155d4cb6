//! Environments as people see them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::client::format;
use crate::client::table::{self, Table};

/// The part of an environment that the client shows.
#[derive(Debug, Deserialize)]
pub(super) struct Environment {
    id: String,
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    #[serde(default)]
    templates: Vec<String>,
    #[serde(default)]
    parameters: Map<String, Value>,
    #[serde(default)]
    on_drift: Option<String>,
    status: String,
    #[serde(default)]
    status_words: Option<String>,
    #[serde(default)]
    status_reason: Option<String>,
    #[serde(default)]
    status_since: Option<String>,
    #[serde(default)]
    progress: Option<u64>,
    #[serde(default)]
    entry_points: Vec<String>,
    #[serde(default)]
    status_endpoints: Vec<Endpoint>,
    #[serde(default)]
    cancelling: bool,
    #[serde(default)]
    destroy_at: Option<String>,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    destroyed_at: Option<String>,
    #[serde(default)]
    resources: Vec<Resource>,
}

/// Where a resource says that it works.
#[derive(Debug, Deserialize)]
struct Endpoint {
    resource: String,
    url: String,
}

/// The part of a resource that the client shows.
#[derive(Debug, Deserialize)]
pub(super) struct Resource {
    name: String,
    #[serde(default)]
    executor: String,
    #[serde(default)]
    act: String,
    status: String,
    #[serde(default)]
    status_reason: Option<String>,
    #[serde(default)]
    progress: Option<u64>,
    #[serde(default)]
    link: Option<Link>,
    #[serde(default)]
    last_log: Vec<String>,
}

/// Something of Paddock's own that was made for a resource.
#[derive(Debug, Deserialize)]
struct Link {
    kind: String,
    id: String,
}

/// One line an environment.
pub(super) fn table(environments: &[Environment]) -> String {
    let header =
        ["ID", "NAME", "STATUS", "DONE", "TEMPLATES", "ENTRY POINTS", "ENDS", "CREATED", "REASON"];
    environments.iter().fold(Table::new(&header), |table, one| table.row(row(one))).render()
}

fn row(environment: &Environment) -> [String; 9] {
    [
        environment.id.clone(),
        environment.name.clone(),
        environment.status(),
        percent(environment.progress),
        format::join(environment.templates.clone()),
        format::join(environment.entry_points.clone()),
        environment.end(),
        format::time(environment.created_at.as_deref()),
        format::optional(environment.status_reason.as_ref()),
    ]
}

fn percent(progress: Option<u64>) -> String {
    progress.map(|percent| format!("{percent}%")).unwrap_or_default()
}

impl Environment {
    /// Where it is, and whether it was asked to stop.
    fn status(&self) -> String {
        let cancelling = if self.cancelling { " (cancelling)" } else { "" };
        format!("{}{cancelling}", self.status)
    }

    /// When it ended, or will.
    fn end(&self) -> String {
        format::time(self.destroyed_at.as_deref().or(self.destroy_at.as_deref()))
    }

    fn parameters(&self) -> String {
        let parameter = |(name, value)| format!("{name}={}", format::value(Some(value)));
        format::join(self.parameters.iter().map(parameter))
    }
}

/// All of one environment.
pub(super) fn details(environment: &Environment) -> String {
    let words = environment.status_words.as_ref().filter(|words| !words.is_empty());
    let words = words.map(|words| format!(" ({words})")).unwrap_or_default();
    let fields = table::fields(&[
        ("ID", environment.id.clone()),
        ("NAME", environment.name.clone()),
        ("DESCRIPTION", environment.description.clone()),
        ("TAGS", format::pairs(&environment.tags)),
        ("STATUS", format!("{}{words}", environment.status())),
        ("SINCE", format::time(environment.status_since.as_deref())),
        ("REASON", format::optional(environment.status_reason.as_ref())),
        ("DONE", percent(environment.progress)),
        ("ENTRY POINTS", format::join(environment.entry_points.clone())),
        ("TEMPLATES", format::join(environment.templates.clone())),
        ("PARAMETERS", environment.parameters()),
        ("ON DRIFT", format::optional(environment.on_drift.as_ref())),
        ("CREATED", format::time(environment.created_at.as_deref())),
        ("ENDS", format::time(environment.destroy_at.as_deref())),
        ("DESTROYED", format::time(environment.destroyed_at.as_deref())),
    ]);
    let all = &environment.resources;
    let parts = [resources(all), endpoints(&environment.status_endpoints)];
    let parts = parts.into_iter().flatten().chain(all.iter().filter_map(last_words));
    parts.fold(fields, |text, part| format!("{text}\n{part}"))
}

/// One line a resource.
pub(super) fn resources(resources: &[Resource]) -> Option<String> {
    let row = |table: Table, one: &Resource| {
        let doing = if one.act == "nothing" { String::new() } else { one.act.clone() };
        let link = one.link.as_ref().map(|link| format!("{} {}", link.kind, link.id));
        table.row([
            one.name.clone(),
            one.executor.clone(),
            one.status.clone(),
            doing,
            percent(one.progress),
            link.unwrap_or_default(),
            format::optional(one.status_reason.as_ref()),
        ])
    };
    let header = ["RESOURCE", "EXECUTOR", "STATUS", "TO DO", "DONE", "LINK", "REASON"];
    (!resources.is_empty()).then(|| resources.iter().fold(Table::new(&header), row).render())
}

/// What a resource said before it failed.
fn last_words(resource: &Resource) -> Option<String> {
    let line = |text: String, line: &String| format!("{text}  {}\n", table::clean(line));
    let title = format!("{} said last:\n", resource.name);
    (!resource.last_log.is_empty()).then(|| resource.last_log.iter().fold(title, line))
}

fn endpoints(endpoints: &[Endpoint]) -> Option<String> {
    let row = |table: Table, one: &Endpoint| table.row([one.resource.clone(), one.url.clone()]);
    let table = || endpoints.iter().fold(Table::new(&["STATUS OF", "IS ASKED AT"]), row).render();
    (!endpoints.is_empty()).then(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        serde_json::from_str(
            r#"{"id":"9m4e2mr0ui3e8a215n4g","name":"prod","description":"The shop","tags":{"team":"web"},
                "templates":["shop@1.4.0"],"parameters":{"replicas":3,"names":["a"]},"on_drift":"report",
                "status":"deployed","status_words":"Deployed - OK","status_reason":"It works.",
                "status_since":"2026-01-02T03:05:05.6Z","progress":100,
                "entry_points":["http://127.0.0.1:80/"],"cancelling":false,
                "status_endpoints":[{"resource":"web","url":"http://127.0.0.1:80/healthz"}],
                "destroy_at":"2026-01-09T03:04:05Z","created_at":"2026-01-02T03:04:05.6Z",
                "destroyed_at":null,"resources":[
                {"id":"r1","name":"bus","executor":"service","act":"nothing","status":"applied",
                 "status_reason":"It is as it was made.","progress":100,
                 "link":{"kind":"instance","id":"i1","href":"/x"}},
                {"id":"r2","name":"web","executor":"deployment","act":"update","status":"pending",
                 "status_reason":"Waits for bus.","progress":0,"link":null}]}"#,
        )
        .unwrap()
    }

    #[test]
    fn a_list_has_one_line_an_environment() {
        let want = "\
ID                    NAME  STATUS    DONE  TEMPLATES   ENTRY POINTS          ENDS                  CREATED               REASON
9m4e2mr0ui3e8a215n4g  prod  deployed  100%  shop@1.4.0  http://127.0.0.1:80/  2026-01-09T03:04:05Z  2026-01-02T03:04:05Z  It works.
";
        assert_eq!(table(&[environment()]), want);
    }

    #[test]
    fn one_environment_shows_all_it_has() {
        let want = "\
ID            9m4e2mr0ui3e8a215n4g
NAME          prod
DESCRIPTION   The shop
TAGS          team=web
STATUS        deployed (Deployed - OK)
SINCE         2026-01-02T03:05:05Z
REASON        It works.
DONE          100%
ENTRY POINTS  http://127.0.0.1:80/
TEMPLATES     shop@1.4.0
PARAMETERS    names=[\"a\"],replicas=3
ON DRIFT      report
CREATED       2026-01-02T03:04:05Z
ENDS          2026-01-09T03:04:05Z
DESTROYED     -

RESOURCE  EXECUTOR    STATUS   TO DO   DONE  LINK         REASON
bus       service     applied  -       100%  instance i1  It is as it was made.
web       deployment  pending  update  0%    -            Waits for bus.

STATUS OF  IS ASKED AT
web        http://127.0.0.1:80/healthz
";
        assert_eq!(details(&environment()), want);
    }

    #[test]
    fn what_failed_shows_what_it_said_last() {
        let failed = r#"{"id":"1","name":"a","status":"failed","resources":[
            {"name":"web","status":"failed","last_log":["it begins","it is \u001b[31mno"]}]}"#;
        let shown = details(&serde_json::from_str(failed).unwrap());
        assert!(
            shown.ends_with("\n\nweb said last:\n  it begins\n  it is \u{fffd}[31mno\n"),
            "{shown}"
        );
    }

    #[test]
    fn an_environment_of_another_version_is_still_shown() {
        let bare = r#"{"id":"1","name":"a","status":"new","cancelling":true}"#;
        let bare: Environment = serde_json::from_str(bare).unwrap();
        assert!(table(&[bare]).contains("1   a     new (cancelling)"));
    }
}
