//! Sends logs of this cluster's replicas to the server on request.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use agent::Runtime;
use base::task;
use futures_util::StreamExt as _;
use model::log::LogLine;
use reqwest::Method;
use runtime::LogStream;
use serde_json::json;
use wire::agent::{LogChunk, LogChunkAck, LogRequests};

use super::connection::{Connection, Failure};

/// Duration of a long poll for log requests, in seconds.
const WAIT: &str = "30";
const TIMEOUT: Duration = Duration::from_secs(45);
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Interval at which a part is sent, even if empty, to learn whether the reader is still connected.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// Maximum lines and bytes per request.
const MAX_LINES: usize = 1000;
const MAX_BYTES: usize = 256 * 1024;

/// Serves log requests forever.
pub(super) async fn serve(connection: Arc<Connection>, runtime: Arc<dyn Runtime>) {
    loop {
        match poll(&connection).await {
            Ok(requests) => {
                for request in requests.items {
                    let lines = runtime.logs(request.replica.into(), request.from, request.follow);
                    let connection = connection.clone();
                    task::spawn("log stream", async move {
                        if let Err(error) = send(&connection, request.id, lines).await {
                            tracing::debug!(%error, "log stream interrupted");
                        }
                    });
                }
            }
            Err(error) => {
                tracing::debug!(%error, "polling for log requests failed, retrying");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

async fn poll(connection: &Connection) -> Result<LogRequests, Failure> {
    let response = connection.call(Method::GET, "logs", &[("wait", WAIT)], None, TIMEOUT).await?;
    let requests = response.json().await;
    requests.map_err(|error| Failure::Transient(format!("invalid response: {error}")))
}

/// Sends lines as they arrive, until the log ends or the reader disconnects.
async fn send(connection: &Connection, id: u32, mut lines: LogStream) -> Result<(), Failure> {
    let mut part = Vec::new();
    loop {
        let is_end = tokio::time::timeout(KEEP_ALIVE, gather(&mut lines, &mut part)).await;
        let end = is_end == Ok(true);
        let body = json!(LogChunk { id, lines: std::mem::take(&mut part), end });
        let sent = connection.call(Method::POST, "logs", &[], Some(&body), TIMEOUT).await?;
        let taken: LogChunkAck =
            sent.json().await.map_err(|error| Failure::Transient(error.to_string()))?;
        if end || !taken.go_on {
            return Ok(());
        }
    }
}

/// Collects available lines and returns whether the log has ended. Cancel-safe: lines stay in
/// `part`.
async fn gather(lines: &mut LogStream, part: &mut Vec<LogLine>) -> bool {
    let mut free_bytes = MAX_BYTES;
    while part.len() < MAX_LINES {
        let next = if part.is_empty() {
            lines.next().await
        } else {
            let Poll::Ready(next) = futures_util::poll!(lines.next()) else { return false };
            next
        };
        let Some(line) = next else { return true };
        let size = line.text.len();
        part.push(line);
        match free_bytes.checked_sub(size) {
            Some(left) => free_bytes = left,
            None => return false,
        }
    }
    false
}
