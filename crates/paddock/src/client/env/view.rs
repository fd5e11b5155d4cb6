//! Environments as people see them.

use wire::environment::{Environment, StatusEndpoint};
use wire::resource::Resource;

use crate::client::format;
use crate::client::table::{self, Table};

/// One line an environment.
pub(super) fn table(environments: &[Environment]) -> String {
    let header =
        ["ID", "NAME", "STATUS", "DONE", "TEMPLATES", "ENTRY POINTS", "ENDS", "CREATED", "REASON"];
    environments.iter().fold(Table::new(&header), |table, one| table.row(row(one))).render()
}

fn row(environment: &Environment) -> [String; 9] {
    [
        environment.id.to_string(),
        environment.name.clone(),
        status(environment),
        percent(environment.progress),
        format::join(environment.templates.clone()),
        format::join(environment.entry_points.clone()),
        format::timestamp(environment.destroyed_at.or(environment.destroy_at)),
        format::timestamp(environment.created_at),
        environment.status_reason.clone(),
    ]
}

fn percent(progress: i64) -> String {
    format!("{progress}%")
}

/// Where it is, and whether it was asked to stop.
fn status(environment: &Environment) -> String {
    let cancelling = if environment.cancelling { " (cancelling)" } else { "" };
    format!("{}{cancelling}", environment.status)
}

fn parameters(environment: &Environment) -> String {
    let parameter = |(name, value)| format!("{name}={}", format::value(Some(value)));
    format::join(environment.parameters.iter().map(parameter))
}

/// All of one environment.
pub(super) fn details(environment: &Environment) -> String {
    let words = Some(&environment.status_words).filter(|words| !words.is_empty());
    let words = words.map(|words| format!(" ({words})")).unwrap_or_default();
    let fields = table::fields(&[
        ("ID", environment.id.to_string()),
        ("NAME", environment.name.clone()),
        ("DESCRIPTION", environment.description.clone()),
        ("TAGS", format::pairs(&environment.tags)),
        ("STATUS", format!("{}{words}", status(environment))),
        ("SINCE", format::timestamp(environment.status_since)),
        ("REASON", environment.status_reason.clone()),
        ("DONE", percent(environment.progress)),
        ("ENTRY POINTS", format::join(environment.entry_points.clone())),
        ("TEMPLATES", format::join(environment.templates.clone())),
        ("PARAMETERS", parameters(environment)),
        ("ON DRIFT", environment.on_drift.clone()),
        ("CREATED", format::timestamp(environment.created_at)),
        ("ENDS", format::timestamp(environment.destroy_at)),
        ("DESTROYED", format::timestamp(environment.destroyed_at)),
    ]);
    let all = environment.resources.as_deref().unwrap_or_default();
    let asked = environment.status_endpoints.as_deref().unwrap_or_default();
    let parts = [resources(all), endpoints(asked)];
    let parts = parts.into_iter().flatten().chain(all.iter().filter_map(last_words));
    parts.fold(fields, |text, part| format!("{text}\n{part}"))
}

/// One line a resource.
fn resources(resources: &[Resource]) -> Option<String> {
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
            one.status_reason.clone(),
        ])
    };
    let header = ["RESOURCE", "EXECUTOR", "STATUS", "TO DO", "DONE", "LINK", "REASON"];
    (!resources.is_empty()).then(|| resources.iter().fold(Table::new(&header), row).render())
}

/// What a resource said before it failed.
fn last_words(resource: &Resource) -> Option<String> {
    let line = |text: String, line: &String| format!("{text}  {}\n", table::clean(line));
    let title = format!("{} said last:\n", resource.name);
    let lines = resource.last_log.as_ref().filter(|lines| !lines.is_empty());
    lines.map(|lines| lines.iter().fold(title, line))
}

fn endpoints(endpoints: &[StatusEndpoint]) -> Option<String> {
    let row =
        |table: Table, one: &StatusEndpoint| table.row([one.resource.clone(), one.url.clone()]);
    let table = || endpoints.iter().fold(Table::new(&["STATUS OF", "IS ASKED AT"]), row).render();
    (!endpoints.is_empty()).then(table)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixture;
    use super::*;

    fn environment() -> Environment {
        fixture::environment(&json!({
            "description": "The shop", "tags": {"team": "web"}, "templates": ["shop@1.4.0"],
            "parameters": {"replicas": 3, "names": ["a"]}, "status": "deployed",
            "status_words": "Deployed - OK", "status_reason": "It works.", "progress": 100,
            "status_since": "2026-01-02T03:05:05.6Z", "destroy_at": "2026-01-09T03:04:05Z",
            "entry_points": ["http://127.0.0.1:80/"],
            "status_endpoints": [{"resource": "web", "url": "http://127.0.0.1:80/healthz"}],
            "resources": [
                {"name": "bus", "executor": "service", "act": "nothing", "status": "applied",
                 "status_reason": "It is as it was made.", "progress": 100,
                 "link": {"kind": "instance", "id": "i1", "href": "/x"}},
                {"name": "web", "executor": "deployment", "act": "update", "status": "pending",
                 "status_reason": "Waits for bus."}]}))
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
        let failed = fixture::environment(&json!({"status": "failed", "resources": [
            {"name": "web", "status": "failed", "last_log": ["it begins", "it is \u{1b}[31mno"]}]}));
        let shown = details(&failed);
        assert!(
            shown.ends_with("\n\nweb said last:\n  it begins\n  it is \u{fffd}[31mno\n"),
            "{shown}"
        );
    }

    #[test]
    fn an_environment_of_another_version_is_still_shown() {
        let newer = json!({"status": "new", "cancelling": true, "on_drift": "ask", "moons": 2,
            "resources": [{"name": "a", "status": "odd", "act": "odd", "executor": "odd"}]});
        let newer = fixture::environment(&newer);
        assert!(table(std::slice::from_ref(&newer)).contains("prod  new (cancelling)"));
        assert!(details(&newer).contains("a         odd       odd     odd"));
    }
}
