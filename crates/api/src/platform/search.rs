//! Search over everything that the caller may see.

use axum::Json as Answer;
use engine::search_index::Error;
use model::event::Kind;
use model::search_index::KINDS;
use serde::Deserialize;
use utoipa::IntoParams;
use wire::search::{Item, Results};

use crate::Problem;
use crate::caller::Call;
use crate::page::{Query, number};

/// Search query.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchQuery {
    /// Words or prefixes of names, descriptions, tags and IDs: at most 256 characters and 8 words.
    /// All of them must match; longer ones tolerate typos.
    #[param(value_type = String)]
    q: Option<String>,
    /// Filters by kind: `organization`, `user`, `cluster`, `deployment`, `instance`, `template`,
    /// `environment` or `resource`.
    kind: Option<String>,
    /// Maximum number of results, from 1 to 100; defaults to 20.
    #[param(value_type = Option<i64>)]
    limit: Option<String>,
}

/// Searches everything that the caller may see, best match first.
///
/// Matches in a name rank above those in an ID, a tag or a description, whole words above prefixes,
/// and typos last. Results include everything created before the request.
#[utoipa::path(get, path = "/api/v1/search", tag = "search", params(SearchQuery),
    responses((status = 200, body = Results, description = "Search results"), Problem))]
pub(crate) async fn search(
    Call(app, caller): Call,
    Query(request): Query<SearchQuery>,
) -> Result<Answer<Results>, Problem> {
    let limit = number("limit", request.limit.as_deref(), 20, 1, 100)?;
    let limit = usize::try_from(limit).unwrap_or_default();
    let kind = request.kind.as_deref().map(|text| one_of("kind", &KINDS, text)).transpose()?;
    let mut query =
        model::search_index::Query::new(request.q.as_deref().unwrap_or_default(), limit)?;
    query.kind = kind;
    query.organization = caller.scope().organization();
    let found = app.search_index.search(&query).await.map_err(|error| match error {
        Error::IndexNotReady => Problem::unavailable(
            "The server has just started and the search index is not ready; try again.",
        ),
        Error::Store(error) => error.into(),
    })?;
    Ok(Answer(Results { items: found.into_iter().map(Item::from).collect() }))
}

/// Parses one of the given kinds.
pub(super) fn one_of(field: &str, kinds: &[Kind], text: &str) -> Result<Kind, Problem> {
    let found = kinds.iter().find(|kind| kind.as_str() == text.trim());
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        let text: String = text.chars().take(64).collect();
        Problem::field(field, format!("must be one of {}, not {text:?}", names.join(", ")))
    })
}
