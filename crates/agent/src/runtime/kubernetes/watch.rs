//! Watches all objects of a kind.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::runtime::watcher::{self, Config, DefaultBackoff, Event, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use super::connection::Connection;
use super::fault::{Recovery, recovery};

/// Passes changes to `handle`; never returns. After a failure it resumes, with [`Event::Init`] if
/// events may have been missed.
pub(super) async fn watch<K>(
    connection: Arc<Connection>,
    what: String,
    api: impl Fn(Client) -> Api<K>,
    config: Config,
    mut handle: impl FnMut(Event<K>),
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut backoff = DefaultBackoff::default();
    loop {
        let mut events = std::pin::pin!(watcher(api(connection.client()), config.clone()));
        while let Some(event) = events.next().await {
            let error = match event {
                Ok(event) => {
                    if !matches!(event, Event::Init) {
                        backoff = DefaultBackoff::default();
                    }
                    handle(event);
                    continue;
                }
                Err(error) => error,
            };
            let recovery = log_failure(&what, &error);
            if recovery == Recovery::Reauthenticate {
                connection.renew().await;
            }
            tokio::time::sleep(backoff.next().unwrap_or(Duration::from_secs(5))).await;
            if recovery != Recovery::Retry {
                break;
            }
        }
    }
}

fn log_failure(what: &str, error: &watcher::Error) -> Recovery {
    let recovery = recovery(error);
    match recovery {
        Recovery::Relist => tracing::info!(kind = what, "watch expired, listing again"),
        _ => tracing::warn!(kind = what, %error, "watch failed, retrying"),
    }
    recovery
}
