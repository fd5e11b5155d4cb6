//! Words: what documents are found by, and what queries consist of.

use std::collections::BTreeMap;

use super::{Document, Field};

/// The most letters of a word; the rest does not count.
const MAX_LETTERS: usize = 64;
/// The most words of a document's description and tags.
const MAX_WORDS: usize = 200;

/// A word of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) letters: Vec<char>,
    /// How many of them may be mistyped.
    pub(super) allowed: u8,
}

impl Word {
    pub(super) fn new(text: &str) -> Self {
        let letters: Vec<char> = text.chars().collect();
        let allowed = allowed(&letters);
        Self { letters, allowed }
    }

    pub(super) fn text(&self) -> String {
        self.letters.iter().collect()
    }
}

/// How many letters of a word may be mistyped. Short words would become any other, and another number is
/// another thing.
pub(super) fn allowed(letters: &[char]) -> u8 {
    match letters.len() {
        _ if letters.iter().all(char::is_ascii_digit) => 0,
        0..4 => 0,
        4..8 => 1,
        _ => 2,
    }
}

/// Where a word is in a document. A whole name is in front of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Whole,
    Part,
    Tag,
    Description,
}

impl Place {
    pub(super) const ALL: [Place; 4] = [Place::Whole, Place::Part, Place::Tag, Place::Description];

    pub(super) fn field(self) -> Field {
        match self {
            Place::Whole | Place::Part => Field::Name,
            Place::Tag => Field::Tag,
            Place::Description => Field::Description,
        }
    }
}

/// The words of a text: letters and digits in lower case; all else is between words.
pub(super) fn split(text: &str) -> impl Iterator<Item = String> {
    let folded = text.to_lowercase();
    let words: Vec<String> = folded
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| word.chars().take(MAX_LETTERS).collect())
        .collect();
    words.into_iter()
}

/// A name as one word: `web-shop` is also found by `webshop`.
pub(super) fn joined(name: &str) -> String {
    split(name).collect::<String>().chars().take(MAX_LETTERS).collect()
}

/// All words of a document, and the best place of each.
pub(super) fn of(document: &Document) -> BTreeMap<String, Place> {
    let parts = split(&document.name).map(|word| (word, Place::Part));
    let tags = document.tags.iter().flat_map(|(key, value)| split(key).chain(split(value)));
    let tags = tags.map(|word| (word, Place::Tag));
    let described = split(&document.description).map(|word| (word, Place::Description));
    let whole = Some(joined(&document.name)).filter(|word| !word.is_empty());
    let whole = whole.map(|word| (word, Place::Whole));
    let mut words = BTreeMap::new();
    for (word, place) in whole.into_iter().chain(parts).chain(tags.chain(described).take(MAX_WORDS))
    {
        // The better places come first.
        words.entry(word).or_insert(place);
    }
    words
}
