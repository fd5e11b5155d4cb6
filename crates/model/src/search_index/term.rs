//! Terms: the words of documents and queries.

use std::collections::BTreeMap;

use super::{Document, Field};

/// The maximum length of a term; further letters are ignored.
const MAX_LETTERS: usize = 64;
/// The maximum number of terms of a document's description and tags.
const MAX_TERMS: usize = 200;

/// A term of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) letters: Vec<char>,
    /// The number of allowed typos.
    pub(super) allowed: u8,
}

impl Term {
    pub(super) fn new(text: &str) -> Self {
        let letters: Vec<char> = text.chars().collect();
        let allowed = allowed(&letters);
        Self { letters, allowed }
    }

    pub(super) fn text(&self) -> String {
        self.letters.iter().collect()
    }
}

/// The number of allowed typos. None for short words, which would match anything, and for numbers.
pub(super) fn allowed(letters: &[char]) -> u8 {
    match letters.len() {
        _ if letters.iter().all(char::is_ascii_digit) => 0,
        0..4 => 0,
        4..8 => 1,
        _ => 2,
    }
}

/// The location of a term in a document, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Location {
    FullName,
    NamePart,
    Tag,
    Description,
}

impl Location {
    pub(super) const ALL: [Location; 4] =
        [Location::FullName, Location::NamePart, Location::Tag, Location::Description];

    pub(super) fn field(self) -> Field {
        match self {
            Location::FullName | Location::NamePart => Field::Name,
            Location::Tag => Field::Tag,
            Location::Description => Field::Description,
        }
    }
}

/// Splits a text into terms: letters and digits in lower case; everything else separates.
pub(super) fn split(text: &str) -> impl Iterator<Item = String> {
    let folded = text.to_lowercase();
    let words: Vec<String> = folded
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| word.chars().take(MAX_LETTERS).collect())
        .collect();
    words.into_iter()
}

/// A name as one term: `web-shop` also matches `webshop`.
pub(super) fn joined(name: &str) -> String {
    split(name).collect::<String>().chars().take(MAX_LETTERS).collect()
}

/// All terms of a document with the best location of each.
pub(super) fn terms_of(document: &Document) -> BTreeMap<String, Location> {
    let parts = split(&document.name).map(|word| (word, Location::NamePart));
    let tags = document.tags.iter().flat_map(|(key, value)| split(key).chain(split(value)));
    let tags = tags.map(|word| (word, Location::Tag));
    let described = split(&document.description).map(|word| (word, Location::Description));
    let full = Some(joined(&document.name)).filter(|word| !word.is_empty());
    let full = full.map(|word| (word, Location::FullName));
    let mut terms = BTreeMap::new();
    for (word, location) in
        full.into_iter().chain(parts).chain(tags.chain(described).take(MAX_TERMS))
    {
        // Better locations come first.
        terms.entry(word).or_insert(location);
    }
    terms
}
