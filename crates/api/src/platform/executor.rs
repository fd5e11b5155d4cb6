//! Who can carry out resources on this server.

use axum::Json as Answer;
use axum::extract::State;
use model::template::Executor;
use serde::Serialize;
use utoipa::ToSchema;

use crate::caller::Caller;
use crate::{App, Problem};

/// All executors.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExecutorList {
    /// The executors, in the order of their names.
    items: Vec<Known>,
}

/// Somebody who carries out resources.
#[derive(Serialize, ToSchema)]
#[schema(as = Executor)]
pub(crate) struct Known {
    /// As templates name it.
    #[schema(value_type = String)]
    name: Executor,
    /// Can it be used on this server?
    available: bool,
    /// Which setting it lacks, if it can't.
    reason: Option<String>,
}

/// Lists who can carry out resources on this server, and what the others lack.
#[utoipa::path(get, path = "/api/v1/executors", tag = "environments",
    responses((status = 200, body = ExecutorList, description = "All of them"), Problem))]
pub(crate) async fn executor_list(
    State(app): State<App>,
    _: Caller,
) -> Result<Answer<ExecutorList>, Problem> {
    let mut items: Vec<Known> = Executor::ALL.iter().map(|of| known(&app, *of)).collect();
    items.sort_by_key(|one| one.name.as_str());
    Ok(Answer(ExecutorList { items }))
}

fn known(app: &App, name: Executor) -> Known {
    let found = app.settings.executors.iter().find(|(of, _)| *of == name);
    let reason = match found {
        Some((_, reason)) => reason.clone(),
        None => Some("this server was not set up for it".into()),
    };
    Known { name, available: reason.is_none(), reason }
}
