//! One watch for all objects of a kind, for ever.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::runtime::watcher::{self, Config, DefaultBackoff, Event, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use super::connection::Connection;
use super::fault::{After, after};

/// Tells what changes, as long as it is polled. After whatever went wrong it begins again: with
/// [`Event::Init`] if something may have been missed.
pub(super) async fn follow<K>(
    connection: Arc<Connection>,
    what: String,
    api: impl Fn(Client) -> Api<K>,
    config: Config,
    mut take: impl FnMut(Event<K>),
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut waits = DefaultBackoff::default();
    loop {
        let mut events = std::pin::pin!(watcher(api(connection.client()), config.clone()));
        while let Some(event) = events.next().await {
            let error = match event {
                Ok(event) => {
                    if !matches!(event, Event::Init) {
                        waits = DefaultBackoff::default();
                    }
                    take(event);
                    continue;
                }
                Err(error) => error,
            };
            let next = trouble(&what, &error);
            if next == After::Renew {
                connection.renew().await;
            }
            tokio::time::sleep(waits.next().unwrap_or(Duration::from_secs(5))).await;
            if next != After::Wait {
                break;
            }
        }
    }
}

fn trouble(what: &str, error: &watcher::Error) -> After {
    let next = after(error);
    match next {
        After::Anew => tracing::info!("what is known of {what} is too old, listing again"),
        _ => tracing::warn!(%error, "{what} can't be watched, trying again"),
    }
    next
}
