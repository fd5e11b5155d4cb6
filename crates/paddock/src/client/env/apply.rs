//! `paddock env apply`: makes an environment, or changes one.

use std::collections::BTreeMap;

use clap::builder::PossibleValuesParser;
use model::environment::OnDrift;
use serde_json::{Value, json};
use wire::environment::plan::Plan;

use super::plan;
use super::view;
use super::wish::{Wanted, Wish};
use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::http::{Answer, Api};
use crate::client::parse;
use crate::client::print::Printer;
use crate::client::prompt;
use crate::client::resources::unique;
use crate::client::subject::{self, ENVIRONMENT, Subject};
use crate::client::wait::{Goal, Wait, settle};

/// `paddock env apply`.
#[derive(clap::Args)]
#[command(after_help = "\
What is said of an environment that exists is a change of it; what is not said stays. At a terminal
the plan is shown first, and done if you agree; with --plan only that plan is done. All that is said
is done, or nothing: when the world has moved since the plan, or the environment does not rest.

Example:
  paddock env apply shop --template web-shop@1.4.0 --set replicas=3 --ttl 7d --wait
  paddock env apply shop --template web-shop@1.5.0 --plan 5e0c9b… --wait
  paddock env apply shop --template web-shop@1.4.0 --adopt web-0=old-web --tag team=shop --yes")]
pub(crate) struct Args {
    /// What the environment is, or shall be, called
    name: String,
    #[command(flatten)]
    wish: Wish,
    /// Does only this plan
    #[arg(long, value_name = "HASH")]
    plan: Option<String>,
    #[command(flatten)]
    about: About,
    /// What exists already and a resource takes over instead of making its own; may be repeated
    #[arg(long = "adopt", value_name = "RESOURCE=WHAT", value_parser = parse::pair)]
    adopt: Vec<(String, String)>,
    /// Does it without asking
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    wait: Wait,
}

/// What an environment is besides its resources.
#[derive(Debug, Default, clap::Args)]
struct About {
    /// A tag; may be repeated, and those said are all
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = parse::pair)]
    tags: Vec<(String, String)>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// What is done when a resource is not as it was made [default: report]
    #[arg(long, value_parser = on_drift())]
    on_drift: Option<String>,
    /// Destroys it after this time, such as 12h or 7d
    #[arg(long, value_name = "SPAN", value_parser = parse::seconds, conflicts_with = "destroy_at")]
    ttl: Option<u64>,
    /// Destroys it at this time, such as 2030-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse::until)]
    destroy_at: Option<String>,
}

fn on_drift() -> PossibleValuesParser {
    OnDrift::ALL.iter().map(|choice| choice.as_str()).collect::<Vec<_>>().into()
}

/// Makes or changes an environment.
pub(super) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let wanted = args.wish.read(api).await?;
    let adopt = unique("adoption of", args.adopt)?;
    let there = subject::find_if_any(api, &ENVIRONMENT, &args.name).await?;
    let hash = match args.plan {
        None if !args.yes => agreed(api, printer, &args.name, there.as_ref(), &wanted).await?,
        said => said,
    };
    let made = match &there {
        None => create(api, &args.name, &wanted, &args.about, &adopt, hash.as_deref()).await,
        Some(there) => change(api, there, &wanted, &args.about, &adopt, hash.as_deref()).await,
    };
    let made = made.map_err(|error| with_next(error, &args.name, &wanted, hash.is_some()))?;
    let answer = settle(api, &ENVIRONMENT, made, Goal::DEPLOYED, args.wait.limit()).await?;
    printer.answer(&answer, || Ok(view::table(&[api.read(&answer)?])))
}

/// Shows the plan to whoever sits at the terminal. What they agree to is what is done.
async fn agreed(
    api: &Api,
    printer: &Printer,
    name: &str,
    there: Option<&Subject>,
    wanted: &Wanted,
) -> Result<Option<String>, Error> {
    if !prompt::is_interactive() {
        return Ok(None);
    }
    let plan: Plan = api.read(&plan::ask(api, name, there, wanted, false).await?)?;
    plan::text(&plan, false).lines().for_each(|line| printer.note(line));
    if !plan::is_empty(&plan.summary) {
        prompt::confirm(&format!("Do this to the environment {name}?"), false)?;
    }
    Ok(Some(plan.hash))
}

async fn create(
    api: &Api,
    name: &str,
    wanted: &Wanted,
    about: &About,
    adopt: &BTreeMap<String, String>,
    hash: Option<&str>,
) -> Result<Answer, Error> {
    let body = told(plan::asked(name, wanted)?, about, adopt, hash)?;
    api.send(&Call::create(&["environments"], body)).await
}

/// Changes what is there, with one call: all of it is done, or nothing.
async fn change(
    api: &Api,
    there: &Subject,
    wanted: &Wanted,
    about: &About,
    adopt: &BTreeMap<String, String>,
    hash: Option<&str>,
) -> Result<Answer, Error> {
    let body = told(plan::changed(wanted), about, adopt, hash)?;
    api.send(&Call::post(&["environments", &there.id, "apply"], Some(body))).await
}

/// The body of a request with all else that was said.
fn told(
    mut body: Value,
    about: &About,
    adopt: &BTreeMap<String, String>,
    hash: Option<&str>,
) -> Result<Value, Error> {
    about.tell(&mut body)?;
    if !adopt.is_empty() {
        body["adopt"] = json!(adopt);
    }
    if let Some(hash) = hash {
        body["plan_hash"] = hash.into();
    }
    Ok(body)
}

/// What to do about a plan that no longer holds, or an environment that does not rest.
fn with_next(error: Error, name: &str, wanted: &Wanted, is_planned: bool) -> Error {
    match error.status() {
        Some(409) if is_planned => {
            error.or_next(format!("look again: {}", wanted.command("plan", name)))
        }
        Some(409) => error.or_next(format!(r#""paddock env show {name}" shows where it is"#)),
        _ => error,
    }
}

impl About {
    /// Adds what was said to the body of a request.
    fn tell(&self, body: &mut Value) -> Result<(), Error> {
        let tags = unique("tag", self.tags.iter().cloned())?;
        if !tags.is_empty() {
            body["tags"] = json!(tags);
        }
        for (field, text) in [
            ("description", &self.description),
            ("on_drift", &self.on_drift),
            ("destroy_at", &self.destroy_at),
        ] {
            if let Some(text) = text {
                body[field] = text.clone().into();
            }
        }
        if let Some(seconds) = self.ttl {
            body["ttl"] = seconds.into();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_said_is_sent() {
        let mut body = json!({});
        About::default().tell(&mut body).unwrap();
        assert_eq!(body, json!({}));
        let about = About {
            tags: vec![("team".into(), "shop".into())],
            description: Some(String::new()),
            on_drift: Some("repair".into()),
            ttl: Some(60),
            destroy_at: None,
        };
        let mut body = json!({});
        about.tell(&mut body).unwrap();
        let want = json!({
            "tags": {"team": "shop"}, "description": "", "on_drift": "repair", "ttl": 60,
        });
        assert_eq!(body, want);
        let about = About { destroy_at: Some("2030-01-31T12:00:00Z".into()), ..About::default() };
        let mut body = json!({"plan_hash": "5e"});
        about.tell(&mut body).unwrap();
        assert_eq!(body, json!({"plan_hash": "5e", "destroy_at": "2030-01-31T12:00:00Z"}));
    }
}
