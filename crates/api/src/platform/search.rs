//! Search over everything that the caller may see.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::State;
use engine::finding::Error;
use model::event::Kind;
use model::finding::{Hit, KINDS, Matched};
use model::{OrganizationId, Xid};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::caller::Caller;
use crate::page::{Query, number};
use crate::{App, Problem};

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

/// What was found.
#[derive(Serialize, ToSchema)]
pub(crate) struct Results {
    /// What fits best comes first.
    items: Vec<Item>,
}

/// Something that was found.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchItem)]
pub(crate) struct Item {
    /// What it is.
    #[schema(value_type = String)]
    kind: Kind,
    /// Its id.
    #[schema(value_type = String)]
    id: Xid,
    /// Its name; a template's is `name@version`.
    name: String,
    /// What it is for. Of what has no description: where a cluster stands, the image of a deployment, the
    /// kind and type of an instance.
    description: String,
    /// What users wrote on it.
    tags: BTreeMap<String, String>,
    /// Where it is on its way, if it has one.
    status: Option<String>,
    /// Whose it is; nobody's when it is shared by all.
    #[schema(value_type = Option<String>)]
    organization_id: Option<OrganizationId>,
    /// Where it is in this API.
    href: String,
    /// How well it fits: 1 if the query is its name, less for everything else.
    score: f64,
    /// What of it each word of the query stands for.
    matched: Vec<Match>,
}

/// What a word of a query stands for.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchMatch)]
struct Match {
    /// Where it is: `name`, `id`, `tag` or `description`.
    field: String,
    /// The word that is there.
    word: String,
    /// How many of its letters were mistyped.
    typos: u8,
}

impl From<Hit> for Item {
    fn from(hit: Hit) -> Self {
        let found = hit.document;
        let tags = found.tags.into_iter().map(|(key, value)| (key.into(), value.into()));
        Self {
            href: href(found.kind, found.id, &found.name),
            kind: found.kind,
            id: found.id,
            name: found.name.into(),
            description: found.description.into(),
            tags: tags.collect(),
            status: found.status.map(Into::into),
            organization_id: found.organization,
            score: hit.score.points(),
            matched: hit.matched.into_iter().map(Match::from).collect(),
        }
    }
}

impl From<Matched> for Match {
    fn from(matched: Matched) -> Self {
        Self { field: matched.field.to_string(), word: matched.word, typos: matched.typos }
    }
}

/// Where a subject is in this API. Templates go by their name.
pub(super) fn href(kind: Kind, id: Xid, name: &str) -> String {
    match kind {
        Kind::Template => format!("/api/v1/templates/{name}"),
        _ => format!("/api/v1/{kind}s/{id}"),
    }
}

/// Finds what the caller may see by words: what fits best comes first.
///
/// Words in a name count more than those in an id, a tag or a description, whole words more than
/// beginnings, and what is mistyped comes last. What was made before the call is found.
#[utoipa::path(get, path = "/api/v1/search", tag = "search", params(Wanted),
    responses((status = 200, body = Results, description = "What was found"), Problem))]
pub(crate) async fn search(
    State(app): State<App>,
    caller: Caller,
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
