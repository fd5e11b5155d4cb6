//! `paddock demo`: an example of everything, for the first minute with Paddock.
//!
//! Uses the same calls as the other commands, and needs no network. Running it again reuses what
//! exists.

use std::time::Duration;

use base::{OsEntropy, entropy};
use serde_json::{Value, json};
use wire::environment::Environment;
use wire::organization::NewOrganization;
use wire::user::{Credentials, NewUser, Session as LoginSession, User};

use super::call::Call;
use super::config::{Session, Token};
use super::error::Error;
use super::hint;
use super::http::{Api, ApiResponse};
use super::image;
use super::print::Printer;
use super::prompt;
use super::subject::{self, CLUSTER, DEPLOYMENT, ENVIRONMENT, INSTANCE, Kind};
use super::table;
use super::wait::{Goal, settle, wait};

/// Name of the organization, its user and its cluster.
const DEMO: &str = "demo";
/// Name of the deployment, the template and the environment.
const HELLO: &str = "hello";
const IMAGE: &str = "localhost/paddock-page:1";
const TEMPLATE: &str = include_str!("../../../../examples/hello/template.yaml");
const REFERENCE: &str = "hello@1.0.0";
/// An instance of this kind, and its name.
const SERVICE: Kind<'static> =
    Kind { noun: "dinosaur", command: "service dinosaur", service: Some("dinosaur"), ..INSTANCE };
const REX: &str = "rex";
/// Maximum wait for each object.
const LIMIT: Duration = Duration::from_mins(3);
/// Length of a generated password.
const PASSWORD_LENGTH: usize = 20;

/// `paddock demo`.
#[derive(clap::Args)]
#[command(after_help = "\
Requires a running server with the embedded or docker runtime. If you are not logged in, creates the
organization and the user \"demo\". Creates the cluster \"demo\", the deployment \"hello\", the dinosaur
\"rex\", the template hello@1.0.0 and the environment \"hello\"; reuses those that exist.

Example:
  paddock demo
  paddock demo --delete")]
pub(crate) struct Args {
    /// Delete everything that the demo created, except the organization
    #[arg(long)]
    delete: bool,
    /// Skip the confirmation prompt of --delete
    #[arg(long, short, requires = "delete")]
    yes: bool,
}

/// Creates or deletes the demo.
pub(crate) async fn run(
    args: Args,
    api: Api,
    session: Session,
    timeout: Duration,
    printer: &mut Printer,
) -> Result<(), Error> {
    // First, so that a missing server is the only error without one.
    api.send(&Call::get(&["self", "info"]).without_token()).await?;
    if args.delete {
        prompt::confirm("Delete the demo?", args.yes)?;
        return delete(&api, printer).await;
    }
    let api = log_in(api, session, timeout, printer).await?;
    image::require_store(&api).await?;
    let cluster = json!({"name": DEMO, "capacity": {"cpu": "1", "ram": "256Mi"}});
    let cluster = ensure(&api, printer, &CLUSTER, DEMO, cluster).await?;
    let cluster_id = &read(&api, &cluster)?["id"];
    let deployment = json!({
        "name": HELLO, "image": IMAGE, "cluster_id": cluster_id, "ports": [8080],
        "resources": {"cpu": "100m", "ram": "32Mi"}, "env": {"MESSAGE": "Hello from Paddock"},
    });
    let deployment = ensure(&api, printer, &DEPLOYMENT, HELLO, deployment).await?;
    let instance = json!({"kind": SERVICE.service, "name": REX});
    let instance = ensure(&api, printer, &SERVICE, REX, instance).await?;
    publish(&api).await?;
    let environment = json!({"name": HELLO, "templates": [REFERENCE]});
    let environment = ensure(&api, printer, &ENVIRONMENT, HELLO, environment).await?;
    report(&api, printer, [&deployment, &instance, &environment])
}

