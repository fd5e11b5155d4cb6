//! `paddock agent`: the agent of one cluster, connected to a control plane over HTTP.
//!
//! Containers keep running when the agent stops, and are adopted when it starts again.

mod connection;
mod heartbeat;
mod link;
mod logs;

use std::path::PathBuf;
use std::sync::Arc;

use agent::Agent;
use anyhow::{Context, bail};
use model::{Quantity, Resources};

use crate::runtime;
use crate::server::{lock_dir, machine, start_logging};
use crate::settings::{ContainerArgs, agent_runtime, log_format};
use connection::{Connection, Token};
use heartbeat::HeartbeatSender;
use link::HttpLink;

pub(crate) const AFTER_HELP: &str = "\
The token is read from --token-file or from PADDOCK_AGENT_TOKEN, never from the command line, which
other users of the machine can read. A changed token file is reloaded. SIGTERM and SIGINT stop the
agent; its containers keep running.

Example:
  paddock cluster create far --provider agent
  paddock cluster token far > far.token
  paddock agent --server https://paddock.example.com --token-file far.token";

/// Settings of the agent.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// File with the cluster's token, from "paddock cluster token"
    #[arg(long, env = "PADDOCK_AGENT_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Directory for images and containers [default: ./paddock-agent]
    #[arg(long, env = "PADDOCK_AGENT_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    containers: ContainerArgs,
    #[command(flatten)]
    kubernetes: Kubernetes,
    /// Capacity of the cluster, such as cpu=4,ram=8Gi [default: that of this machine or the nodes]
    #[arg(long, env = "PADDOCK_AGENT_CAPACITY", value_name = "TYPE=QUANTITY,…")]
    capacity: Option<String>,
    /// Log format: `text` or `json` [default: text]
    #[arg(long, env = "PADDOCK_LOG_FORMAT", value_name = "FORMAT")]
    log_format: Option<String>,
    /// Log filter: `error`, `warn`, `info`, `debug`, or per module, as in `info,agent=debug`
    /// [default: info]
    #[arg(long, env = "PADDOCK_LOG", value_name = "FILTER")]
    log: Option<String>,
}

/// Settings of the Kubernetes runtime.
#[derive(clap::Args)]
struct Kubernetes {
    /// With `--runtime kubernetes`: kubeconfig file [default: in-cluster configuration]
    #[arg(long, env = "PADDOCK_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// With `--runtime kubernetes`: namespace of deployments [default: that of the agent]
    #[arg(
        long = "kubernetes-namespace",
        env = "PADDOCK_KUBERNETES_NAMESPACE",
        value_name = "NAME"
    )]
    namespace: Option<String>,
    /// With `--runtime kubernetes`: Secret with registry credentials in that namespace
    #[arg(
        long = "kubernetes-pull-secret",
        env = "PADDOCK_KUBERNETES_PULL_SECRET",
        value_name = "NAME"
    )]
    pull_secret: Option<String>,
    /// With `--runtime kubernetes`: ClusterRole to bind in namespaces of instances
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

/// Runs the agent until SIGTERM or SIGINT, or until the server rejects its token.
pub(crate) async fn run(args: Args, server: Option<String>) -> anyhow::Result<()> {
    let format = log_format(args.log_format.as_deref())?;
    start_logging(args.log.as_deref().unwrap_or("info"), format)?;
    let signal = base::signals::terminated().context("cannot handle SIGTERM and SIGINT")?;
    let token = Token::load(args.token_file)?;
    let connection = Arc::new(Connection::new(server.as_deref(), token)?);
    let is_kubernetes = args.containers.runtime.as_deref() == Some("kubernetes");
    let dir = args.data_dir.unwrap_or_else(|| "./paddock-agent".into());
    let capacity = match args.capacity.as_deref() {
        Some(text) => Some(parse_capacity(text)?),
        None => Some(machine::capacity(&dir)).filter(|_| !is_kubernetes),
    };
    let mut runtime = agent_runtime(args.containers, args.kubernetes.into(), &dir)?;
    if let Some(capacity) = &capacity {
        runtime.capacity = capacity.clone();
    }
    let _lock = lock_dir(&dir)?;
    let runtime = runtime::start(runtime).await?;
    let heartbeats = HeartbeatSender::new(connection.clone(), runtime.clone(), capacity);
    let link = Arc::new(HttpLink::new(connection.clone()));
    let logs = logs::serve(connection, runtime.clone());
    tokio::select! {
        rejected = heartbeats.run() => rejected,
        () = Agent::run(link, runtime) => Ok(()),
        () = logs => Ok(()),
        () = signal => {
            tracing::info!("stopping; containers keep running");
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
            amount.parse().map_err(|error| anyhow::anyhow!("--capacity: {kind}: {error}"))?;
        if capacity.iter().any(|(other, _)| other == kind) {
            bail!("--capacity: {kind} is given twice");
        }
        capacity.set(kind, amount);
    }
    model::cluster::check_capacity("--capacity", &capacity).map_err(|errors| {
        let first = errors.0.into_iter().next();
        anyhow::anyhow!(first.map(|e| format!("{}: {}", e.field, e.detail)).unwrap_or_default())
    })?;
    Ok(capacity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_parsed_from_a_list_of_quantities() {
        let capacity = parse_capacity("cpu=4, ram=8Gi").unwrap();
        assert_eq!(capacity.get("cpu"), Quantity::whole(4));
        assert_eq!(capacity.get("ram"), Quantity::whole(8 << 30));
        for invalid in ["", "cpu", "cpu=", "cpu=-1", "cpu=1,cpu=2", "CPU=1", "cpu=many"] {
            let error = parse_capacity(invalid).unwrap_err().to_string();
            assert!(error.starts_with("--capacity: "), "{invalid}: {error}");
        }
    }
}
