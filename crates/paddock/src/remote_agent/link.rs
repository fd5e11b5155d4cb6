//! The agent's link to a control plane over HTTP: a long poll for what shall be, and reports.

use std::sync::Arc;
use std::time::Duration;

use agent::{Link, LinkError};
use model::agent::{Desired, Report};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use wire::agent::Wishes;

use super::connection::{Connection, Failure};

/// How long the server may keep us waiting for news, in seconds.
const WAIT: &str = "30";
/// How long an answer may take that need not wait for anything.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How long one may take that waits for news.
const NEWS_WITHIN: Duration = Duration::from_secs(45);
/// How much is reported in one call, in bytes; half of what a server takes.
const PART_BYTES: usize = 512 * 1024;
/// How long to pause before asking again a server that did not answer.
const RETRY: Duration = Duration::from_millis(500);

/// Speaks for one cluster.
pub(super) struct HttpLink {
    connection: Arc<Connection>,
    known: Mutex<Known>,
}

/// What the server has told us.
#[derive(Default)]
struct Known {
    /// Its name for what it last told.
    cursor: String,
    /// What came with the last news and was not asked for yet.
    news: Option<Vec<Desired>>,
    /// Was the connection lost? Then all that shall be is asked for.
    was_lost: bool,
}

impl HttpLink {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        Self { connection, known: Mutex::default() }
    }

    async fn ask(&self, query: &[(&str, &str)], within: Duration) -> Result<Wishes, Failure> {
        let answer = self.connection.call(Method::GET, "desired", query, None, within).await?;
        let read = answer.json().await;
        read.map_err(|error| Failure::Passing(format!("the answer is not understood: {error}")))
    }
}

/// Reports in parts that a server takes. What is too long to be told is told without its log.
fn parts(reports: &[Report]) -> Vec<Vec<Value>> {
    let mut parts: Vec<Vec<Value>> = Vec::new();
    let mut room = 0;
    for report in reports {
        let mut value = json!(wire::agent::Report::from(report.clone()));
        if value.to_string().len() > PART_BYTES {
            value["tail"] = json!([]);
        }
        let size = value.to_string().len();
        if size > room {
            parts.push(Vec::new());
            room = PART_BYTES;
        }
        room = room.saturating_sub(size);
        parts.last_mut().expect("there is room only in a part").push(value);
    }
    parts
}

impl Link for HttpLink {
    async fn desired(&self, all: bool) -> Result<Vec<Desired>, LinkError> {
        let mut known = self.known.lock().await;
        let all = all || known.was_lost;
        if !all && let Some(news) = known.news.take() {
            return Ok(news);
        }
        let query = [("all", if all { "true" } else { "false" })];
        let answer = self.ask(&query, ANSWER_WITHIN).await;
        let Wishes { items, cursor } = answer.map_err(|failure| {
            known.was_lost = true;
            LinkError(failure.to_string())
        })?;
        *known = Known { cursor, ..Known::default() };
        Ok(items.into_iter().map(Desired::from).collect())
    }

    async fn changed(&self) {
        loop {
            let mut known = self.known.lock().await;
            let query = [("wait", WAIT), ("seen", known.cursor.as_str())];
            match self.ask(&query, NEWS_WITHIN).await {
                Ok(_) if known.was_lost => return,
                Ok(Wishes { items, .. }) if items.is_empty() => {}
                Ok(Wishes { items, cursor }) => {
                    let items = items.into_iter().map(Desired::from).collect();
                    (known.cursor, known.news) = (cursor, Some(items));
                    return;
                }
                Err(failure) => {
                    tracing::warn!(
                        server = self.connection.address(),
                        error = %failure,
                        "the server does not say what is new, trying again"
                    );
                    known.was_lost = true;
                    drop(known);
                    tokio::time::sleep(RETRY).await;
                    return;
                }
            }
        }
    }

    async fn report(&self, reports: &[Report]) -> Result<(), LinkError> {
        // A part that has arrived already may come once more: it says nothing new then.
        for part in parts(reports) {
            let body = json!({ "reports": part });
            let sent =
                self.connection.call(Method::POST, "reports", &[], Some(&body), ANSWER_WITHIN);
            sent.await.map_err(|failure| LinkError(failure.to_string()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use model::agent::{Observed, ReplicaId};
    use model::deployment::Reason;
    use model::reason::Coded as _;
    use model::{ClusterId, DeploymentId, Xid};

    use super::*;

    fn report(number: u32, size: usize) -> Report {
        let id = Xid::new(1, [0; 5], 0);
        Report {
            replica: ReplicaId { deployment: DeploymentId(id), number },
            cluster: ClusterId(id),
            generation: 1,
            observed: Observed::Failed { reason: Reason::reported("x".repeat(size)) },
            tail: Vec::new(),
        }
    }

    #[test]
    fn all_reports_are_told_in_order_and_in_parts() {
        let reports: Vec<Report> = (0..100).map(|n| report(n, 20_000)).collect();
        let parts = parts(&reports);
        assert!(parts.len() > 3, "{}", parts.len());
        assert!(parts.iter().all(|part| json!(part).to_string().len() < 1024 * 1024));
        let told: Vec<&Value> = parts.iter().flatten().collect();
        assert_eq!(told, json!(reports).as_array().unwrap().iter().collect::<Vec<_>>());
        assert_eq!(super::parts(&[]), Vec::<Vec<Value>>::new());
    }
}