/// Returns a client that is logged in, if need be as a new user of a new organization.
async fn log_in(
    api: Api,
    mut session: Session,
    timeout: Duration,
    printer: &Printer,
) -> Result<Api, Error> {
    if session.token.is_some() {
        let _: User = api.read(&api.send(&Call::get(&["users", "me"])).await?)?;
        return Ok(api);
    }
    let mut password = entropy::secret(&OsEntropy);
    password.truncate(PASSWORD_LENGTH);
    let owner = NewUser { username: DEMO.into(), password: password.clone(), display_name: None };
    let body = json!(NewOrganization { name: DEMO.into(), owner });
    let created = api.send(&Call::post(&["organizations"], Some(body)).without_token()).await;
    created.map_err(|error| match error.status() {
        Some(409) => Error::failed_with_hint(
            format!("organization or user {DEMO} exists, and you are not logged in"),
            format!(r#"run "paddock login --username {DEMO}", or log in as another user"#),
        ),
        _ => hint::for_sign_up(error),
    })?;
    // Before the login: it cannot be shown again.
    printer.note(&format!("created organization {DEMO} with the user {DEMO}"));
    printer.note(&format!("password of {DEMO}: {password} (shown only once)"));
    let body = json!(Credentials { username: DEMO.into(), password });
    let response = api.send(&Call::post(&["login"], Some(body)).without_token()).await?;
    let created: LoginSession = api.read(&response)?;
    let token = Token::from(created.token);
    session.store(DEMO, &token)?;
    Api::new(session.server, Some(token), timeout)
}

/// Creates a subject unless it exists, and waits until it is operational.
async fn ensure(
    api: &Api,
    printer: &Printer,
    kind: &Kind<'_>,
    name: &str,
    body: Value,
) -> Result<ApiResponse, Error> {
    let (response, verb) = match subject::find_if_any(api, kind, name).await? {
        Some(found) => (api.send(&Call::get(&[kind.path, &found.id])).await?, "exists"),
        None => (api.send(&Call::create(&[kind.path], body)).await?, "created"),
    };
    let goal = if kind.parts.is_some() { Goal::DEPLOYED } else { Goal::up(kind) };
    let response = settle(api, kind, response, goal, Some(LIMIT)).await?;
    printer.note(&format!("{} {name} {verb}", kind.noun));
    Ok(response)
}

async fn publish(api: &Api) -> Result<(), Error> {
    let call = Call::upload(&["templates"], "application/yaml", TEMPLATE.into());
    let published = api.send(&call).await.map_err(Error::in_document);
    published.map(drop).map_err(|error| match error.status() {
        Some(409) => error.or_hint(format!(
            "{REFERENCE} is already published with other content: delete it with \
             \"paddock template delete {REFERENCE}\""
        )),
        _ => error,
    })
}

fn read(api: &Api, response: &ApiResponse) -> Result<Value, Error> {
    api.read(response)
}

/// Prints where to look and what to try next.
fn report(
    api: &Api,
    printer: &mut Printer,
    [deployment, instance, environment]: [&ApiResponse; 3],
) -> Result<(), Error> {
    if printer.is_json() {
        let summary = json!({
            "deployment": read(api, deployment)?,
            "instance": read(api, instance)?,
            "environment": read(api, environment)?,
        });
        return printer.text(&summary.to_string());
    }
    let first = |response: &ApiResponse| -> Result<String, Error> {
        let endpoint = read(api, response)?["endpoints"][0].as_str().map(str::to_owned);
        Ok(endpoint.map(|endpoint| format!("http://{endpoint}/")).unwrap_or_default())
    };
    let environment: Environment = api.read(environment)?;
    let places = table::fields(&[
        ("DEPLOYMENT hello", first(deployment)?),
        ("DINOSAUR rex", first(instance)?),
        ("ENVIRONMENT hello", environment.entry_points.join(" ")),
        ("CONSOLE", format!("{}/", api.address())),
    ]);
    printer.text(&format!("{places}\n{NEXT}"))
}

const NEXT: &str = "\
Try next:
  paddock deployment list
  paddock deployment logs hello --follow
  paddock env apply hello --set replicas=3 --yes --wait
  paddock graph environment/hello
  paddock deploy localhost/paddock-page:1 --name web --cpu 600m --port 8080 --dry-run
Clean up:
  paddock demo --delete";

/// Deletes what the demo created, in reverse order. What is missing already is skipped.
async fn delete(api: &Api, printer: &mut Printer) -> Result<(), Error> {
    remove(api, printer, &ENVIRONMENT, HELLO).await?;
    match api.send(&Call::delete(&["templates", REFERENCE])).await {
        Ok(_) => printer.note(&format!("template {REFERENCE} deleted")),
        Err(error) if error.status() == Some(404) => {}
        // Other environments use it.
        Err(error) if error.status() == Some(409) => printer.note(&error.message()),
        Err(error) => return Err(error),
    }
    remove(api, printer, &SERVICE, REX).await?;
    remove(api, printer, &DEPLOYMENT, HELLO).await?;
    let removed = remove(api, printer, &CLUSTER, DEMO).await;
    removed.map_err(|error| match error.status() {
        Some(409) => error.or_hint(
            r#"delete its deployments first; to list them, run "paddock deployment list""#,
        ),
        _ => error,
    })?;
    printer.note("demo deleted; the organization and its user remain");
    Ok(())
}

async fn remove(api: &Api, printer: &Printer, kind: &Kind<'_>, name: &str) -> Result<(), Error> {
    let Some(found) = subject::find_if_any(api, kind, name).await? else { return Ok(()) };
    api.send(&Call::delete(&[kind.path, &found.id])).await?;
    let goal = if kind.parts.is_some() { Goal::DESTROYED } else { Goal::DELETED };
    wait(api, kind, &found, goal, LIMIT).await?;
    printer.note(&format!("{} {name} {}", kind.noun, kind.deleted));
    Ok(())
}
