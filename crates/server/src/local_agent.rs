//! The local agent: serves this machine's clusters while this server holds its lease.

use std::sync::Arc;

use agent::{Agent, Runtime};
use base::{Stop, task};
use engine::local_agent;
use store::Db;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::InProcess;

/// Starts the agent. Its containers outlive it.
pub(crate) fn start(
    db: Db,
    holder: String,
    link: InProcess,
    runtime: Arc<dyn Runtime>,
    stop: Stop,
) -> JoinHandle<()> {
    let (leads, lease) = watch::channel(false);
    let serve = task::spawn("agent", serve_while_leading(Arc::new(link), runtime, lease));
    task::spawn("agent's lease", async move {
        local_agent::run_election(db, holder, leads, stop).await;
        serve.abort();
    })
}

async fn serve_while_leading(
    link: Arc<InProcess>,
    runtime: Arc<dyn Runtime>,
    mut leads: watch::Receiver<bool>,
) {
    while leads.wait_for(|leads| *leads).await.is_ok() {
        tokio::select! {
            () = Agent::run(link.clone(), runtime.clone()) => {}
            _ = leads.wait_for(|leads| !*leads) => {
                tracing::warn!("local agent stopped: another replica holds its lease");
            }
        }
    }
}
