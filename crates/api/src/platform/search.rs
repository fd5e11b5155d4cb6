//! Search over everything that the caller may see.

use axum::Json as Answer;
use engine::finding::Error;
use model::event::Kind;
use model::finding::KINDS;
use serde::Deserialize;
use utoipa::IntoParams;
use wire::search::{Item, Results};

use crate::Problem;
use crate::caller::Call;
use crate::page::{Query, number};

/// What is looked for.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// Words, or beginnings of words, of names, descriptions, tags and ids: 256 characters and 8 words at
    /// most. All of them must be there; longer ones may be mistyped.
    #[param(value_type = String)]
    q: Option<String>,
    /// Only of this kind: `organization`, `user`, `cluster`, `deployment`, `instance`, `template`,
    /// `environment` or `resource`.
    kind: Option<String>,
    /// How many at most, from 1 to 100; 20 when it is left out.
    #[param(value_type = Option<i64>)]
    limit: Option<String>,
}

/// Finds what the caller may see by words: what fits best comes first.
///
/// Words in a name count more than those in an id, a tag or a description, whole words more than
/// beginnings, and what is mistyped comes last. What was made before the call is found.
#[utoipa::path(get, path = "/api/v1/search", tag = "search", params(Wanted),
    responses((status = 200, body = Results, description = "What was found"), Problem))]
pub(crate) async fn search(
    Call(app, caller): Call,
    Query(wanted): Query<Wanted>,
) -> Result<Answer<Results>, Problem> {
    let limit = number("limit", wanted.limit.as_deref(), 20, 1, 100)?;
    let limit = usize::try_from(limit).unwrap_or_default();
    let kind = wanted.kind.as_deref().map(|text| one_of("kind", &KINDS, text)).transpose()?;
    let mut query = model::finding::Query::new(wanted.q.as_deref().unwrap_or_default(), limit)?;
    query.kind = kind;
    query.organization = caller.scope().organization();
    let found = app.finder.find(&query).await.map_err(|error| match error {
        Error::NotYet => Problem::unavailable(
            "The server has just started and is still reading what can be found; try again in a moment.",
        ),
        Error::Store(error) => error.into(),
    })?;
    Ok(Answer(Results { items: found.into_iter().map(Item::from).collect() }))
}

/// One of some kinds.
pub(super) fn one_of(field: &str, kinds: &[Kind], text: &str) -> Result<Kind, Problem> {
    let found = kinds.iter().find(|kind| kind.as_str() == text.trim());
    found.copied().ok_or_else(|| {
        let all: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        let text: String = text.chars().take(64).collect();
        Problem::field(field, format!("{text:?} is none of {}", all.join(", ")))
    })
}
