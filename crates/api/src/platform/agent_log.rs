//! Endpoints for remote agents to fetch log requests and deliver log lines.

use std::time::Duration;

use axum::Json as Answer;
use serde::Deserialize;
use utoipa::IntoParams;
use wire::agent::{LogChunk, LogChunkAck, LogRequests};

use crate::Problem;
use crate::body::Json;
use crate::caller::{AgentCaller, Call};
use crate::page::{Query, number};

/// Maximum time that an agent may wait for a request.
const MAX_WAIT_SECS: i64 = 60;
/// Maximum number of lines per request.
const MAX_LINES: usize = 10_000;

/// Query for log requests.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogRequestQuery {
    /// Seconds to wait for a log request, from 0 to 60; capped by the request timeout.
    #[param(value_type = Option<i64>)]
    wait: Option<String>,
}

/// Waits for log requests to the agent's cluster.
#[utoipa::path(get, path = "/api/v1/agent/logs", tag = "agents", security(("cluster_token" = [])),
    params(LogRequestQuery), responses((status = 200, body = LogRequests, description = "Log requests"), Problem))]
pub(crate) async fn agent_log_asks(
    Call(app, agent): Call<AgentCaller>,
    Query(query): Query<LogRequestQuery>,
) -> Result<Answer<LogRequests>, Problem> {
    let wait = number("wait", query.wait.as_deref(), 0, 0, MAX_WAIT_SECS)?;
    let wait = Duration::from_secs(wait.unsigned_abs()).min(app.settings.request_timeout / 5 * 4);
    let mut stop = app.stop.clone();
    let requests = tokio::select! {
        requests = app.relay.fetch(agent.cluster, wait) => requests,
        () = stop.signalled() => Vec::new(),
    };
    Ok(Answer(LogRequests { items: requests }))
}

/// Delivers log lines for a log request.
#[utoipa::path(post, path = "/api/v1/agent/logs", tag = "agents", security(("cluster_token" = [])),
    request_body = LogChunk,
    responses((status = 200, body = LogChunkAck, description = "Delivered, if a client is still reading"), Problem))]
pub(crate) async fn agent_log_answer(
    Call(app, agent): Call<AgentCaller>,
    Json(part): Json<LogChunk>,
) -> Result<Answer<LogChunkAck>, Problem> {
    if part.lines.len() > MAX_LINES {
        return Err(Problem::field("lines", format!("must have at most {MAX_LINES} items")));
    }
    let go_on = app.relay.reply(agent.cluster, part.id, part.lines, part.end).await;
    Ok(Answer(LogChunkAck { go_on }))
}
