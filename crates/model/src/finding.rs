//! Finding things by what people remember of them: names, ids, tags, descriptions, also mistyped.
//!
//! An [`Index`] is told of documents and answers queries, all in memory. What is found, and in which
//! order, follows from the documents alone: neither from the order in which they were told nor from a
//! database. Every word of a query must be in a document; how well decides the order ([`Score`]).

mod index;
mod near;
mod score;
#[cfg(test)]
mod tests;
mod top;
mod vocabulary;
mod word;

use crate::event::Kind;
use crate::text_enum::text_enum;
use crate::{Invalid, OrganizationId, Xid};

pub use index::Index;
pub use score::Score;
use word::Word;

/// What can be found. Invites are not: their codes are secret.
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

/// The most characters of a query.
pub const MAX_QUERY: usize = 256;
/// The most words of a query.
pub const MAX_WORDS: usize = 8;

/// Something that can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// What it is.
    pub kind: Kind,
    /// Its id.
    pub id: Xid,
    /// Whose it is; everybody's when it is nobody's.
    pub organization: Option<OrganizationId>,
    /// Its name.
    pub name: Box<str>,
    /// What it is for, or what tells it from others.
    pub description: Box<str>,
    /// What users wrote on it.
    pub tags: Box<[(Box<str>, Box<str>)]>,
    /// Where it is on its way, if it has one.
    pub status: Option<Box<str>>,
}

/// Where a word was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// In the name.
    Name,
    /// In the id.
    Id,
    /// In a tag, or what it is set to.
    Tag,
    /// In the description.
    Description,
}

text_enum!(Field { Name => "name", Id => "id", Tag => "tag", Description => "description" });

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    words: Vec<Word>,
    /// Only of this kind.
    pub kind: Option<Kind>,
    /// Only what this organization may see; everything when there is none.
    pub organization: Option<OrganizationId>,
    /// How many at most.
    pub limit: usize,
}

/// A document that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// What was found.
    pub document: Document,
    /// How well it fits.
    pub score: Score,
    /// Why, for each word of the query.
    pub matched: Vec<Matched>,
}

/// What of a document a word of a query stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matched {
    /// Where it is.
    pub field: Field,
    /// What is there.
    pub word: String,
    /// How many letters had to be mended.
    pub typos: u8,
}

impl Query {
    /// Looks for all words of a text, among everything.
    pub fn new(text: &str, limit: usize) -> Result<Self, Invalid> {
        let length = text.chars().count();
        if length > MAX_QUERY {
            let rule = format!("{length} characters; at most {MAX_QUERY} are allowed");
            return Err(Invalid::new("q", rule));
        }
        let words: Vec<Word> = word::split(text).map(|text| Word::new(&text)).collect();
        match words.len() {
            0 => Err(Invalid::new("q", "has nothing to look for; give a word, or a part of an id")),
            1..=MAX_WORDS => Ok(Self { words, kind: None, organization: None, limit }),
            many => {
                let rule = format!("{many} words; at most {MAX_WORDS} are allowed");
                Err(Invalid::new("q", rule))
            }
        }
    }

    /// All of it as one word: a name without what is between its parts.
    fn joined(&self) -> String {
        word::joined(&self.words.iter().map(Word::text).collect::<String>())
    }

    /// May whoever asks see it, and is it of the kind that is wanted?
    fn admits(&self, kind: Kind, owner: Option<OrganizationId>) -> bool {
        let is_visible =
            self.organization.is_none() || owner.is_none() || owner == self.organization;
        is_visible && self.kind.is_none_or(|wanted| wanted == kind)
    }
}
