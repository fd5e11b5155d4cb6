//! Executors of this server.

use axum::Json as Answer;
use axum::extract::State;
use model::template::Executor;
use wire::executor::{self, ExecutorList};

use crate::caller::Caller;
use crate::{App, Problem};

/// Lists the executors, and what the unavailable ones lack.
#[utoipa::path(get, path = "/api/v1/executors", tag = "environments",
    responses((status = 200, body = ExecutorList, description = "Complete list"), Problem))]
pub(crate) async fn executor_list(
    State(app): State<App>,
    _: Caller,
) -> Result<Answer<ExecutorList>, Problem> {
    let mut items: Vec<_> = Executor::ALL.iter().map(|name| describe(&app, *name)).collect();
    items.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Answer(ExecutorList { items }))
}

fn describe(app: &App, name: Executor) -> executor::Executor {
    let found = app.settings.executors.iter().find(|(executor, _)| *executor == name);
    let reason = match found {
        Some((_, reason)) => reason.clone(),
        None => Some("not configured on this server".into()),
    };
    executor::Executor { name: name.to_string(), available: reason.is_none(), reason }
}
