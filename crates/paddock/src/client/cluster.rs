//! `paddock cluster`: manages clusters.

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
use super::operation_log::{self, Options, Owner};
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
    /// Create a cluster
    #[command(after_help = "\
Example:
  paddock cluster create prod --cpu 4 --ram 8Gi --wait
  paddock cluster create lab --cpu 8 --ram 64Gi --resource gpu=2 --label team=research
  paddock cluster create duo --node name=a,cpu=4,ram=8Gi,label.zone=x --node name=b,cpu=2,ram=4Gi
  paddock cluster create cloud --provider kubernetes --kubeconfig kubeconfig.yaml --wait
  paddock cluster create east --provider terraform --module small --variable size=3 --wait")]
    Create {
        /// Name of the cluster
        name: String,
        #[command(flatten)]
        spec: Box<Spec>,
        #[command(flatten)]
        wait: Wait,
    },
    /// Register a cluster for an agent that you run, and print the agent's credentials
    #[command(after_help = register::AFTER_HELP)]
    Register(register::Args),
    /// List your clusters and shared clusters
    #[command(visible_alias = "ls", after_help = "Example:\n  paddock cluster list")]
    List {
        #[command(flatten)]
        limit: Limit,
    },
    /// Show a cluster and its nodes
    #[command(visible_alias = "get", after_help = "Example:\n  paddock cluster show prod")]
    Show {
        /// Name or id of the cluster
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
    },
    /// Create a token for the agent of a cluster; the previous one expires after --overlap seconds
    #[command(after_help = token::AFTER_HELP)]
    Token(token::Args),
    /// Drain a cluster: accept no new replicas and move the existing ones to other clusters
    #[command(after_help = "\
Replicas that fit on no other cluster, or are pinned to this one, stay and keep running.

Example:
  paddock cluster drain old --wait
  paddock cluster drain old --end")]
    Drain(condition::Drain),
    /// Retry the creation of a failed cluster
    #[command(after_help = "Example:\n  paddock cluster retry cloud --wait")]
    Retry(condition::Retry),
    /// Cancel the creation of a cluster
    #[command(after_help = "Example:\n  paddock cluster cancel cloud")]
    Cancel {
        /// Name or id of the cluster
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
    },
    /// Show the log of creating, preparing or destroying a cluster
    #[command(
        after_help = "Example:\n  paddock cluster logs cloud\n  paddock cluster logs cloud -f --tail 20"
    )]
    Logs {
        /// Name or id of the cluster
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        #[command(flatten)]
        options: Options,
    },
    /// Delete a cluster that has no deployments
    #[command(
        visible_alias = "rm",
        after_help = "\
Example:
  paddock cluster delete prod --yes --wait=60
  paddock cluster delete cloud --force"
    )]
    Delete {
        /// Name or id of the cluster
        #[arg(value_name = "NAME-OR-ID")]
        which: String,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
        /// Delete even if the provider's resources cannot be destroyed; they are left behind
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        wait: Wait,
    },
}

/// Specification of a new cluster.
#[derive(clap::Args)]
pub(crate) struct Spec {
    #[command(flatten)]
    capacity: Resources,
    /// Node of the cluster, instead of --cpu and --ram; repeatable
    #[arg(long = "node", value_name = "name=NAME,TYPE=QUANTITY…[,label.KEY=VALUE]", value_parser = node::parse)]
    nodes: Vec<Node>,
    /// Label; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse::pair)]
    labels: Vec<(String, String)>,
    #[command(flatten)]
    provider: Provider,
    /// Cloud provider of the cluster
    #[arg(long, value_name = "NAME")]
    cloud_provider: Option<String>,
    /// Cloud region
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
}

/// Runs a command.
pub(crate) async fn run(command: Command, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match command {
        Command::Create { name, spec, wait } => create(api, printer, &name, *spec, wait).await,
        Command::Register(args) => register::run(args, api, printer).await,
        Command::Drain(args) => condition::drain(args, api, printer).await,
        Command::Retry(args) => condition::retry(args, api, printer).await,
        Command::Cancel { which } => condition::cancel(api, printer, &which).await,
        Command::Logs { which, options } => {
            let found = subject::find(api, &CLUSTER, &which).await?;
            operation_log::show(api, printer, Owner::Cluster(&found.id), &options).await
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
    let response = subject::create(api, &CLUSTER, body, wait.limit()).await?;
    printer.response(&response, || Ok(view::table(&[api.read(&response)?])))
}

async fn list(api: &Api, printer: &mut Printer, limit: usize) -> Result<(), Error> {
    page::list(api, Call::get(&["clusters"]), limit).await?.print(api, printer, view::table)
}

async fn show(api: &Api, printer: &mut Printer, which: &str) -> Result<(), Error> {
    let id = subject::find(api, &CLUSTER, which).await?.id;
    let response = api.send(&Call::get(&["clusters", &id])).await?;
    printer.response(&response, || Ok(view::details(&api.read(&response)?)))
}

/// Request body. Omits unset fields, so that the server's defaults apply.
fn request(name: &str, spec: Spec) -> Result<Value, Error> {
    let mut body = json!({ "name": name });
    // The capacity of a cluster with nodes is their sum.
    let is_derived = spec.provider.reports_capacity() || !spec.nodes.is_empty();
    if !is_derived || !spec.capacity.is_empty() {
        body["capacity"] = json!(spec.capacity.by_type()?);
    }
    if !spec.nodes.is_empty() {
        body["nodes"] = json!(spec.nodes);
    }
    let labels = unique("label", spec.labels)?;
    if !labels.is_empty() {
        body["labels"] = json!(labels);
    }
    spec.provider.add_to(&mut body)?;
    for (field, text) in [("cloud_provider", spec.cloud_provider), ("region", spec.region)] {
        if let Some(text) = text {
            body[field] = text.into();
        }
    }
    Ok(body)
}
