//! The index of documents.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::fuzzy::Pattern;
use super::score::Grade;
use super::term::{self, Location, Term};
use super::top;
use super::trie::{Posting, Trie};
use super::{Document, Field, Hit, Match, Query, Score};
use crate::event::Kind;
use crate::{OrganizationId, Xid};

/// The minimum length of an id prefix: ids of the same day share their first three characters.
const MIN_ID: usize = 4;
/// The length of an id.
const ID_LENGTH: usize = 20;

/// An index of documents.
#[derive(Debug)]
pub struct Index {
    /// By slot; free slots are reused.
    documents: Vec<Option<Document>>,
    /// Kind and owner by slot: read far more often than the rest of a document.
    visibility: Vec<(Kind, Option<OrganizationId>)>,
    free: Vec<u32>,
    by_id: BTreeMap<Xid, u32>,
    /// The slots of all documents, ordered by name, then by id.
    by_name: Vec<u32>,
    trie: Trie,
}

impl Index {
    /// An index of these documents. The last of several with the same id wins.
    pub fn new(documents: impl IntoIterator<Item = Document>) -> Self {
        let mut index = Self {
            documents: Vec::new(),
            visibility: Vec::new(),
            free: Vec::new(),
            by_id: BTreeMap::new(),
            by_name: Vec::new(),
            trie: Trie::new(),
        };
        for document in documents {
            match index.by_id.get(&document.id) {
                Some(slot) => {
                    let slot = *slot;
                    index.replace(slot, document);
                }
                None => {
                    let slot = index.insert(document);
                    index.by_name.push(slot);
                }
            }
        }
        let mut by_name = std::mem::take(&mut index.by_name);
        by_name.sort_unstable_by(|a, b| index.order(*a, *b));
        index.by_name = by_name;
        index
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Is the index empty?
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The number of used slots, terms and trie nodes.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize, usize) {
        (self.by_name.len(), self.trie.len(), self.trie.size())
    }

    /// Adds a document or replaces the one with its id.
    pub fn set(&mut self, document: Document) {
        match self.by_id.get(&document.id) {
            Some(slot) if self.document(*slot).name == document.name => {
                let slot = *slot;
                self.replace(slot, document);
            }
            _ => {
                self.remove(document.id);
                let slot = self.insert(document);
                let at = self.rank(slot);
                self.by_name.insert(at, slot);
            }
        }
    }

    /// Removes a document.
    pub fn remove(&mut self, id: Xid) {
        let Some(slot) = self.by_id.get(&id).copied() else { return };
        let at = self.rank(slot);
        self.by_name.remove(at);
        self.by_id.remove(&id);
        let document = self.documents[slot as usize].take().expect("an indexed id has a slot");
        for word in term::terms_of(&document).keys() {
            self.trie.remove(word, slot);
        }
        self.free.push(slot);
    }

    /// The best matches, best first.
    pub fn find(&self, query: &Query) -> Vec<Hit> {
        let mut found = self.ranked(query, false);
        // Matches with typos rank after all exact ones, so they are only needed to fill up the
        // results.
        if found.len() < query.limit && query.terms.iter().any(|word| word.allowed > 0) {
            found = self.ranked(query, true);
        }
        found.into_iter().map(|(slot, score)| self.hit(query, slot, score)).collect()
    }

