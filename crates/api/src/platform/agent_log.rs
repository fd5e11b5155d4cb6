//! What agents over the network are asked about logs, and tell.

use std::time::Duration;

use axum::Json as Answer;
use serde::Deserialize;
use utoipa::IntoParams;
use wire::agent::{LogAsks, LogPart, LogPartTaken};

use crate::Problem;
use crate::body::Json;
use crate::caller::{AgentCaller, Call};
use crate::page::{Query, number};

/// How long an agent may wait for a question.
const MAX_WAIT_SECS: i64 = 60;
/// How many lines one call takes.
const MAX_LINES: usize = 10_000;

/// How long an agent waits.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Patience {
    /// How many seconds to wait for a question, from 0 to 60; less if requests may take less.
    #[param(value_type = Option<i64>)]
    wait: Option<String>,
}

/// What its agent is asked about logs, as soon as somebody asks.
#[utoipa::path(get, path = "/api/v1/agent/logs", tag = "agents", security(("cluster_token" = [])),
    params(Patience), responses((status = 200, body = LogAsks, description = "Questions"), Problem))]
pub(crate) async fn agent_log_asks(
    Call(app, agent): Call<AgentCaller>,
    Query(patience): Query<Patience>,
) -> Result<Answer<LogAsks>, Problem> {
    let wait = number("wait", patience.wait.as_deref(), 0, 0, MAX_WAIT_SECS)?;
    let wait = Duration::from_secs(wait.unsigned_abs()).min(app.settings.request_timeout / 5 * 4);
    let mut stop = app.stop.clone();
    let asks = tokio::select! {
        asks = app.relay.take(agent.cluster, wait) => asks,
        () = stop.told() => Vec::new(),
    };
    Ok(Answer(LogAsks { items: asks }))
}

/// Takes a part of the answer to a question about a log.
#[utoipa::path(post, path = "/api/v1/agent/logs", tag = "agents", security(("cluster_token" = [])),
    request_body = LogPart,
    responses((status = 200, body = LogPartTaken, description = "Passed on, if somebody listens"), Problem))]
pub(crate) async fn agent_log_answer(
    Call(app, agent): Call<AgentCaller>,
    Json(part): Json<LogPart>,
) -> Result<Answer<LogPartTaken>, Problem> {
    if part.lines.len() > MAX_LINES {
        return Err(Problem::field("lines", format!("at most {MAX_LINES} at once")));
    }
    let go_on = app.relay.answer(agent.cluster, part.id, part.lines, part.end).await;
    Ok(Answer(LogPartTaken { go_on }))
}
