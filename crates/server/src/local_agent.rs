//! The local agent: serves this machine's clusters while this server holds its lease.

use std::sync::Arc;

use agent::{Agent, Runtime};
use base::{Stop, task};
use engine::{local_agent, local_cluster};
use model::Resources;
use store::Db;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::InProcess;

/// The machine and how containers run on it.
pub(crate) struct Local {
    pub(crate) runtime: Arc<dyn Runtime>,
    /// What the machine may give; none if it is not counted.
    pub(crate) machine: Option<Resources>,
}

/// Starts the agent. Its containers outlive it.
pub(crate) fn start(
    db: Db,
    holder: String,
    link: InProcess,
    local: Local,
    stop: Stop,
) -> JoinHandle<()> {
    let (leads, lease) = watch::channel(false);
    let serve = task::spawn("agent", serve_while_leading(db.clone(), Arc::new(link), local, lease));
    task::spawn("agent's lease", async move {
        local_agent::run_election(db, holder, leads, stop).await;
        serve.abort();
    })
}

async fn serve_while_leading(
    db: Db,
    link: Arc<InProcess>,
    Local { runtime, machine }: Local,
    mut leads: watch::Receiver<bool>,
) {
    while leads.wait_for(|leads| *leads).await.is_ok() {
        if let Err(error) = local_cluster::count_machine(&db, machine.as_ref()).await {
            tracing::warn!(%error, "counting the machine's capacity failed; the last size stays");
        }
        tokio::select! {
            () = Agent::run(link.clone(), runtime.clone()) => {}
            _ = leads.wait_for(|leads| !*leads) => {
                tracing::warn!("local agent stopped: another replica holds its lease");
            }
        }
    }
}
