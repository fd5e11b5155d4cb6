//! Who can carry out resources on this server.

use axum::Json as Answer;
use axum::extract::State;
use model::template::Executor;
use wire::executor::{self, ExecutorList};

use crate::caller::Caller;
use crate::{App, Problem};

/// Lists who can carry out resources on this server, and what the others lack.
#[utoipa::path(get, path = "/api/v1/executors", tag = "environments",
    responses((status = 200, body = ExecutorList, description = "All of them"), Problem))]
pub(crate) async fn executor_list(
    State(app): State<App>,
    _: Caller,
) -> Result<Answer<ExecutorList>, Problem> {
    let mut items: Vec<_> = Executor::ALL.iter().map(|of| known(&app, *of)).collect();
    items.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Answer(ExecutorList { items }))
}

fn known(app: &App, name: Executor) -> executor::Executor {
    let found = app.settings.executors.iter().find(|(of, _)| *of == name);
    let reason = match found {
        Some((_, reason)) => reason.clone(),
        None => Some("this server was not set up for it".into()),
    };
    executor::Executor { name: name.to_string(), available: reason.is_none(), reason }
}