    fn insert(&mut self, document: Document) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.documents.push(None);
            self.visibility.push((document.kind, None));
            u32::try_from(self.documents.len() - 1).expect("fewer than a billion documents")
        });
        for (word, location) in term::terms_of(&document) {
            self.trie.add(&word, Posting::new(slot, location));
        }
        self.by_id.insert(document.id, slot);
        self.put(slot, document);
        slot
    }

    /// Replaces the document with the same id. Most changes affect the status alone.
    fn replace(&mut self, slot: u32, document: Document) {
        let texts = |one: &Document| (one.name.clone(), one.description.clone(), one.tags.clone());
        let old = self.document(slot);
        if texts(old) != texts(&document) {
            let (old, new) = (term::terms_of(old), term::terms_of(&document));
            for (word, _) in old.iter().filter(|(word, location)| new.get(*word) != Some(location))
            {
                self.trie.remove(word, slot);
            }
            for (word, location) in
                new.iter().filter(|(word, location)| old.get(*word) != Some(location))
            {
                self.trie.add(word, Posting::new(slot, *location));
            }
        }
        self.put(slot, document);
    }

    fn put(&mut self, slot: u32, document: Document) {
        self.visibility[slot as usize] = (document.kind, document.organization);
        self.documents[slot as usize] = Some(document);
    }

    fn document(&self, slot: u32) -> &Document {
        self.documents[slot as usize].as_ref().expect("a slot in use")
    }

    /// The order of two documents with equal scores.
    fn order(&self, a: u32, b: u32) -> Ordering {
        let (a, b) = (self.document(a), self.document(b));
        (&a.name, a.id).cmp(&(&b.name, b.id))
    }

    /// The position of a document in `by_name`.
    fn rank(&self, slot: u32) -> usize {
        self.by_name.partition_point(|other| self.order(*other, slot).is_lt())
    }

    fn ranked(&self, query: &Query, with_typos: bool) -> Vec<(u32, Score)> {
        let mut found = Vec::new();
        for (count, word) in query.terms.iter().enumerate() {
            let grades = self.grades(word, with_typos);
            if count == 0 {
                found = self.first(query, &grades);
            } else {
                found.retain_mut(|(slot, score)| add(score, grades.get(*slot)));
            }
        }
        self.mark_full_names(query, &mut found);
        top::best(found, query.limit, &self.by_name, |a, b| self.order(a, b))
    }

    /// How well each document matches a term.
    fn grades(&self, word: &Term, with_typos: bool) -> Grades {
        let mut grades = Grades::new(self.documents.len());
        let mut visit = |postings: &[Posting], typos: u8, is_prefix: bool| {
            for posting in postings {
                let field = posting.location().field();
                grades.record(posting.slot(), Grade { typos, field, is_prefix });
            }
        };
        if with_typos && word.allowed > 0 {
            let pattern = Pattern { letters: &word.letters, allowed: word.allowed };
            self.trie.fuzzy(pattern, &mut visit);
        } else {
            self.trie.with_prefix(&word.letters, &mut visit);
        }
        if let Some((from, to)) = id_range(&word.text()) {
            for slot in self.by_id.range(from..=to).map(|(_, slot)| *slot) {
                grades.record(slot, Grade { typos: 0, field: Field::Id, is_prefix: from != to });
            }
        }
        grades
    }

    /// The visible documents that match the first term.
    fn first(&self, query: &Query, grades: &Grades) -> Vec<(u32, Score)> {
        let visible = grades.slots.iter().filter(|slot| {
            let (kind, owner) = self.visibility[**slot as usize];
            query.admits(kind, owner)
        });
        let start = Score { is_partial: true, ..Score::default() };
        let scored = visible.map(|slot| {
            let mut score = start;
            add(&mut score, grades.get(*slot));
            (*slot, score)
        });
        scored.collect()
    }

    fn mark_full_names(&self, query: &Query, found: &mut [(u32, Score)]) {
        let Some(postings) = self.trie.exact(&query.joined()) else { return };
        let full = postings.iter().filter(|posting| posting.location() == Location::FullName);
        let mut is_full_name = vec![false; self.documents.len()];
        full.for_each(|posting| is_full_name[posting.slot() as usize] = true);
        for (slot, score) in found {
            // With typos it may be the name of another document.
            score.is_partial = score.typos > 0 || !is_full_name[*slot as usize];
        }
    }

    fn hit(&self, query: &Query, slot: u32, score: Score) -> Hit {
        let document = self.document(slot);
        let words = term::terms_of(document);
        let matched = query.terms.iter().filter_map(|word| best_match(word, document.id, &words));
        Hit { document: document.clone(), score, matched: matched.collect() }
    }
}

fn add(score: &mut Score, grade: Option<Grade>) -> bool {
    grade.inspect(|grade| score.add(*grade)).is_some()
}

/// The range of ids with this prefix, if it can be one.
fn id_range(text: &str) -> Option<(Xid, Xid)> {
    let is_id = (MIN_ID..=ID_LENGTH).contains(&text.len());
    let least = is_id.then(|| format!("{text:0<ID_LENGTH$}").parse().ok())??;
    // An id encodes 96 bits in 20 characters of 5 bits: the last character carries only one bit.
    let most = match text.len() {
        ID_LENGTH => text.to_owned(),
        _ => format!("{text:v<width$}g", width = ID_LENGTH - 1),
    };
    Some((least, most.parse().ok()?))
}

/// The best match of a term in a document.
fn best_match(word: &Term, id: Xid, words: &BTreeMap<String, Location>) -> Option<Match> {
    let pattern = Pattern { letters: &word.letters, allowed: word.allowed };
    let id = id_range(&word.text()).filter(|(from, to)| (*from..=*to).contains(&id)).map(
        |(from, to)| (Grade { typos: 0, field: Field::Id, is_prefix: from != to }, id.to_string()),
    );
    let graded = words.iter().filter_map(|(text, location)| {
        let (typos, is_prefix) = pattern.grade(text)?;
        Some((Grade { typos, field: location.field(), is_prefix }, text.clone()))
    });
    let (grade, word) = graded.chain(id).min()?;
    Some(Match { field: grade.field, word, typos: grade.typos })
}

/// How well each document matches a term.
struct Grades {
    /// By slot.
    best: Vec<u8>,
    /// The slots with a match.
    slots: Vec<u32>,
}

impl Grades {
    fn new(count: usize) -> Self {
        Self { best: vec![Grade::NONE; count], slots: Vec::new() }
    }

    fn record(&mut self, slot: u32, grade: Grade) {
        let best = &mut self.best[slot as usize];
        if *best == Grade::NONE {
            self.slots.push(slot);
        }
        *best = grade.packed().min(*best);
    }

    fn get(&self, slot: u32) -> Option<Grade> {
        Grade::unpacked(self.best[slot as usize])
    }
}
