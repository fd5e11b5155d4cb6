//! Search results.

use std::collections::BTreeMap;

use model::event::Kind;
use model::search_index::{self, Hit};
use model::{OrganizationId, Xid};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Search results.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Results {
    /// Results, best match first.
    pub items: Vec<Item>,
}

/// A search result.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = SearchItem)]
pub struct Item {
    /// Kind of the subject.
    pub kind: String,
    /// Unique identifier.
    #[schema(value_type = String)]
    pub id: Xid,
    /// Name; `name@version` for templates.
    pub name: String,
    /// Description. For subjects without one: location of a cluster, image of a deployment, kind
    /// and type of an instance.
    pub description: String,
    /// User-defined tags.
    pub tags: BTreeMap<String, String>,
    /// Status, if the subject has one.
    pub status: Option<String>,
    /// Owning organization; null when shared by all organizations.
    #[schema(value_type = Option<String>)]
    pub organization_id: Option<OrganizationId>,
    /// Path in this API.
    pub href: String,
    /// Score: 1 if the query equals the name, less otherwise.
    pub score: f64,
    /// Match of each word of the query.
    pub matched: Vec<Match>,
}

/// The match of a query word.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = SearchMatch)]
pub struct Match {
    /// Matching field: `name`, `id`, `tag` or `description`.
    pub field: String,
    /// Matching word.
    pub word: String,
    /// Number of typing errors that were tolerated.
    pub typos: u8,
}

impl From<Hit> for Item {
    fn from(hit: Hit) -> Self {
        let document = hit.document;
        let tags = document.tags.into_iter().map(|(key, value)| (key.into(), value.into()));
        Self {
            href: href(document.kind, document.id, &document.name),
            kind: document.kind.to_string(),
            id: document.id,
            name: document.name.into(),
            description: document.description.into(),
            tags: tags.collect(),
            status: document.status.map(Into::into),
            organization_id: document.organization,
            score: hit.score.points(),
            matched: hit.matched.into_iter().map(Match::from).collect(),
        }
    }
}

impl From<search_index::Match> for Match {
    fn from(matched: search_index::Match) -> Self {
        Self { field: matched.field.to_string(), word: matched.word, typos: matched.typos }
    }
}

/// Path of a subject in this API. Templates are addressed by name.
pub(crate) fn href(kind: Kind, id: Xid, name: &str) -> String {
    match kind {
        Kind::Template => format!("/api/v1/templates/{name}"),
        _ => format!("/api/v1/{kind}s/{id}"),
    }
}
