//! `paddock template diff` and `paddock template impact`: compare two versions of a template.

use serde_json::Value;
use wire::template::{AffectedEnvironment, FieldChange, Impact, TemplateDiff};

use super::unknown;
use crate::client::call::Call;
use crate::client::env::plan::{signed, summary};
use crate::client::error::Error;
use crate::client::format;
use crate::client::http::Api;
use crate::client::print::Printer;
use crate::client::table::Table;

/// Two versions of a template.
#[derive(clap::Args)]
pub(crate) struct Versions {
    /// Template and two versions, or two templates with version
    #[arg(value_names = ["NAME", "FROM", "TO"], num_args = 2..=3, required = true)]
    words: Vec<String>,
}

impl Versions {
    /// Name and the two versions.
    fn read(&self) -> Result<(&str, &str, &str), Error> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let (name, from, to) = match words[..] {
            [name, from, to] => (name, from, to),
            [from, to] => match (from.split_once('@'), to.split_once('@')) {
                (Some((name, from)), Some((other, to))) if name == other => (name, from, to),
                (Some((name, from)), None) => (name, from, to),
                _ => return Err(Error::Usage(USAGE.into())),
            },
            _ => return Err(Error::Usage(USAGE.into())),
        };
        Ok((name, from, to))
    }
}

const USAGE: &str = "expected two versions of one template, such as web-shop 1.4.0 1.5.0 or \
     web-shop@1.4.0 web-shop@1.5.0";

/// Shows the differences.
pub(super) async fn diff(
    versions: &Versions,
    api: &Api,
    printer: &mut Printer,
) -> Result<(), Error> {
    let response = api.send(&call(versions, "diff")?).await.map_err(unknown)?;
    printer.response(&response, || Ok(changes(&api.read::<TemplateDiff>(&response)?.changes)))
}

/// Shows the effect of the other version on environments.
pub(super) async fn impact(
    versions: &Versions,
    api: &Api,
    printer: &mut Printer,
) -> Result<(), Error> {
    let response = api.send(&call(versions, "impact")?).await.map_err(unknown)?;
    printer
        .response(&response, || Ok(environments(&api.read::<Impact>(&response)?.environments)))?;
    printer.note("no changes made");
    Ok(())
}

fn call(versions: &Versions, what: &str) -> Result<Call, Error> {
    let (name, from, to) = versions.read()?;
    Ok(Call::get(&["templates", name, what]).query("from", Some(from)).query("to", Some(to)))
}

fn changes(changes: &[FieldChange]) -> String {
    if changes.is_empty() {
        return "No differences except the version.\n".into();
    }
    let row = |table: Table, change: &FieldChange| {
        let sign = match (&change.from, &change.to) {
            (Value::Null, _) => "+",
            (_, Value::Null) => "-",
            _ => "~",
        };
        let [from, to] = [&change.from, &change.to].map(|value| format::value(Some(value)));
        table.row([format!("{sign} {}", change.path), from, to])
    };
    changes.iter().fold(Table::new(&["FIELD", "FROM", "TO"]), row).render()
}

fn environments(environments: &[AffectedEnvironment]) -> String {
    if environments.is_empty() {
        return "No environment uses this template.\n".into();
    }
    let row = |table: Table, environment: &AffectedEnvironment| {
        table.row([
            environment.name.clone(),
            environment.status.clone(),
            environment.summary.as_ref().map(summary).unwrap_or_default(),
            format::join(environment.steps.iter().filter_map(signed)),
            format::optional(environment.problem.as_ref()),
        ])
    };
    let header = ["ENVIRONMENT", "STATUS", "SUMMARY", "STEPS", "PROBLEM"];
    environments.iter().fold(Table::new(&header), row).render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_in_two_forms() {
        for (words, want) in [
            ("shop 1 2", Some(("shop", "1", "2"))),
            ("shop@1 shop@2", Some(("shop", "1", "2"))),
            ("shop@1 2", Some(("shop", "1", "2"))),
            ("shop@1 web@2", None),
            ("shop 1", None),
            ("shop shop@2", None),
        ] {
            let versions = Versions { words: words.split_whitespace().map(Into::into).collect() };
            assert_eq!(versions.read().ok(), want, "{words}");
        }
    }

    #[test]
    fn diff_has_one_row_per_field() {
        let diff: TemplateDiff = serde_json::from_str(
            r#"{"name":"shop","from":"1","to":"2","changes":[
                {"path":"parameters.size","from":null,"to":{"type":"integer"}},
                {"path":"resources.bus","from":{"executor":"service"},"to":null},
                {"path":"resources.web.with.image","from":"nginx:1","to":"nginx:2"}]}"#,
        )
        .unwrap();
        let want = "\
FIELD                       FROM                    TO
+ parameters.size           -                       {\"type\":\"integer\"}
- resources.bus             {\"executor\":\"service\"}  -
~ resources.web.with.image  nginx:1                 nginx:2
";
        assert_eq!(changes(&diff.changes), want);
        assert_eq!(changes(&[]), "No differences except the version.\n");
    }

    #[test]
    fn impact_has_one_row_per_environment() {
        let impact: Impact = serde_json::from_str(
            r#"{"name":"shop","from":"1","to":"2","environments":[
                {"id":"9m4e2mr0ui3e8a215n4g","name":"prod","status":"deployed","hash":"h","problem":null,
                 "summary":{"create":1,"update":0,"replace":1,"destroy":0,"nothing":2},
                 "steps":[{"name":"bus","executor":"service","act":"replace","reason":"r","after":[]},
                          {"name":"web","executor":"deployment","act":"create","reason":"r","after":[]},
                          {"name":"net","executor":"terraform","act":"nothing","reason":"","after":[]}]},
                {"id":"9m4e2mr0ui3e8a215n50","name":"lab","status":"failed","hash":null,"summary":null,"steps":[],
                 "problem":"parameters.size: is required"}]}"#,
        )
        .unwrap();
        let want = "\
ENVIRONMENT  STATUS    SUMMARY                                 STEPS        PROBLEM
prod         deployed  1 to create, 1 to replace, 2 unchanged  ± bus,+ web  -
lab          failed    -                                       -            parameters.size: is required
";
        assert_eq!(environments(&impact.environments), want);
        assert_eq!(environments(&[]), "No environment uses this template.\n");
    }
}
