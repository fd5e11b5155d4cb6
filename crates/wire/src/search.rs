//! Search results.

use std::collections::BTreeMap;

use model::event::Kind;
use model::finding::{Hit, Matched};
use model::{OrganizationId, Xid};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What was found.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Results {
    /// What fits best comes first.
    pub items: Vec<Item>,
}

/// Something that was found.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = SearchItem)]
pub struct Item {
    /// What it is.
    pub kind: String,
    /// Its id.
    #[schema(value_type = String)]
    pub id: Xid,
    /// Its name; a template's is `name@version`.
    pub name: String,
    /// What it is for. Of what has no description: where a cluster stands, the image of a deployment, the
    /// kind and type of an instance.
    pub description: String,
    /// What users wrote on it.
    pub tags: BTreeMap<String, String>,
    /// Where it is on its way, if it has one.
    pub status: Option<String>,
    /// Whose it is; nobody's when it is shared by all.
    #[schema(value_type = Option<String>)]
    pub organization_id: Option<OrganizationId>,
    /// Where it is in this API.
    pub href: String,
    /// How well it fits: 1 if the query is its name, less for everything else.
    pub score: f64,
    /// What of it each word of the query stands for.
    pub matched: Vec<Match>,
}

/// What a word of a query stands for.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = SearchMatch)]
pub struct Match {
    /// Where it is: `name`, `id`, `tag` or `description`.
    pub field: String,
    /// The word that is there.
    pub word: String,
    /// How many of its letters were mistyped.
    pub typos: u8,
}

impl From<Hit> for Item {
    fn from(hit: Hit) -> Self {
        let found = hit.document;
        let tags = found.tags.into_iter().map(|(key, value)| (key.into(), value.into()));
        Self {
            href: href(found.kind, found.id, &found.name),
            kind: found.kind.to_string(),
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
pub(crate) fn href(kind: Kind, id: Xid, name: &str) -> String {
    match kind {
        Kind::Template => format!("/api/v1/templates/{name}"),
        _ => format!("/api/v1/{kind}s/{id}"),
    }
}
