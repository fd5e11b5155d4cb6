//! An in-memory search index over names, ids, tags and descriptions, with typo tolerance.
//!
//! An [`Index`] holds documents and answers queries. Results and their order depend on the
//! documents alone, not on the order of insertion nor on a database. Every term of a query must
//! match; how well decides the order ([`Score`]).

mod fuzzy;
mod index;
mod score;
mod term;
#[cfg(test)]
mod tests;
mod top;
mod trie;

use crate::event::Kind;
use crate::text_enum::text_enum;
use crate::{Invalid, OrganizationId, Xid};

pub use index::Index;
pub use score::Score;
use term::Term;

/// The indexed kinds. Invites are excluded: their codes are secret.
pub const KINDS: [Kind; 8] = [
    Kind::Organization,
    Kind::User,
    Kind::Cluster,
    Kind::Deployment,
    Kind::Instance,
    Kind::Template,
    Kind::Environment,
    Kind::Resource,
];

/// The maximum length of a query, in characters.
pub const MAX_QUERY: usize = 256;
/// The maximum number of terms of a query.
pub const MAX_WORDS: usize = 8;

/// A document of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The kind.
    pub kind: Kind,
    /// The id.
    pub id: Xid,
    /// The owning organization; none if it is visible to all.
    pub organization: Option<OrganizationId>,
    /// The name.
    pub name: Box<str>,
    /// The description, or other distinguishing text.
    pub description: Box<str>,
    /// User-defined tags.
    pub tags: Box<[(Box<str>, Box<str>)]>,
    /// The status, if the kind has one.
    pub status: Option<Box<str>>,
}

/// The field that matched a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// The name.
    Name,
    /// The id.
    Id,
    /// The key or the value of a tag.
    Tag,
    /// The description.
    Description,
}

text_enum!(Field { Name => "name", Id => "id", Tag => "tag", Description => "description" });

/// A search query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    terms: Vec<Term>,
    /// Restricts results to this kind.
    pub kind: Option<Kind>,
    /// Restricts results to what this organization may see; none for no restriction.
    pub organization: Option<OrganizationId>,
    /// The maximum number of results.
    pub limit: usize,
}

/// A search result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The document.
    pub document: Document,
    /// How well it matches.
    pub score: Score,
    /// The match of each term of the query.
    pub matched: Vec<Match>,
}

/// The match of a query term in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The matched field.
    pub field: Field,
    /// The matched word.
    pub word: String,
    /// The number of typos.
    pub typos: u8,
}

impl Query {
    /// A query for all terms of a text, without restrictions.
    pub fn new(text: &str, limit: usize) -> Result<Self, Invalid> {
        let length = text.chars().count();
        if length > MAX_QUERY {
            let rule = format!("has {length} characters; at most {MAX_QUERY} are allowed");
            return Err(Invalid::new("q", rule));
        }
        let terms: Vec<Term> = term::split(text).map(|text| Term::new(&text)).collect();
        match terms.len() {
            0 => Err(Invalid::new("q", "has no search term; enter a word or the start of an id")),
            1..=MAX_WORDS => Ok(Self { terms, kind: None, organization: None, limit }),
            many => {
                let rule = format!("has {many} words; at most {MAX_WORDS} are allowed");
                Err(Invalid::new("q", rule))
            }
        }
    }

    /// All terms joined to one: a name without separators.
    fn joined(&self) -> String {
        term::joined(&self.terms.iter().map(Term::text).collect::<String>())
    }

    /// Is a document visible to the caller, and of the requested kind?
    fn admits(&self, kind: Kind, owner: Option<OrganizationId>) -> bool {
        let is_visible =
            self.organization.is_none() || owner.is_none() || owner == self.organization;
        is_visible && self.kind.is_none_or(|requested| requested == kind)
    }
}
