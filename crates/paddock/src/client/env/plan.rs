//! `paddock env plan`: shows planned changes.

use std::fmt::Write as _;

use serde_json::{Value, json};
use wire::environment::plan::{Plan, Step, Summary};

use super::spec::{Spec, SpecArgs};
use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::format::{self, shell_word};
use crate::client::http::{Api, ApiResponse};
use crate::client::print::Printer;
use crate::client::subject::{self, ENVIRONMENT, Subject};
use crate::client::table::Table;

/// `paddock env plan`.
#[derive(clap::Args)]
#[command(after_help = "\
+ create, ~ update, ± replace (destroy and create), - destroy. If the environment exists, only the
given options change.

Example:
  paddock env plan shop --template web-shop@1.4.0 --set replicas=3
  paddock env plan shop --template web-shop@1.5.0 --all
  paddock env plan shop --destroy")]
pub(crate) struct Args {
    /// Name of the environment
    name: String,
    #[command(flatten)]
    spec: SpecArgs,
    /// Plan the destruction of the environment
    #[arg(long, conflicts_with_all = ["templates", "set", "parameters"])]
    destroy: bool,
    /// Include unchanged resources
    #[arg(long)]
    all: bool,
}

/// Plans an environment.
pub(super) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let spec = args.spec.read(api).await?;
    let existing = if args.destroy {
        Some(subject::find(api, &ENVIRONMENT, &args.name).await?)
    } else {
        subject::find_if_any(api, &ENVIRONMENT, &args.name).await?
    };
    let response = request(api, &args.name, existing.as_ref(), &spec, args.destroy).await?;
    printer.response(&response, || Ok(text(&api.read(&response)?, args.all)))?;
    let plan: Plan = api.read(&response)?;
    if is_empty(&plan.summary) && existing.is_some() && !args.destroy {
        printer.note("no changes");
        return Ok(());
    }
    let next = if args.destroy {
        format!("paddock env destroy {}", shell_word(&args.name))
    } else {
        format!("{} --plan {}", spec.command("apply", &args.name), plan.hash)
    };
    printer.note(&format!("no changes made; to apply this plan, run: {next}"));
    Ok(())
}

/// Requests a plan for an existing or a new environment.
pub(super) async fn request(
    api: &Api,
    name: &str,
    existing: Option<&Subject>,
    spec: &Spec,
    destroy: bool,
) -> Result<ApiResponse, Error> {
    let call = match existing {
        Some(subject) if destroy => {
            let body = json!({ "destroy": true });
            Call::post(&["environments", &subject.id, "plan"], Some(body))
        }
        Some(subject) => {
            Call::post(&["environments", &subject.id, "plan"], Some(update_body(spec)))
        }
        None => Call::post(&["environments", "plan"], Some(create_body(name, spec)?)),
    };
    api.send(&call).await
}

/// Request body for an existing environment; omitted fields stay unchanged.
pub(super) fn update_body(spec: &Spec) -> Value {
    let mut body = json!({});
    if !spec.templates.is_empty() {
        body["templates"] = json!(spec.templates);
    }
    if !spec.parameters.is_empty() {
        body["parameters"] = json!(spec.parameters);
    }
    body
}

/// Request body for a new environment.
pub(super) fn create_body(name: &str, spec: &Spec) -> Result<Value, Error> {
    if spec.templates.is_empty() {
        return Err(Error::failed_with_hint(
            format!("environment {name:?} not found"),
            "to create it, use --template (see \"paddock template list\"); \
             run \"paddock env list\" to see existing environments",
        ));
    }
    let mut body = update_body(spec);
    body["name"] = name.into();
    Ok(body)
}

