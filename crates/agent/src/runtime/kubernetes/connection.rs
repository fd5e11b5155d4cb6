//! Connection to the API server. Survives restarts of the server and expired tokens.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use base::locks::lock;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error};

use super::fault::{self, Refusal};
use crate::Error as RuntimeError;

/// Timeouts of a connection and of a response.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Backoff between attempts: first and maximum.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const MAX_WAIT: Duration = Duration::from_secs(10);

/// A connection to one API server.
pub(super) struct Connection {
    /// Path of the kubeconfig; none: in-cluster configuration.
    kubeconfig: Option<PathBuf>,
    client: Mutex<Client>,
    /// Default namespace of the configuration.
    pub(super) namespace: String,
    /// URL of the API server, for logs.
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

    /// Reads the configuration again: its token may have been replaced.
    pub(super) async fn renew(&self) {
        match read(self.kubeconfig.as_ref()).await.and_then(client) {
            Ok(client) => *lock(&self.client) = client,
            Err(error) => tracing::warn!(%error, "reading kubeconfig failed"),
        }
    }

    /// Sends a request until it is answered. Returns an error only if a retry would not help.
    /// `what` is an infinitive without "to".
    pub(super) async fn call<T, A>(
        &self,
        what: &str,
        mut send: impl FnMut(Client) -> A,
    ) -> Result<T, Refusal>
    where
        A: Future<Output = Result<T, Error>>,
    {
        let mut wait = FIRST_WAIT;
        loop {
            let error = match tokio::time::timeout(RESPONSE_TIMEOUT, send(self.client())).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) => match fault::refusal(what, &error) {
                    Some(refusal) => return Err(refusal),
                    None => fault::brief(&error),
                },
                Err(_) => format!("no response within {} s", RESPONSE_TIMEOUT.as_secs()),
            };
            tracing::warn!(error, operation = what, "request to Kubernetes failed, retrying");
            if error.starts_with("401") {
                self.renew().await;
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(MAX_WAIT);
        }
    }
}

async fn read(kubeconfig: Option<&PathBuf>) -> Result<Config, RuntimeError> {
    let Some(path) = kubeconfig else {
        return Config::incluster().map_err(|error| {
            RuntimeError::Unavailable(format!(
                "not running in a Kubernetes pod ({error}): set --kubeconfig"
            ))
        });
    };
    let failed = |error: &dyn std::fmt::Display| {
        let why = format!("--kubeconfig: cannot use {}: {error}", path.display());
        RuntimeError::Unavailable(why)
    };
    let read = Kubeconfig::read_from(path).map_err(|error| failed(&error))?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    config.map_err(|error| failed(&error))
}

fn client(mut config: Config) -> Result<Client, RuntimeError> {
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    // `call` retries.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| {
        RuntimeError::Unavailable(format!("cannot connect to Kubernetes: {error}"))
    })
}
