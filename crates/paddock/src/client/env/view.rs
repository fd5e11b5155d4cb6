//! Table and detail views of environments.

use wire::environment::{Environment, StatusEndpoint};
use wire::resource::Resource;

use crate::client::format;
use crate::client::table::{self, Table};

/// One row per environment.
pub(super) fn table(environments: &[Environment]) -> String {
    let header = [
        "ID",
        "NAME",
        "STATUS",
        "PROGRESS",
        "TEMPLATES",
        "ENTRY POINTS",
        "EXPIRES",
        "CREATED",
        "REASON",
    ];
    environments.iter().fold(Table::new(&header), |table, item| table.row(row(item))).render()
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

/// Status, and whether the operation is being cancelled.
fn status(environment: &Environment) -> String {
    let cancelling = if environment.cancelling { " (cancelling)" } else { "" };
    format!("{}{cancelling}", environment.status)
}

fn parameters(environment: &Environment) -> String {
    let parameter = |(name, value)| format!("{name}={}", format::value(Some(value)));
    format::join(environment.parameters.iter().map(parameter))
}

/// All fields of one environment.
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
        ("PROGRESS", percent(environment.progress)),
        ("ENTRY POINTS", format::join(environment.entry_points.clone())),
        ("TEMPLATES", format::join(environment.templates.clone())),
        ("PARAMETERS", parameters(environment)),
        ("ON DRIFT", environment.on_drift.clone()),
        ("CREATED", format::timestamp(environment.created_at)),
        ("EXPIRES", format::timestamp(environment.destroy_at)),
        ("DESTROYED", format::timestamp(environment.destroyed_at)),
    ]);
    let all = environment.resources.as_deref().unwrap_or_default();
    let checked = environment.status_endpoints.as_deref().unwrap_or_default();
    let parts = [resources(all), endpoints(checked)];
    let parts = parts.into_iter().flatten().chain(all.iter().filter_map(log_tail));
    parts.fold(fields, |text, part| format!("{text}\n{part}"))
}

/// One row per resource.
fn resources(resources: &[Resource]) -> Option<String> {
    let row = |table: Table, resource: &Resource| {
        let action = Some(&resource.act).filter(|act| *act != "nothing");
        let link = resource.link.as_ref().map(|link| format!("{} {}", link.kind, link.id));
        table.row([
            resource.name.clone(),
            resource.executor.clone(),
            resource.status.clone(),
            format::optional(action),
            percent(resource.progress),
            link.unwrap_or_default(),
            resource.status_reason.clone(),
        ])
    };
    let header = ["RESOURCE", "EXECUTOR", "STATUS", "ACTION", "PROGRESS", "LINK", "REASON"];
    (!resources.is_empty()).then(|| resources.iter().fold(Table::new(&header), row).render())
}

/// Log tail of a failed resource.
fn log_tail(resource: &Resource) -> Option<String> {
    let line = |text: String, line: &String| format!("{text}  {}\n", table::clean(line));
    let title = format!("last log lines of {}:\n", resource.name);
    let lines = resource.last_log.as_ref().filter(|lines| !lines.is_empty());
    lines.map(|lines| lines.iter().fold(title, line))
}

fn endpoints(endpoints: &[StatusEndpoint]) -> Option<String> {
    let row = |table: Table, check: &StatusEndpoint| {
        table.row([check.resource.clone(), check.url.clone()])
    };
    let table = || endpoints.iter().fold(Table::new(&["RESOURCE", "HEALTH CHECK"]), row).render();
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
            "status_words": "Deployed - OK", "status_reason": "Healthy.", "progress": 100,
            "status_since": "2026-01-02T03:05:05.6Z", "destroy_at": "2026-01-09T03:04:05Z",
            "entry_points": ["http://127.0.0.1:80/"],
            "status_endpoints": [{"resource": "web", "url": "http://127.0.0.1:80/healthz"}],
            "resources": [
                {"name": "bus", "executor": "service", "act": "nothing", "status": "applied",
                 "status_reason": "", "progress": 100,
                 "link": {"kind": "instance", "id": "i1", "href": "/x"}},
                {"name": "web", "executor": "deployment", "act": "update", "status": "pending",
                 "status_reason": "Waiting for bus."}]}))
    }

    #[test]
    fn table_has_one_row_per_environment() {
        let want = "\
ID                    NAME  STATUS    PROGRESS  TEMPLATES   ENTRY POINTS          EXPIRES               CREATED               REASON
9m4e2mr0ui3e8a215n4g  prod  deployed  100%      shop@1.4.0  http://127.0.0.1:80/  2026-01-09T03:04:05Z  2026-01-02T03:04:05Z  Healthy.
";
        assert_eq!(table(&[environment()]), want);
    }

    #[test]
    fn details_show_all_fields() {
        let want = "\
ID            9m4e2mr0ui3e8a215n4g
NAME          prod
DESCRIPTION   The shop
TAGS          team=web
STATUS        deployed (Deployed - OK)
SINCE         2026-01-02T03:05:05Z
REASON        Healthy.
PROGRESS      100%
ENTRY POINTS  http://127.0.0.1:80/
TEMPLATES     shop@1.4.0
PARAMETERS    names=[\"a\"],replicas=3
ON DRIFT      report
CREATED       2026-01-02T03:04:05Z
EXPIRES       2026-01-09T03:04:05Z
DESTROYED     -

RESOURCE  EXECUTOR    STATUS   ACTION  PROGRESS  LINK         REASON
bus       service     applied  -       100%      instance i1  -
web       deployment  pending  update  0%        -            Waiting for bus.

RESOURCE  HEALTH CHECK
web       http://127.0.0.1:80/healthz
";
        assert_eq!(details(&environment()), want);
    }

    #[test]
    fn failed_resource_shows_its_log_tail() {
        let failed = fixture::environment(&json!({"status": "failed", "resources": [
            {"name": "web", "status": "failed", "last_log": ["it begins", "it is \u{1b}[31mno"]}]}));
        let shown = details(&failed);
        assert!(
            shown.ends_with("\n\nlast log lines of web:\n  it begins\n  it is \u{fffd}[31mno\n"),
            "{shown}"
        );
    }

    #[test]
    fn environment_of_another_server_version_is_shown() {
        let newer = json!({"status": "new", "cancelling": true, "on_drift": "ask", "moons": 2,
            "resources": [{"name": "a", "status": "odd", "act": "odd", "executor": "odd"}]});
        let newer = fixture::environment(&newer);
        assert!(table(std::slice::from_ref(&newer)).contains("prod  new (cancelling)"));
        assert!(details(&newer).contains("a         odd       odd     odd"));
    }
}
