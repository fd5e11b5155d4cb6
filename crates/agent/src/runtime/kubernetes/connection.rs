//! The way to the apiserver, which is found again: after restarts, and when a token has expired.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use base::locks::lock;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error};

use super::fault::{self, Refusal};
use crate::Error as RuntimeError;

/// How long to wait for a connection, and for an answer that need not wait for anything.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// How long to wait before asking again: at first, and at most.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Reaches one apiserver.
pub(super) struct Connection {
    /// Where it is told how; the pod that this runs in, if nothing is.
    kubeconfig: Option<PathBuf>,
    client: Mutex<Client>,
    /// The namespace that the agent is in, as far as the way there says.
    pub(super) namespace: String,
    /// Where it is, for people.
    pub(super) address: String,
}

impl Connection {
    pub(super) async fn open(kubeconfig: Option<PathBuf>) -> Result<Self, RuntimeError> {
        let config = read(kubeconfig.as_ref()).await?;
        let (namespace, address) =
            (config.default_namespace.clone(), config.cluster_url.to_string());
        let client = Mutex::new(client(config)?);
        Ok(Self { kubeconfig, client, namespace, address })
    }

    pub(super) fn client(&self) -> Client {
        lock(&self.client).clone()
    }

    /// Reads anew how the server lets us in: it may have been written anew.
    pub(super) async fn renew(&self) {
        match read(self.kubeconfig.as_ref()).await.and_then(client) {
            Ok(client) => *lock(&self.client) = client,
            Err(error) => tracing::warn!(%error, "how Kubernetes is reached can't be read again"),
        }
    }

    /// Asks until there is an answer, however long that takes: only what would be no better later is
    /// an error. `what` follows "to".
    pub(super) async fn call<T, A>(
        &self,
        what: &str,
        mut ask: impl FnMut(Client) -> A,
    ) -> Result<T, Refusal>
    where
        A: Future<Output = Result<T, Error>>,
    {
        let mut wait = FIRST_WAIT;
        loop {
            let error = match tokio::time::timeout(ANSWER_WITHIN, ask(self.client())).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => match fault::refusal(what, &error) {
                    Some(refusal) => return Err(refusal),
                    None => fault::brief(&error),
                },
                Err(_) => format!("no answer within {} s", ANSWER_WITHIN.as_secs()),
            };
            tracing::warn!(error, "Kubernetes could not be asked to {what}, trying again");
            if error.starts_with("401") {
                self.renew().await;
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }
}

async fn read(kubeconfig: Option<&PathBuf>) -> Result<Config, RuntimeError> {
    let Some(path) = kubeconfig else {
        return Config::incluster().map_err(|error| {
            RuntimeError::Unavailable(format!(
                "this is no pod of a Kubernetes ({error}): name a file with --kubeconfig"
            ))
        });
    };
    let failed = |error: &dyn std::fmt::Display| {
        let why = format!("--kubeconfig: {} can't be used: {error}", path.display());
        RuntimeError::Unavailable(why)
    };
    let read = Kubeconfig::read_from(path).map_err(|error| failed(&error))?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    config.map_err(|error| failed(&error))
}

fn client(mut config: Config) -> Result<Client, RuntimeError> {
    config.connect_timeout = Some(CONNECT_WITHIN);
    // We ask again ourselves, for as long as it takes.
    config.default_retry = false;
    Client::try_from(config)
        .map_err(|error| RuntimeError::Unavailable(format!("Kubernetes can't be reached: {error}")))
}
