//! `paddock env plan`: what would be done, before it is.

use std::fmt::Write as _;

use serde_json::{Value, json};
use wire::environment::plan::{Plan, Step, Summary};

use super::wish::{Wanted, Wish};
use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::format::{self, shell_word};
use crate::client::http::{Answer, Api};
use crate::client::print::Printer;
use crate::client::subject::{self, ENVIRONMENT, Subject};
use crate::client::table::Table;

/// `paddock env plan`.
#[derive(clap::Args)]
#[command(after_help = "\
+ is made, ~ is changed, ± is destroyed and made again, - is destroyed. What is said of an
environment that exists is a change of it; what is not said stays.

Example:
  paddock env plan shop --template web-shop@1.4.0 --set replicas=3
  paddock env plan shop --template web-shop@1.5.0 --all
  paddock env plan shop --destroy")]
pub(crate) struct Args {
    /// What the environment is, or shall be, called
    name: String,
    #[command(flatten)]
    wish: Wish,
    /// Plans its end
    #[arg(long, conflicts_with_all = ["templates", "set", "parameters"])]
    destroy: bool,
    /// Also shows what nothing is done to
    #[arg(long)]
    all: bool,
}

/// Plans an environment.
pub(super) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let wanted = args.wish.read(api).await?;
    let there = if args.destroy {
        Some(subject::find(api, &ENVIRONMENT, &args.name).await?)
    } else {
        subject::find_if_any(api, &ENVIRONMENT, &args.name).await?
    };
    let answer = ask(api, &args.name, there.as_ref(), &wanted, args.destroy).await?;
    printer.answer(&answer, || Ok(text(&api.read(&answer)?, args.all)))?;
    let plan: Plan = api.read(&answer)?;
    if is_empty(&plan.summary) && there.is_some() && !args.destroy {
        printer.note("there is nothing to do");
        return Ok(());
    }
    let next = if args.destroy {
        format!("paddock env destroy {}", shell_word(&args.name))
    } else {
        format!("{} --plan {}", wanted.command("apply", &args.name), plan.hash)
    };
    printer.note(&format!("nothing was done yet; this does it: {next}"));
    Ok(())
}

/// Asks the server what would be done to what is there, or what is not there yet.
pub(super) async fn ask(
    api: &Api,
    name: &str,
    there: Option<&Subject>,
    wanted: &Wanted,
    destroy: bool,
) -> Result<Answer, Error> {
    let call = match there {
        Some(subject) if destroy => {
            let body = json!({ "destroy": true });
            Call::post(&["environments", &subject.id, "plan"], Some(body))
        }
        Some(subject) => Call::post(&["environments", &subject.id, "plan"], Some(changed(wanted))),
        None => Call::post(&["environments", "plan"], Some(asked(name, wanted)?)),
    };
    api.send(&call).await
}

/// What is asked of an environment that is there: what was not said stays.
pub(super) fn changed(wanted: &Wanted) -> Value {
    let mut body = json!({});
    if !wanted.templates.is_empty() {
        body["templates"] = json!(wanted.templates);
    }
    if !wanted.parameters.is_empty() {
        body["parameters"] = json!(wanted.parameters);
    }
    body
}

/// What is asked of an environment that is not there yet.
pub(super) fn asked(name: &str, wanted: &Wanted) -> Result<Value, Error> {
    if wanted.templates.is_empty() {
        return Err(Error::failed_but(
            format!("there is no environment {name:?}"),
            "to make it, say from which template with --template; \"paddock template list\" shows them, \
             \"paddock env list\" the environments",
        ));
    }
    let mut body = changed(wanted);
    body["name"] = name.into();
    Ok(body)
}

/// A plan as people see it.
pub(super) fn text(plan: &Plan, all: bool) -> String {
    let shown: Vec<&Step> = plan.steps.iter().filter(|step| all || step.act != "nothing").collect();
    let row = |table: Table, step: &&Step| {
        table.row([
            format!("{} {}", sign(step), step.act),
            step.name.clone(),
            step.executor.clone(),
            format::join(step.after.clone()),
            step.reason.clone(),
        ])
    };
    let header = ["DO", "RESOURCE", "EXECUTOR", "AFTER", "REASON"];
    let mut text = String::new();
    if !shown.is_empty() {
        text = shown.iter().fold(Table::new(&header), row).render() + "\n";
    }
    let told = write!(text, "{}.\nplan {}\n", summary(&plan.summary), plan.hash);
    told.expect("a String takes everything");
    text
}

/// A step in a word: its sign and its resource; none if nothing is done.
pub(crate) fn signed(step: &Step) -> Option<String> {
    (step.act != "nothing").then(|| format!("{} {}", sign(step), step.name))
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

/// Whether there is nothing to do.
pub(super) fn is_empty(sum: &Summary) -> bool {
    sum.create + sum.update + sum.replace + sum.destroy == 0
}

/// How much of what.
pub(crate) fn summary(sum: &Summary) -> String {
    let counts = [
        (sum.create, "to create"),
        (sum.update, "to update"),
        (sum.replace, "to replace"),
        (sum.destroy, "to destroy"),
        (sum.nothing, "as is"),
    ];
    let parts = counts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, words)| format!("{count} {words}")).collect();
    if parts.is_empty() { "nothing to do".into() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        serde_json::from_str(
            r#"{"hash":"abc","summary":{"create":1,"update":1,"replace":1,"destroy":1,"nothing":1},
                "steps":[
                {"name":"net","executor":"terraform","act":"nothing","reason":"It is as it should be.","after":[]},
                {"name":"bus","executor":"service","act":"replace","reason":"its kind changed","after":["net"]},
                {"name":"web","executor":"deployment","act":"create","reason":"it is new","after":["net","bus"]},
                {"name":"kv","executor":"consul-kv","act":"update","reason":"values changed","after":[]},
                {"name":"old","executor":"deployment","act":"destroy","reason":"no template has it","after":[]}]}"#,
        )
        .unwrap()
    }

    #[test]
    fn a_plan_shows_what_is_done_and_why() {
        let want = "\
DO         RESOURCE  EXECUTOR    AFTER    REASON
± replace  bus       service     net      its kind changed
+ create   web       deployment  net,bus  it is new
~ update   kv        consul-kv   -        values changed
- destroy  old       deployment  -        no template has it

1 to create, 1 to update, 1 to replace, 1 to destroy, 1 as is.
plan abc
";
        assert_eq!(text(&plan(), false), want);
        assert!(text(&plan(), true).contains("= nothing  net       terraform   -        It is"));
    }

    #[test]
    fn a_plan_without_steps_is_its_summary() {
        let plan: Plan = serde_json::from_str(
            r#"{"hash":"abc","steps":[],
            "summary":{"create":0,"update":0,"replace":0,"destroy":0,"nothing":0}}"#,
        )
        .unwrap();
        assert_eq!(text(&plan, false), "nothing to do.\nplan abc\n");
        assert!(is_empty(&plan.summary));
    }

    #[test]
    fn what_is_not_there_needs_a_template() {
        let error = asked("shop", &Wanted::default()).unwrap_err();
        assert_eq!(error.what(), "there is no environment \"shop\"");
        assert!(error.next().unwrap().contains("--template"));
        assert_eq!(changed(&Wanted::default()), json!({}));
        let wanted = Wanted { templates: vec!["shop@1".into()], ..Wanted::default() };
        let want = json!({"name": "prod", "templates": ["shop@1"]});
        assert_eq!(asked("prod", &wanted).unwrap(), want);
    }
}
