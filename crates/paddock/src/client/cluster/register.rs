//! `paddock cluster register`: registers a cluster for a self-managed agent.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::call::Call;
use crate::client::error::Error;
use crate::client::http::Api;
use crate::client::print::Printer;
use crate::client::service::catalog;
use crate::client::subject::{CLUSTER, Subject};
use crate::client::{parse, resources, subject, table};

use super::token;

pub(crate) const AFTER_HELP: &str = "\
The agent's credentials are shown only once, on stdout. Instructions go to stderr.

Example:
  paddock cluster register far --label rack=7 > far.token
  paddock cluster register 1234567890abcdefghijklmnopqrstuv --service kafka \\
    --ingress-dns apps.site.example --machines 3";

/// `paddock cluster register`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Name of the cluster; with --service its external id (32 letters and digits)
    name: String,
    /// Label; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse::pair, conflicts_with = "service")]
    labels: Vec<(String, String)>,
    /// Cloud provider of the cluster
    #[arg(long, value_name = "NAME")]
    cloud_provider: Option<String>,
    /// Cloud region
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Service kind hosted by a fleetshard-compatible agent
    #[arg(long, value_name = "KIND", requires_all = ["ingress_dns", "machines"])]
    service: Option<String>,
    /// With --service: ingress DNS name of the cluster
    #[arg(long, value_name = "NAME", requires = "service")]
    ingress_dns: Option<String>,
    /// With --service: number of machines for instances, a multiple of 3
    #[arg(long, value_name = "N", requires = "service")]
    machines: Option<u32>,
    /// With --service: expose instances on a private network
    #[arg(long, requires = "service")]
    private: bool,
}

pub(crate) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match args.service.clone() {
        Some(kind) => register_third_party(args, &kind, api, printer).await,
        None => register(args, api, printer).await,
    }
}

async fn register(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let mut body = json!({"name": args.name, "provider": "agent"});
    add_location(&mut body, &args);
    let labels = resources::unique("label", args.labels)?;
    if !labels.is_empty() {
        body["labels"] = json!(labels);
    }
    let created: Subject = api.read(&subject::create(api, &CLUSTER, body, None).await?)?;
    token::create(&created.id, None, api, printer).await
}

#[derive(Deserialize)]
struct Registered {
    fleetshard_parameters: Vec<Parameter>,
}

#[derive(Deserialize)]
struct Parameter {
    id: String,
    value: String,
}

/// Registers a cluster with a third-party, fleetshard-compatible agent.
async fn register_third_party(
    args: Args,
    kind: &str,
    api: &Api,
    printer: &mut Printer,
) -> Result<(), Error> {
    let service = catalog::find(api, kind).await?;
    let plural = catalog::plural(api, &service).await?;
    let mut body = json!({
        "cluster_id": args.name,
        "cluster_ingress_dns_name": args.ingress_dns,
    });
    body[format!("{kind}_machine_pool_node_count")] = args.machines.into();
    body[format!("access_{plural}_via_private_network")] = args.private.into();
    add_location(&mut body, &args);
    let response = api.send(&Call::post(&["clusters"], Some(body)).to(&service.api)).await?;
    let registered: Registered = api.read(&response)?;
    printer.response(&response, || {
        let parameters = registered.fleetshard_parameters.iter();
        Ok(table::fields(&parameters.map(|p| (&*p.id, p.value.clone())).collect::<Vec<_>>()))
    })?;
    printer.note("configure the cluster's agent with these; the secret is shown only once");
    Ok(())
}

fn add_location(body: &mut Value, args: &Args) {
    for (name, text) in [("cloud_provider", &args.cloud_provider), ("region", &args.region)] {
        if let Some(text) = text {
            body[name] = text.clone().into();
        }
    }
}
