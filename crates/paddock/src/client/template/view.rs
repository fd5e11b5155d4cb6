//! Templates as people see them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::client::format;
use crate::client::table::{self, Table};

/// The part of a template that the client shows.
#[derive(Debug, Deserialize)]
pub(super) struct Template {
    name: String,
    version: String,
    #[serde(default)]
    shared: bool,
    #[serde(default)]
    description: String,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    #[serde(default)]
    commit: Option<String>,
    #[serde(default)]
    hash: Option<String>,
    #[serde(default)]
    deprecated_why: Option<String>,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    parameters: BTreeMap<String, Parameter>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    resources: Vec<Declared>,
    #[serde(default)]
    actions: Vec<Action>,
    #[serde(default)]
    entry_points: Vec<String>,
    #[serde(default)]
    files: Vec<File>,
}

/// Something that can be set.
#[derive(Debug, Deserialize)]
struct Parameter {
    #[serde(rename = "type", default)]
    of: String,
    #[serde(default)]
    default: Option<Value>,
    #[serde(default)]
    description: String,
}

/// A resource, as a template declares it.
#[derive(Debug, Deserialize)]
struct Declared {
    name: String,
    #[serde(default)]
    executor: String,
    #[serde(default)]
    count: Option<Value>,
    #[serde(default)]
    depends_on: Vec<String>,
    #[serde(default)]
    description: String,
}

/// What runs after resources are there.
#[derive(Debug, Deserialize)]
struct Action {
    name: String,
    #[serde(default)]
    after: Vec<String>,
}

/// A file that was published with it.
#[derive(Debug, Deserialize)]
struct File {
    path: String,
    #[serde(default)]
    size_bytes: u64,
}

/// One line a version.
pub(super) fn table(templates: &[Template]) -> String {
    let header = ["NAME", "VERSION", "SHARED", "COMMIT", "CREATED", "DEPRECATED", "DESCRIPTION"];
    templates.iter().fold(Table::new(&header), |table, one| table.row(row(one))).render()
}

fn row(template: &Template) -> [String; 7] {
    [
        template.name.clone(),
        template.version.clone(),
        format::yes_or_no(template.shared),
        short(template.commit.as_deref()),
        format::time(template.created_at.as_deref()),
        format::optional(template.deprecated_why.as_ref()),
        template.description.clone(),
    ]
}

/// Who can carry out resources.
#[derive(Debug, Deserialize)]
pub(super) struct Executors {
    items: Vec<Executor>,
}

/// Somebody who carries out resources.
#[derive(Debug, Deserialize)]
struct Executor {
    name: String,
    #[serde(default)]
    available: bool,
    #[serde(default)]
    reason: Option<String>,
}

/// All executors, and what those need that can't be used.
pub(super) fn executors(all: &Executors) -> String {
    let row = |table: Table, one: &Executor| {
        let needs = format::optional(one.reason.as_ref());
        table.row([one.name.clone(), format::yes_or_no(one.available), needs])
    };
    all.items.iter().fold(Table::new(&["EXECUTOR", "SET UP", "NEEDS"]), row).render()
}

/// As much of a commit as people say.
fn short(commit: Option<&str>) -> String {
    commit.unwrap_or_default().chars().take(12).collect()
}

/// All of one version.
pub(super) fn details(template: &Template) -> String {
    let fields = table::fields(&[
        ("NAME", template.name.clone()),
        ("VERSION", template.version.clone()),
        ("DESCRIPTION", template.description.clone()),
        ("TAGS", format::pairs(&template.tags)),
        ("SHARED", format::yes_or_no(template.shared)),
        ("COMMIT", format::optional(template.commit.as_ref())),
        ("HASH", format::optional(template.hash.as_ref())),
        ("DEPRECATED", format::optional(template.deprecated_why.as_ref())),
        ("NEEDS", format::join(template.needs.clone())),
        ("ENTRY POINTS", format::join(template.entry_points.clone())),
        ("CREATED", format::time(template.created_at.as_deref())),
    ]);
    let parts = [parameters(template), resources(template), files(template)];
    parts.into_iter().flatten().fold(fields, |text, part| format!("{text}\n{part}"))
}

fn parameters(template: &Template) -> Option<String> {
    let header = ["PARAMETER", "TYPE", "DEFAULT", "DESCRIPTION"];
    let row = |table: Table, (name, one): (&String, &Parameter)| {
        let default = format::value(one.default.as_ref());
        table.row([name.clone(), one.of.clone(), default, one.description.clone()])
    };
    let table = || template.parameters.iter().fold(Table::new(&header), row).render();
    (!template.parameters.is_empty()).then(table)
}

/// Resources, and then what runs after them.
fn resources(template: &Template) -> Option<String> {
    let resources = template.resources.iter().map(|one| {
        let count = format::value(one.count.as_ref());
        let after = format::join(one.depends_on.clone());
        [one.name.clone(), one.executor.clone(), count, after, one.description.clone()]
    });
    let actions = template.actions.iter().map(|one| {
        let after = format::join(one.after.clone());
        [one.name.clone(), "action".into(), String::new(), after, String::new()]
    });
    let header = ["RESOURCE", "EXECUTOR", "COUNT", "DEPENDS ON", "DESCRIPTION"];
    let is_any = !template.resources.is_empty() || !template.actions.is_empty();
    is_any.then(|| resources.chain(actions).fold(Table::new(&header), Table::row).render())
}

fn files(template: &Template) -> Option<String> {
    let row = |table: Table, one: &File| {
        table.row([one.path.clone(), format::size_bytes(one.size_bytes)])
    };
    let table = || template.files.iter().fold(Table::new(&["FILE", "SIZE"]), row).render();
    (!template.files.is_empty()).then(table)
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
    fn a_list_has_one_line_a_version() {
        let want = "\
NAME  VERSION  SHARED  COMMIT        CREATED               DEPRECATED  DESCRIPTION
shop  1.4.0    yes     0123456789ab  2026-01-02T03:04:05Z  -           The shop
";
        assert_eq!(table(&[template()]), want);
    }

    #[test]
    fn one_version_shows_all_it_has() {
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
    fn a_template_of_another_version_is_still_shown() {
        let bare: Template = serde_json::from_str(r#"{"name":"a","version":"1"}"#).unwrap();
        assert!(details(&bare).starts_with("NAME          a\n"));
    }
}
