//! Table and detail views of templates.

use serde_json::Value;
use wire::executor::{Executor, ExecutorList};
use wire::template::{File, Template};

use crate::client::format;
use crate::client::table::{self, Table};

/// One row per version.
pub(super) fn table(templates: &[Template]) -> String {
    let header = ["NAME", "VERSION", "SHARED", "COMMIT", "CREATED", "DEPRECATED", "DESCRIPTION"];
    templates.iter().fold(Table::new(&header), |table, item| table.row(row(item))).render()
}

fn row(template: &Template) -> [String; 7] {
    [
        template.name.clone(),
        template.version.clone(),
        format::yes_or_no(template.shared),
        short(template.commit.as_deref()),
        format::timestamp(template.created_at),
        format::optional(template.deprecated_why.as_ref()),
        template.description.clone(),
    ]
}

/// One row per executor, with the reason if it is unavailable.
pub(super) fn executors(all: &ExecutorList) -> String {
    let row = |table: Table, executor: &Executor| {
        let reason = format::optional(executor.reason.as_ref());
        table.row([executor.name.clone(), format::yes_or_no(executor.available), reason])
    };
    all.items.iter().fold(Table::new(&["EXECUTOR", "AVAILABLE", "REASON"]), row).render()
}

/// Abbreviated commit.
fn short(commit: Option<&str>) -> String {
    commit.unwrap_or_default().chars().take(12).collect()
}

/// All fields of one version.
pub(super) fn details(template: &Template) -> String {
    let fields = table::fields(&[
        ("NAME", template.name.clone()),
        ("VERSION", template.version.clone()),
        ("DESCRIPTION", template.description.clone()),
        ("TAGS", format::pairs(&template.tags)),
        ("SHARED", format::yes_or_no(template.shared)),
        ("COMMIT", format::optional(template.commit.as_ref())),
        ("HASH", template.hash.clone()),
        ("DEPRECATED", format::optional(template.deprecated_why.as_ref())),
        ("NEEDS", format::join(template.needs.iter().flatten().cloned())),
        ("ENTRY POINTS", format::join(template.entry_points.iter().flatten().cloned())),
        ("CREATED", format::timestamp(template.created_at)),
    ]);
    let parts = [parameters(template), resources(template), files(template)];
    parts.into_iter().flatten().fold(fields, |text, part| format!("{text}\n{part}"))
}

fn parameters(template: &Template) -> Option<String> {
    let header = ["PARAMETER", "TYPE", "DEFAULT", "DESCRIPTION"];
    let row = |table: Table, (name, parameter): (&String, &Value)| {
        let [kind, default, description] =
            ["type", "default", "description"].map(|field| text(parameter, field));
        table.row([name.clone(), kind, default, description])
    };
    let all = template.parameters.as_ref()?.as_object().filter(|all| !all.is_empty())?;
    Some(all.iter().fold(Table::new(&header), row).render())
}

/// Resources and actions.
fn resources(template: &Template) -> Option<String> {
    let resources = items(template.resources.as_ref()).iter().map(|item| {
        let [name, executor, count, description] =
            ["name", "executor", "count", "description"].map(|field| text(item, field));
        [name, executor, count, texts(item, "depends_on"), description]
    });
    let actions = items(template.actions.as_ref()).iter().map(|item| {
        [text(item, "name"), "action".into(), String::new(), texts(item, "after"), String::new()]
    });
    let header = ["RESOURCE", "EXECUTOR", "COUNT", "DEPENDS ON", "DESCRIPTION"];
    let rows: Vec<[String; 5]> = resources.chain(actions).collect();
    (!rows.is_empty()).then(|| rows.into_iter().fold(Table::new(&header), Table::row).render())
}

fn files(template: &Template) -> Option<String> {
    let row = |table: Table, file: &File| {
        let size = format::size_bytes(file.size_bytes.unsigned_abs());
        table.row([file.path.clone(), size])
    };
    let all = template.files.as_ref().filter(|all| !all.is_empty())?;
    Some(all.iter().fold(Table::new(&["FILE", "SIZE"]), row).render())
}

/// A field of a free-form declaration; empty if missing.
fn text(object: &Value, field: &str) -> String {
    format::value(object.get(field))
}

fn texts(object: &Value, field: &str) -> String {
    format::join(items(object.get(field)).iter().map(|item| format::value(Some(item))))
}

fn items(array: Option<&Value>) -> &[Value] {
    array.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template() -> Template {
        serde_json::from_str(
            r#"{"id":"9m4e2mr0ui3e8a215n4g","name":"shop","version":"1.4.0","reference":"shop@1.4.0",
                "organization_id":null,"shared":true,"description":"The shop","tags":{"team":"web"},
                "commit":"0123456789abcdef0123456789abcdef01234567","hash":"h4sh",
                "parameters":{"replicas":{"type":"integer","default":2,"description":"How many"},
                              "domain":{"type":"string"}},
                "needs":[],"groups":[],
                "resources":[{"name":"bus","executor":"service","with":{"kind":"kafka"}},
                             {"name":"web","executor":"deployment","count":"{{ replicas }}",
                              "depends_on":["bus"],"description":"The servers"}],
                "actions":[{"name":"migrate","after":["web"],"app":{"name":"m"}}],
                "entry_points":["http://{{ web.endpoint }}/"],
                "files":[{"path":"network/main.tf","size_bytes":2048}],
                "deprecated_at":null,"deprecated_why":null,"created_by":"u",
                "created_at":"2026-01-02T03:04:05.6Z"}"#,
        )
        .unwrap()
    }

    #[test]
    fn table_has_one_row_per_version() {
        let want = "\
NAME  VERSION  SHARED  COMMIT        CREATED               DEPRECATED  DESCRIPTION
shop  1.4.0    yes     0123456789ab  2026-01-02T03:04:05Z  -           The shop
";
        assert_eq!(table(&[template()]), want);
    }

    #[test]
    fn details_show_all_fields() {
        let want = "\
NAME          shop
VERSION       1.4.0
DESCRIPTION   The shop
TAGS          team=web
SHARED        yes
COMMIT        0123456789abcdef0123456789abcdef01234567
HASH          h4sh
DEPRECATED    -
NEEDS         -
ENTRY POINTS  http://{{ web.endpoint }}/
CREATED       2026-01-02T03:04:05Z

PARAMETER  TYPE     DEFAULT  DESCRIPTION
domain     string   -        -
replicas   integer  2        How many

RESOURCE  EXECUTOR    COUNT           DEPENDS ON  DESCRIPTION
bus       service     -               -           -
web       deployment  {{ replicas }}  bus         The servers
migrate   action      -               web         -

FILE             SIZE
network/main.tf  2Ki
";
        assert_eq!(details(&template()), want);
    }

    #[test]
    fn template_of_another_server_version_is_shown() {
        let newer: Template = serde_json::from_str(
            r#"{"id":"9m4e2mr0ui3e8a215n4g","name":"a","version":"1","reference":"a@1","shared":false,
                "description":"","tags":{},"hash":"h","created_by":"u","moons":2,
                "created_at":"2026-01-02T03:04:05Z","parameters":{"x":{"type":"moon"}},
                "resources":[{"name":"m","executor":"rocket","orbit":[]}]}"#,
        )
        .unwrap();
        assert!(details(&newer).starts_with("NAME          a\n"));
        assert!(details(&newer).contains("m         rocket"));
    }
}
