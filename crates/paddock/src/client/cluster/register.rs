//! `paddock cluster register`: a cluster that somebody runs an agent beside, with what that agent needs
//! to know.

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
What the agent signs in with is shown only now. It goes to stdout, and what to do with it to stderr.

Example:
  paddock cluster register far --label rack=7 > far.token
  paddock cluster register 1234567890abcdefghijklmnopqrstuv --service kafka \\
    --ingress-dns apps.site.example --machines 3";

/// What is registered.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What the cluster is called; with --service its id where it was made (32 letters and digits)
    name: String,
    /// A label; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse::pair, conflicts_with = "service")]
    labels: Vec<(String, String)>,
    /// The cloud that the cluster is in
    #[arg(long, value_name = "NAME")]
    cloud_provider: Option<String>,
    /// The region of the cloud
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// For an agent that speaks as a fleet manager's: the kind of service that it hosts
    #[arg(long, value_name = "KIND", requires_all = ["ingress_dns", "machines"])]
    service: Option<String>,
    /// With --service: the name under which clients reach the cluster
    #[arg(long, value_name = "NAME", requires = "service")]
    ingress_dns: Option<String>,
    /// With --service: how many machines it has for instances, a multiple of 3
    #[arg(long, value_name = "N", requires = "service")]
    machines: Option<u32>,
    /// With --service: its instances are reached through a private network
    #[arg(long, requires = "service")]
    private: bool,
}

pub(crate) async fn run(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    match args.service.clone() {
        Some(kind) => foreign(args, &kind, api, printer).await,
        None => own(args, api, printer).await,
    }
}

async fn own(args: Args, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let mut body = json!({"name": args.name, "provider": "agent"});
    place(&mut body, &args);
    let labels = resources::unique("label", args.labels)?;
    if !labels.is_empty() {
        body["labels"] = json!(labels);
    }
    let made: Subject = api.read(&subject::create(api, &CLUSTER, body, None).await?)?;
    token::make(&made.id, None, api, printer).await
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

async fn foreign(args: Args, kind: &str, api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let service = catalog::find(api, kind).await?;
    let plural = catalog::plural(api, &service).await?;
    let mut body = json!({
        "cluster_id": args.name,
        "cluster_ingress_dns_name": args.ingress_dns,
    });
    body[format!("{kind}_machine_pool_node_count")] = args.machines.into();
    body[format!("access_{plural}_via_private_network")] = args.private.into();
    place(&mut body, &args);
    let answer = api.send(&Call::post(&["clusters"], Some(body)).to(&service.api)).await?;
    let made: Registered = api.read(&answer)?;
    printer.answer(&answer, || {
        let all = made.fleetshard_parameters.iter();
        Ok(table::fields(&all.map(|one| (&*one.id, one.value.clone())).collect::<Vec<_>>()))
    })?;
    printer.note("give these to the cluster's agent; its secret is shown only now");
    Ok(())
}

fn place(body: &mut Value, args: &Args) {
    for (name, text) in [("cloud_provider", &args.cloud_provider), ("region", &args.region)] {
        if let Some(text) = text {
            body[name] = text.clone().into();
        }
    }
}
