//! What the replicas beside this agent say, to who asks for it at the server.

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
use wire::agent::{LogAsks, LogPart, LogPartTaken};

use super::connection::{Connection, Failure};

/// How long the server may keep us waiting for a question, in seconds.
const WAIT: &str = "30";
const WITHIN: Duration = Duration::from_secs(45);
const RETRY: Duration = Duration::from_secs(1);
/// How often to see whether somebody still listens.
const STILL_THERE: Duration = Duration::from_secs(5);
/// How many lines and bytes go in one call.
const MOST_LINES: usize = 1000;
const MOST_BYTES: usize = 256 * 1024;

/// Answers questions for ever.
pub(super) async fn answer_all(connection: Arc<Connection>, runtime: Arc<dyn Runtime>) {
    loop {
        match ask(&connection).await {
            Ok(asks) => {
                for ask in asks.items {
                    let lines = runtime.logs(ask.replica.into(), ask.from, ask.follow);
                    let connection = connection.clone();
                    task::spawn("a log", async move {
                        if let Err(error) = answer(&connection, ask.id, lines).await {
                            tracing::debug!(%error, "a log was not told to its end");
                        }
                    });
                }
            }
            Err(error) => {
                tracing::debug!(%error, "the server does not ask, trying again");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

async fn ask(connection: &Connection) -> Result<LogAsks, Failure> {
    let answer = connection.call(Method::GET, "logs", &[("wait", WAIT)], None, WITHIN).await?;
    let read = answer.json().await;
    read.map_err(|error| Failure::Passing(format!("the answer is not understood: {error}")))
}

/// Tells lines as they come, until there are no more or nobody listens.
async fn answer(connection: &Connection, id: u32, mut lines: LogStream) -> Result<(), Failure> {
    let mut part = Vec::new();
    loop {
        let is_end = tokio::time::timeout(STILL_THERE, gather(&mut lines, &mut part)).await;
        let end = is_end == Ok(true);
        let body = json!(LogPart { id, lines: std::mem::take(&mut part), end });
        let sent = connection.call(Method::POST, "logs", &[], Some(&body), WITHIN).await?;
        let taken: LogPartTaken =
            sent.json().await.map_err(|error| Failure::Passing(error.to_string()))?;
        if end || !taken.go_on {
            return Ok(());
        }
    }
}

/// Gathers what is there; whether that was all. What was gathered stays when it is cut short.
async fn gather(lines: &mut LogStream, part: &mut Vec<LogLine>) -> bool {
    let mut room = MOST_BYTES;
    while part.len() < MOST_LINES {
        let next = if part.is_empty() {
            lines.next().await
        } else {
            let Poll::Ready(next) = futures_util::poll!(lines.next()) else { return false };
            next
        };
        let Some(line) = next else { return true };
        let size = line.text.len();
        part.push(line);
        match room.checked_sub(size) {
            Some(left) => room = left,
            None => return false,
        }
    }
    false
}
