//! `paddock agent`: the agent of one cluster, beside it, with a control plane over HTTP.
//!
//! What runs goes on running when the agent ends, and is found again when it starts.

mod connection;
mod link;
mod logs;
mod pulse;

use std::path::PathBuf;
use std::sync::Arc;

use agent::Agent;
use anyhow::{Context, bail};
use model::{Quantity, Resources};

use crate::runtime;
use crate::server::{lock_dir, machine, start_logging};
use crate::settings::{agent_runtime, log_format};
use connection::{Connection, Token};
use link::HttpLink;
use pulse::Pulse;

pub(crate) const AFTER_HELP: &str = "\
The token comes from a file or from the variable PADDOCK_AGENT_TOKEN; it is not taken from the command
line, where everybody on the machine could read it. A new token in the file is taken up by itself.
It ends with SIGTERM or SIGINT; what it started goes on running.

Example:
  paddock cluster create far --provider agent
  paddock cluster token far > far.token
  paddock agent --server https://paddock.example.com --token-file far.token";

/// What an agent is told.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A file with the cluster's token, as "paddock cluster token" prints it
    #[arg(long, env = "PADDOCK_AGENT_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Where to keep images and containers [default: ./paddock-agent]
    #[arg(long, env = "PADDOCK_AGENT_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// What runs containers: `embedded`, `docker` (or Podman), `auto` for the first of these that works,
    /// `kubernetes`, or `simulated` to go through the motions without containers [default: auto]
    #[arg(long, env = "PADDOCK_RUNTIME", value_name = "NAME")]
    runtime: Option<String>,
    #[command(flatten)]
    kubernetes: Kubernetes,
    /// Credentials of registries, in a file as `docker login` writes it
    #[arg(long, env = "PADDOCK_REGISTRY_AUTH_FILE", value_name = "FILE")]
    registry_auth_file: Option<String>,
    /// The largest image, packed or unpacked [default: 8Gi]
    #[arg(long, env = "PADDOCK_MAX_IMAGE_SIZE", value_name = "SIZE")]
    max_image_size: Option<String>,
    /// Whether containers of the embedded runtime may reach the world [default: true]
    #[arg(long, env = "PADDOCK_EGRESS", value_name = "BOOL")]
    egress: Option<String>,
    /// What the cluster has, such as cpu=4,ram=8Gi [default: what this machine has, or the nodes]
    #[arg(long, env = "PADDOCK_AGENT_CAPACITY", value_name = "TYPE=QUANTITY,…")]
    capacity: Option<String>,
    /// How logs are written: `text` or `json` [default: text]
    #[arg(long, env = "PADDOCK_LOG_FORMAT", value_name = "FORMAT")]
    log_format: Option<String>,
    /// What is logged: `error`, `warn`, `info`, `debug`, or finer [default: info]
    #[arg(long, env = "PADDOCK_LOG", value_name = "FILTER")]
    log: Option<String>,
}

/// What an agent of a Kubernetes is told.
#[derive(clap::Args)]
struct Kubernetes {
    /// With `--runtime kubernetes`: how it is reached [default: as a pod of it]
    #[arg(long, env = "PADDOCK_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// With `--runtime kubernetes`: where deployments go [default: where the agent is]
    #[arg(
        long = "kubernetes-namespace",
        env = "PADDOCK_KUBERNETES_NAMESPACE",
        value_name = "NAME"
    )]
    namespace: Option<String>,
    /// With `--runtime kubernetes`: a Secret there with credentials of registries
    #[arg(
        long = "kubernetes-pull-secret",
        env = "PADDOCK_KUBERNETES_PULL_SECRET",
        value_name = "NAME"
    )]
    pull_secret: Option<String>,
    /// With `--runtime kubernetes`: the ClusterRole to take in namespaces of instances
    #[arg(
        long = "kubernetes-instance-role",
        env = "PADDOCK_KUBERNETES_INSTANCE_ROLE",
        value_name = "NAME"
    )]
    instance_role: Option<String>,
}

impl From<Kubernetes> for agent::kubernetes::Options {
    fn from(args: Kubernetes) -> Self {
        Self {
            kubeconfig: args.kubeconfig,
            namespace: args.namespace,
            pull_secret: args.pull_secret,
            instance_role: args.instance_role,
        }
    }
}

/// Runs the agent until it is told to stop, or the server refuses it.
pub(crate) async fn run(args: Args, server: Option<String>) -> anyhow::Result<()> {
    let format = log_format(args.log_format.as_deref())?;
    start_logging(args.log.as_deref().unwrap_or("info"), format)?;
    let signal = base::signals::terminated().context("SIGTERM and SIGINT can't be handled")?;
    let token = Token::find(args.token_file)?;
    let connection = Arc::new(Connection::new(server.as_deref(), token)?);
    let is_kubernetes = args.runtime.as_deref() == Some("kubernetes");
    let capacity = match args.capacity.as_deref() {
        Some(text) => Some(parse_capacity(text)?),
        None => Some(machine::capacity()).filter(|_| !is_kubernetes),
    };
    let dir = args.data_dir.unwrap_or_else(|| "./paddock-agent".into());
    let (images, size) = (args.registry_auth_file, args.max_image_size);
    let runtime =
        agent_runtime(args.runtime, images, size, args.egress, args.kubernetes.into(), &dir)?;
    let _lock = lock_dir(&dir)?;
    let runtime = runtime::start(runtime).await?;
    let pulse = Pulse::new(connection.clone(), runtime.clone(), capacity);
    let link = Arc::new(HttpLink::new(connection.clone()));
    let logs = logs::answer_all(connection, runtime.clone());
    tokio::select! {
        refused = pulse.beat() => refused,
        () = Agent::run(link, runtime) => Ok(()),
        () = logs => Ok(()),
        () = signal => {
            tracing::info!("stopping: what runs goes on running");
            Ok(())
        }
    }
}

fn parse_capacity(text: &str) -> anyhow::Result<Resources> {
    let mut capacity = Resources::default();
    for part in text.split(',') {
        let (kind, amount) = part.split_once('=').with_context(|| {
            format!("--capacity: {part:?} is not TYPE=QUANTITY, such as cpu=4 or ram=8Gi")
        })?;
        let (kind, amount) = (kind.trim(), amount.trim());
        let amount: Quantity =
            amount.parse().map_err(|why| anyhow::anyhow!("--capacity: {kind}: {why}"))?;
        if capacity.iter().any(|(known, _)| known == kind) {
            bail!("--capacity: {kind} is given twice");
        }
        capacity.set(kind, amount);
    }
    model::cluster::total("--capacity", &capacity).map_err(|wrong| {
        let first = wrong.0.into_iter().next();
        anyhow::anyhow!(first.map(|e| format!("{}: {}", e.field, e.detail)).unwrap_or_default())
    })?;
    Ok(capacity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_a_list_of_amounts() {
        let capacity = parse_capacity("cpu=4, ram=8Gi").unwrap();
        assert_eq!(capacity.get("cpu"), Quantity::whole(4));
        assert_eq!(capacity.get("ram"), Quantity::whole(8 << 30));
        for wrong in ["", "cpu", "cpu=", "cpu=-1", "cpu=1,cpu=2", "CPU=1", "cpu=many"] {
            let error = parse_capacity(wrong).unwrap_err().to_string();
            assert!(error.starts_with("--capacity: "), "{wrong}: {error}");
        }
    }
}