/// A plan as text.
pub(super) fn text(plan: &Plan, all: bool) -> String {
    let shown: Vec<&Step> = plan.steps.iter().filter(|step| all || step.act != "nothing").collect();
    let row = |table: Table, step: &&Step| {
        table.row([
            format!("{} {}", sign(step), action(step)),
            step.name.clone(),
            step.executor.clone(),
            format::join(step.after.clone()),
            step.reason.clone(),
        ])
    };
    let header = ["ACTION", "RESOURCE", "EXECUTOR", "AFTER", "REASON"];
    let mut text = String::new();
    if !shown.is_empty() {
        text = shown.iter().fold(Table::new(&header), row).render() + "\n";
    }
    let written = write!(text, "{}.\nplan {}\n", summary(&plan.summary), plan.hash);
    written.expect("writing to a String cannot fail");
    text
}

/// Sign and resource of a step; `None` if it is unchanged.
pub(crate) fn signed(step: &Step) -> Option<String> {
    (step.act != "nothing").then(|| format!("{} {}", sign(step), step.name))
}

/// The action, with the term of the summary for `nothing`.
fn action(step: &Step) -> &str {
    match step.act.as_str() {
        "nothing" => "unchanged",
        action => action,
    }
}

fn sign(step: &Step) -> &'static str {
    match step.act.as_str() {
        "create" => "+",
        "update" => "~",
        "replace" => "±",
        "destroy" => "-",
        "nothing" => "=",
        _ => "?",
    }
}

/// Whether the plan has no changes.
pub(super) fn is_empty(sum: &Summary) -> bool {
    sum.create + sum.update + sum.replace + sum.destroy == 0
}

/// Number of steps by action.
pub(crate) fn summary(sum: &Summary) -> String {
    let counts = [
        (sum.create, "to create"),
        (sum.update, "to update"),
        (sum.replace, "to replace"),
        (sum.destroy, "to destroy"),
        (sum.nothing, "unchanged"),
    ];
    let parts = counts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, action)| format!("{count} {action}")).collect();
    if parts.is_empty() { "no changes".into() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        serde_json::from_str(
            r#"{"hash":"abc","summary":{"create":1,"update":1,"replace":1,"destroy":1,"nothing":1},
                "steps":[
                {"name":"net","executor":"terraform","act":"nothing","reason":"Unchanged.","after":[]},
                {"name":"bus","executor":"service","act":"replace","reason":"its kind changed","after":["net"]},
                {"name":"web","executor":"deployment","act":"create","reason":"it is new","after":["net","bus"]},
                {"name":"kv","executor":"consul-kv","act":"update","reason":"values changed","after":[]},
                {"name":"old","executor":"deployment","act":"destroy","reason":"no template has it","after":[]}]}"#,
        )
        .unwrap()
    }

    #[test]
    fn plan_shows_changes_and_reasons() {
        let want = "\
ACTION     RESOURCE  EXECUTOR    AFTER    REASON
± replace  bus       service     net      its kind changed
+ create   web       deployment  net,bus  it is new
~ update   kv        consul-kv   -        values changed
- destroy  old       deployment  -        no template has it

1 to create, 1 to update, 1 to replace, 1 to destroy, 1 unchanged.
plan abc
";
        assert_eq!(text(&plan(), false), want);
        assert!(
            text(&plan(), true).contains("= unchanged  net       terraform   -        Unchanged.")
        );
    }

    #[test]
    fn empty_plan_shows_only_its_summary() {
        let plan: Plan = serde_json::from_str(
            r#"{"hash":"abc","steps":[],
            "summary":{"create":0,"update":0,"replace":0,"destroy":0,"nothing":0}}"#,
        )
        .unwrap();
        assert_eq!(text(&plan, false), "no changes.\nplan abc\n");
        assert!(is_empty(&plan.summary));
    }

    #[test]
    fn new_environment_needs_a_template() {
        let error = create_body("shop", &Spec::default()).unwrap_err();
        assert_eq!(error.message(), "environment \"shop\" not found");
        assert!(error.hint().unwrap().contains("--template"));
        assert_eq!(update_body(&Spec::default()), json!({}));
        let spec = Spec { templates: vec!["shop@1".into()], ..Spec::default() };
        let want = json!({"name": "prod", "templates": ["shop@1"]});
        assert_eq!(create_body("prod", &spec).unwrap(), want);
    }
}
