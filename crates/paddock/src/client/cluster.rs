//! `paddock cluster`: making, listing, showing and deleting clusters.

mod condition;
mod node;
mod provider;
mod register;
mod token;
mod view;

use serde_json::{Value, json};

use super::call::Call;
use super::error::Error;
use super::http::Api;
use super::operation_log::{self, Of, Options};
use super::page::{self, Limit};
use super::parse;
use super::print::Printer;
use super::resources::{Resources, unique};
use super::subject::{self, CLUSTER};
use super::wait::Wait;
use node::Node;
use provider::Provider;

/// `paddock cluster …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Makes a cluster
    #[command(after_help = "\
Example:
  paddock cluster create prod --cpu 4 --ram 8Gi --wait
  paddock cluster create lab --cpu 8 --ram 64Gi --resource gpu=2 --label team=research
  paddock cluster create duo --node name=a,cpu=4,ram=8Gi,label.zone=x --node name=b,cpu=2,ram=4Gi
  paddock cluster create cloud --provider kubernetes --kubeconfig kubeconfig.yaml --wait
  paddock cluster create east --provider terraform --module small --variable size=3 --wait")]
    Create {
        /// What the cluster is called
        name: String,
        #[command(flatten)]
        spec: Box<Spec>,
        #[command(flatten)]
        wait: Wait,
    },
    /// Makes a cluster that somebody runs an agent beside, and shows what that agent needs to know
    #[command(after_help = register::AFTER_HELP)]
    Register(register::Args),
    /// Lists clusters: one's own, and those that all share
    #[command(visible_alias = "ls", after_help = "Example:\n  paddock cluster list")]
    List {
        #[command(flatten)]
        limit: Limit,
    },
    /// Shows all of one cluster, with its nodes if there are several
    #[command(visible_alias = "get", after_help = "Example:\n  paddock cluster show prod")]
    Show {
        /// Its name or its id
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
    },
    /// Makes a token for the agent of a cluster; the one of before ends soon
    #[command(after_help = token::AFTER_HELP)]
    Token(token::Args),
    /// Has a cluster take nothing new, and what is on it move elsewhere
    #[command(after_help = "\
What has no room elsewhere, or is pinned to the cluster, stays and goes on running.

Example:
  paddock cluster drain old --wait
  paddock cluster drain old --end")]
    Drain(condition::Drain),
    /// Has a cluster that failed be tried again
    #[command(after_help = "Example:\n  paddock cluster retry cloud --wait")]
    Retry(condition::Retry),
    /// Cancel what the provider of a cluster is doing to create it
    #[command(after_help = "Example:\n  paddock cluster cancel cloud")]
    Cancel {
        /// Its name or its id
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
    },
    /// Show the log of creating, preparing or destroying a cluster
    #[command(
        after_help = "Example:\n  paddock cluster logs cloud\n  paddock cluster logs cloud -f --tail 20"
    )]
    Logs {
        /// Its name or its id
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        #[command(flatten)]
        options: Options,
    },
    /// Deletes a cluster on which nothing runs any more
    #[command(
        visible_alias = "rm",
        after_help = "\
Example:
  paddock cluster delete prod --yes --wait=60
  paddock cluster delete cloud --force"
    )]
    Delete {
        /// Its name or its id
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        /// Deletes without asking
        #[arg(long, short)]
        yes: bool,
        /// Lets it go even if what was made for it can't be taken away; that is yours then
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        wait: Wait,
    },
}

/// What a new cluster should be.
#[derive(clap::Args)]
pub(crate) struct Spec {
    #[command(flatten)]
    capacity: Resources,
    /// What the cluster is made of, instead of --cpu and --ram; may be repeated
    #[arg(long = "node", value_name = "name=NAME,TYPE=QUANTITY…[,label.KEY=VALUE]", value_parser = node::parse)]
    nodes: Vec<Node>,
    /// A label; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse::pair)]
    labels: Vec<(String, String)>,
    #[command(flatten)]
    provider: Provider,
    /// The cloud that the cluster is in
    #[arg(long, value_name = "NAME")]
    cloud_provider: Option<String>,
    /// The region of the cloud
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
}

/// Carries out one of the commands.
pub(crate) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::Create { name, spec, wait } => create(api, printer, &name, *spec, wait).await,
        Command::Register(args) => register::run(args, api, printer).await,
        Command::Drain(args) => condition::drain(args, api, printer).await,
        Command::Retry(args) => condition::retry(args, api, printer).await,
        Command::Cancel { which } => condition::cancel(api, printer, &which).await,
        Command::Logs { which, options } => {
            let found = subject::find(api, &CLUSTER, &which).await?;
            operation_log::show(api, printer, Of::Cluster(&found.id), &options).await
        }
        Command::List { limit } => list(api, printer, limit.limit).await,
        Command::Show { which } => show(api, printer, &which).await,
        Command::Token(args) => token::run(args, api, printer).await,
        Command::Delete { which, yes, force, wait } => {
            let found = subject::find(api, &CLUSTER, &which).await?;
            let call = Call::delete(&["clusters", &found.id]).query("force", force.then_some(true));
            subject::delete_by(api, printer, &CLUSTER, &found, call, yes, wait.limit()).await
        }
    }
}

async fn create(
    api: &Api,
    printer: &mut Printer,
    name: &str,
    spec: Spec,
    wait: Wait,
) -> Result<(), Error> {
    let body = request(name, spec)?;
    let answer = subject::create(api, &CLUSTER, body, wait.limit()).await?;
    printer.answer(&answer, || Ok(view::table(&[api.read(&answer)?])))
}

async fn list(api: &Api, printer: &mut Printer, limit: usize) -> Result<(), Error> {
    page::list(api, Call::get(&["clusters"]), limit).await?.print(api, printer, view::table)
}

async fn show(api: &Api, printer: &mut Printer, which: &str) -> Result<(), Error> {
    let id = subject::find(api, &CLUSTER, which).await?.id;
    let answer = api.send(&Call::get(&["clusters", &id])).await?;
    printer.answer(&answer, || Ok(view::details(&api.read(&answer)?)))
}

/// The body of the request: what was not said is not sent, so that the server's defaults hold.
fn request(name: &str, spec: Spec) -> Result<Value, Error> {
    let mut body = json!({ "name": name });
    // The capacity of several nodes is their sum, and need not be said.
    let is_told = spec.provider.tells_capacity() || !spec.nodes.is_empty();
    if !is_told || !spec.capacity.is_empty() {
        body["capacity"] = json!(spec.capacity.by_type()?);
    }
    if !spec.nodes.is_empty() {
        body["nodes"] = json!(spec.nodes);
    }
    let labels = unique("label", spec.labels)?;
    if !labels.is_empty() {
        body["labels"] = json!(labels);
    }
    spec.provider.tell(&mut body)?;
    for (field, text) in [("cloud_provider", spec.cloud_provider), ("region", spec.region)] {
        if let Some(text) = text {
            body[field] = text.into();
        }
    }
    Ok(body)
}
