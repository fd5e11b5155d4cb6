//! `paddock env apply`: creates or updates an environment.

use std::collections::BTreeMap;

use clap::builder::PossibleValuesParser;
use model::environment::OnDrift;
use serde_json::{Value, json};
use wire::environment::plan::Plan;

use super::plan;
use super::spec::{Spec, SpecArgs};
use super::view;
use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::http::{Api, ApiResponse};
use crate::client::parse;
use crate::client::print::Printer;
use crate::client::prompt;
use crate::client::resources::unique;
use crate::client::subject::{self, ENVIRONMENT, Subject};
use crate::client::wait::{Goal, Wait, settle};

/// `paddock env apply`.
#[derive(clap::Args)]
#[command(after_help = "\
If the environment exists, only the given options change. At a terminal, the plan is shown first and
applied after confirmation. --plan applies exactly that plan, or fails if anything has changed.
All options are applied, or none if another operation is running.

Example:
  paddock env apply shop --template web-shop@1.4.0 --set replicas=3 --ttl 7d --wait
  paddock env apply shop --template web-shop@1.5.0 --plan 5e0c9b… --wait
  paddock env apply shop --template web-shop@1.4.0 --adopt web-0=old-web --tag team=shop --yes")]
pub(crate) struct Args {
    /// Name of the environment
    name: String,
    #[command(flatten)]
    spec: SpecArgs,
    /// Apply only this plan
    #[arg(long, value_name = "HASH")]
    plan: Option<String>,
    #[command(flatten)]
    metadata: Metadata,
    /// Existing object that a resource adopts instead of creating its own; repeatable
    #[arg(long = "adopt", value_name = "RESOURCE=OBJECT", value_parser = parse::pair)]
    adopt: Vec<(String, String)>,
    /// Skip the confirmation prompt
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    wait: Wait,
}

/// Properties of an environment besides its resources.
#[derive(Debug, Default, clap::Args)]
struct Metadata {
    /// Tag; repeatable, replaces all existing tags
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = parse::pair)]
    tags: Vec<(String, String)>,
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Action on drift [default: report]
    #[arg(long, value_name = "ACTION", value_parser = on_drift())]
    on_drift: Option<String>,
    /// Destroy the environment after this time, such as 12h or 7d
    #[arg(long, value_name = "DURATION", value_parser = parse::seconds, conflicts_with = "destroy_at")]
    ttl: Option<u64>,
    /// Destroy the environment at this time, such as 2030-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse::until)]
    destroy_at: Option<String>,
}

fn on_drift() -> PossibleValuesParser {
    OnDrift::ALL.iter().map(|choice| choice.as_str()).collect::<Vec<_>>().into()
}

/// Creates or updates an environment.
pub(super) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let spec = args.spec.read(api).await?;
    let adopt = unique("adoption of", args.adopt)?;
    let existing = subject::find_if_any(api, &ENVIRONMENT, &args.name).await?;
    let hash = match args.plan {
        None if !args.yes => confirm(api, printer, &args.name, existing.as_ref(), &spec).await?,
        given => given,
    };
    let sent = match &existing {
        None => create(api, &args.name, &spec, &args.metadata, &adopt, hash.as_deref()).await,
        Some(existing) => {
            update(api, existing, &spec, &args.metadata, &adopt, hash.as_deref()).await
        }
    };
    let sent = sent.map_err(|error| with_hint(error, &args.name, &spec, hash.is_some()))?;
    let response = settle(api, &ENVIRONMENT, sent, Goal::DEPLOYED, args.wait.limit()).await?;
    printer.response(&response, || Ok(view::table(&[api.read(&response)?])))
}

/// At a terminal, shows the plan, asks for confirmation and returns the hash of the plan.
async fn confirm(
    api: &Api,
    printer: &Printer,
    name: &str,
    existing: Option<&Subject>,
    spec: &Spec,
) -> Result<Option<String>, Error> {
    if !prompt::is_interactive() {
        return Ok(None);
    }
    let plan: Plan = api.read(&plan::request(api, name, existing, spec, false).await?)?;
    plan::text(&plan, false).lines().for_each(|line| printer.note(line));
    if !plan::is_empty(&plan.summary) {
        prompt::confirm(&format!("Apply this plan to environment {name}?"), false)?;
    }
    Ok(Some(plan.hash))
}

async fn create(
    api: &Api,
    name: &str,
    spec: &Spec,
    metadata: &Metadata,
    adopt: &BTreeMap<String, String>,
    hash: Option<&str>,
) -> Result<ApiResponse, Error> {
    let body = complete(plan::create_body(name, spec)?, metadata, adopt, hash)?;
    api.send(&Call::create(&["environments"], body)).await
}

/// Updates an environment in one call: all changes are accepted, or none.
async fn update(
    api: &Api,
    existing: &Subject,
    spec: &Spec,
    metadata: &Metadata,
    adopt: &BTreeMap<String, String>,
    hash: Option<&str>,
) -> Result<ApiResponse, Error> {
    let body = complete(plan::update_body(spec), metadata, adopt, hash)?;
    api.send(&Call::post(&["environments", &existing.id, "apply"], Some(body))).await
}

/// Adds metadata, adoptions and plan hash to a request body.
fn complete(
    mut body: Value,
    metadata: &Metadata,
    adopt: &BTreeMap<String, String>,
    hash: Option<&str>,
) -> Result<Value, Error> {
    metadata.add_to(&mut body)?;
    if !adopt.is_empty() {
        body["adopt"] = json!(adopt);
    }
    if let Some(hash) = hash {
        body["plan_hash"] = hash.into();
    }
    Ok(body)
}

/// Adds a hint for an outdated plan or a running operation.
fn with_hint(error: Error, name: &str, spec: &Spec, is_planned: bool) -> Error {
    match error.status() {
        Some(409) if is_planned => {
            error.or_hint(format!("plan again: {}", spec.command("plan", name)))
        }
        Some(409) => error.or_hint(format!(r#"run "paddock env show {name}" to see its status"#)),
        _ => error,
    }
}

impl Metadata {
    /// Adds the given fields to a request body.
    fn add_to(&self, body: &mut Value) -> Result<(), Error> {
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
    fn only_given_fields_are_sent() {
        let mut body = json!({});
        Metadata::default().add_to(&mut body).unwrap();
        assert_eq!(body, json!({}));
        let metadata = Metadata {
            tags: vec![("team".into(), "shop".into())],
            description: Some(String::new()),
            on_drift: Some("repair".into()),
            ttl: Some(60),
            destroy_at: None,
        };
        let mut body = json!({});
        metadata.add_to(&mut body).unwrap();
        let want = json!({
            "tags": {"team": "shop"}, "description": "", "on_drift": "repair", "ttl": 60,
        });
        assert_eq!(body, want);
        let destroy_at = Some("2030-01-31T12:00:00Z".into());
        let metadata = Metadata { destroy_at, ..Metadata::default() };
        let mut body = json!({"plan_hash": "5e"});
        metadata.add_to(&mut body).unwrap();
        assert_eq!(body, json!({"plan_hash": "5e", "destroy_at": "2030-01-31T12:00:00Z"}));
    }
}
