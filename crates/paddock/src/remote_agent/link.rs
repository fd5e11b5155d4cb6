//! The agent's link to a control plane over HTTP: long polls for desired state, and reports.

use std::sync::Arc;
use std::time::Duration;

use agent::{Link, LinkError};
use model::agent::{Desired, Report};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use wire::agent::DesiredState;

use super::connection::{Connection, Failure};

/// Duration of a long poll, in seconds.
const WAIT: &str = "30";
/// Timeout of a request without long poll.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of a long poll.
const POLL_TIMEOUT: Duration = Duration::from_secs(45);
/// Maximum bytes of reports per request: half of the server's limit.
const PART_BYTES: usize = 512 * 1024;
/// Pause before retrying a failed request.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Link of one cluster.
pub(super) struct HttpLink {
    connection: Arc<Connection>,
    state: Mutex<State>,
}

/// Position in the server's stream of desired state.
#[derive(Default)]
struct State {
    /// Server's cursor of the last received state.
    cursor: String,
    /// Changes received by the last long poll and not yet fetched by the agent.
    changes: Option<Vec<Desired>>,
    /// Whether the connection was lost. If so, the complete desired state is fetched.
    was_lost: bool,
}

impl HttpLink {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        Self { connection, state: Mutex::default() }
    }

    async fn fetch(
        &self,
        query: &[(&str, &str)],
        timeout: Duration,
    ) -> Result<DesiredState, Failure> {
        let response = self.connection.call(Method::GET, "desired", query, None, timeout).await?;
        let desired = response.json().await;
        desired.map_err(|error| Failure::Transient(format!("invalid response: {error}")))
    }
}

/// Splits reports into parts within the server's limit. An oversized report loses its log tail.
fn parts(reports: &[Report]) -> Vec<Vec<Value>> {
    let mut parts: Vec<Vec<Value>> = Vec::new();
    let mut free_bytes = 0;
    for report in reports {
        let mut value = json!(wire::agent::Report::from(report.clone()));
        if value.to_string().len() > PART_BYTES {
            value["tail"] = json!([]);
        }
        let size = value.to_string().len();
        if size > free_bytes {
            parts.push(Vec::new());
            free_bytes = PART_BYTES;
        }
        free_bytes = free_bytes.saturating_sub(size);
        parts.last_mut().expect("bytes are free only in a part").push(value);
    }
    parts
}

impl Link for HttpLink {
    async fn desired(&self, all: bool) -> Result<Vec<Desired>, LinkError> {
        let mut state = self.state.lock().await;
        let all = all || state.was_lost;
        if !all && let Some(changes) = state.changes.take() {
            return Ok(changes);
        }
        let query = [("all", if all { "true" } else { "false" })];
        let fetched = self.fetch(&query, REQUEST_TIMEOUT).await;
        let DesiredState { items, cursor } = fetched.map_err(|failure| {
            state.was_lost = true;
            LinkError(failure.to_string())
        })?;
        *state = State { cursor, ..State::default() };
        Ok(items.into_iter().map(Desired::from).collect())
    }

    async fn changed(&self) {
        loop {
            let mut state = self.state.lock().await;
            let query = [("wait", WAIT), ("seen", state.cursor.as_str())];
            match self.fetch(&query, POLL_TIMEOUT).await {
                Ok(_) if state.was_lost => return,
                Ok(DesiredState { items, .. }) if items.is_empty() => {}
                Ok(DesiredState { items, cursor }) => {
                    let items = items.into_iter().map(Desired::from).collect();
                    (state.cursor, state.changes) = (cursor, Some(items));
                    return;
                }
                Err(failure) => {
                    tracing::warn!(
                        server = self.connection.address(),
                        error = %failure,
                        "polling for desired state failed, retrying"
                    );
                    state.was_lost = true;
                    drop(state);
                    tokio::time::sleep(RETRY_PAUSE).await;
                    return;
                }
            }
        }
    }

    async fn report(&self, reports: &[Report]) -> Result<(), LinkError> {
        // Reports are idempotent: after an error, parts may be sent again.
        for part in parts(reports) {
            let body = json!({ "reports": part });
            let sent =
                self.connection.call(Method::POST, "reports", &[], Some(&body), REQUEST_TIMEOUT);
            sent.await.map_err(|failure| LinkError(failure.to_string()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use model::agent::{Observed, ReplicaId};
    use model::deployment::Reason;
    use model::reason::StatusReason as _;
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
    fn reports_are_split_into_parts_in_order() {
        let reports: Vec<Report> = (0..100).map(|n| report(n, 20_000)).collect();
        let parts = parts(&reports);
        assert!(parts.len() > 3, "{}", parts.len());
        assert!(parts.iter().all(|part| json!(part).to_string().len() < 1024 * 1024));
        let sent: Vec<&Value> = parts.iter().flatten().collect();
        assert_eq!(sent, json!(reports).as_array().unwrap().iter().collect::<Vec<_>>());
        assert_eq!(super::parts(&[]), Vec::<Vec<Value>>::new());
    }
}
