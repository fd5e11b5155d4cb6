//! The index: told of documents, asked for them.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::near::Typed;
use super::score::Grade;
use super::top;
use super::vocabulary::{Posting, Vocabulary};
use super::word::{self, Place, Word};
use super::{Document, Field, Hit, Matched, Query, Score};
use crate::event::Kind;
use crate::{OrganizationId, Xid};

/// The fewest characters that stand for the beginning of an id: those of one day begin with the same three.
const MIN_ID: usize = 4;
/// The characters of an id.
const ID: usize = 20;

/// All that can be found.
#[derive(Debug)]
pub struct Index {
    /// By slot; an empty one is used again.
    documents: Vec<Option<Document>>,
    /// What decides whether a document may be seen, by slot: looked at far more often than the rest.
    seen: Vec<(Kind, Option<OrganizationId>)>,
    free: Vec<u32>,
    by_id: BTreeMap<Xid, u32>,
    /// The slots of all documents, ordered by name, then by id.
    by_name: Vec<u32>,
    vocabulary: Vocabulary,
}

impl Index {
    /// An index of these documents. Of several with one id the last counts.
    pub fn new(documents: impl IntoIterator<Item = Document>) -> Self {
        let mut index = Self {
            documents: Vec::new(),
            seen: Vec::new(),
            free: Vec::new(),
            by_id: BTreeMap::new(),
            by_name: Vec::new(),
            vocabulary: Vocabulary::new(),
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

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Is there nothing to be found?
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// How many slots are in use, and words and nodes are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> (usize, usize, usize) {
        (self.by_name.len(), self.vocabulary.len(), self.vocabulary.size())
    }

    /// Adds a document, or puts it in the place of the one with its id.
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

    /// Forgets a document.
    pub fn remove(&mut self, id: Xid) {
        let Some(slot) = self.by_id.get(&id).copied() else { return };
        let at = self.rank(slot);
        self.by_name.remove(at);
        self.by_id.remove(&id);
        let document = self.documents[slot as usize].take().expect("its id has its slot");
        for word in word::of(&document).keys() {
            self.vocabulary.remove(word, slot);
        }
        self.free.push(slot);
    }

    /// What fits best, best first.
    pub fn find(&self, query: &Query) -> Vec<Hit> {
        let mut found = self.ranked(query, false);
        // What is mistyped comes after all that is not: it need only be looked for if there is room.
        if found.len() < query.limit && query.words.iter().any(|word| word.allowed > 0) {
            found = self.ranked(query, true);
        }
        found.into_iter().map(|(slot, score)| self.hit(query, slot, score)).collect()
    }

    fn insert(&mut self, document: Document) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.documents.push(None);
            self.seen.push((document.kind, None));
            u32::try_from(self.documents.len() - 1).expect("fewer documents than a billion")
        });
        for (word, place) in word::of(&document) {
            self.vocabulary.add(&word, Posting::new(slot, place));
        }
        self.by_id.insert(document.id, slot);
        self.put(slot, document);
        slot
    }

    /// Puts a document in the place of one with its id. Most changes are of a status alone.
    fn replace(&mut self, slot: u32, document: Document) {
        let texts = |of: &Document| (of.name.clone(), of.description.clone(), of.tags.clone());
        let old = self.document(slot);
        if texts(old) != texts(&document) {
            let (old, new) = (word::of(old), word::of(&document));
            for (word, _) in old.iter().filter(|(word, place)| new.get(*word) != Some(place)) {
                self.vocabulary.remove(word, slot);
            }
            for (word, place) in new.iter().filter(|(word, place)| old.get(*word) != Some(place)) {
                self.vocabulary.add(word, Posting::new(slot, *place));
            }
        }
        self.put(slot, document);
    }

    fn put(&mut self, slot: u32, document: Document) {
        self.seen[slot as usize] = (document.kind, document.organization);
        self.documents[slot as usize] = Some(document);
    }

    fn document(&self, slot: u32) -> &Document {
        self.documents[slot as usize].as_ref().expect("a slot in use")
    }

    /// The order of two documents that fit equally well.
    fn order(&self, a: u32, b: u32) -> Ordering {
        let (a, b) = (self.document(a), self.document(b));
        (&a.name, a.id).cmp(&(&b.name, b.id))
    }

    /// The place of a document among all, by name.
    fn rank(&self, slot: u32) -> usize {
        self.by_name.partition_point(|other| self.order(*other, slot).is_lt())
    }

    fn ranked(&self, query: &Query, with_typos: bool) -> Vec<(u32, Score)> {
        let mut found = Vec::new();
        for (count, word) in query.words.iter().enumerate() {
            let grades = self.grades(word, with_typos);
            if count == 0 {
                found = self.first(query, &grades);
            } else {
                found.retain_mut(|(slot, score)| add(score, grades.of(*slot)));
            }
        }
        self.mark_whole(query, &mut found);
        top::take(found, query.limit, &self.by_name, |a, b| self.order(a, b))
    }

    /// How well each document has a word.
    fn grades(&self, word: &Word, with_typos: bool) -> Grades {
        let mut grades = Grades::new(self.documents.len());
        let mut visit = |postings: &[Posting], typos: u8, is_begun: bool| {
            for posting in postings {
                let field = posting.place().field();
                grades.note(posting.slot(), Grade { typos, field, is_begun });
            }
        };
        if with_typos && word.allowed > 0 {
            let typed = Typed { letters: &word.letters, allowed: word.allowed };
            self.vocabulary.near(typed, &mut visit);
        } else {
            self.vocabulary.begin_with(&word.letters, &mut visit);
        }
        if let Some((from, to)) = ids(&word.text()) {
            for slot in self.by_id.range(from..=to).map(|(_, slot)| *slot) {
                grades.note(slot, Grade { typos: 0, field: Field::Id, is_begun: from != to });
            }
        }
        grades
    }

    /// The documents with the first word that may be seen.
    fn first(&self, query: &Query, grades: &Grades) -> Vec<(u32, Score)> {
        let seen = grades.noted.iter().filter(|slot| {
            let (kind, owner) = self.seen[**slot as usize];
            query.admits(kind, owner)
        });
        let start = Score { is_partial: true, ..Score::default() };
        let scored = seen.map(|slot| {
            let mut score = start;
            add(&mut score, grades.of(*slot));
            (*slot, score)
        });
        scored.collect()
    }

    fn mark_whole(&self, query: &Query, found: &mut [(u32, Score)]) {
        let Some(postings) = self.vocabulary.exactly(&query.joined()) else { return };
        let whole = postings.iter().filter(|posting| posting.place() == Place::Whole);
        let mut is_whole = vec![false; self.documents.len()];
        whole.for_each(|posting| is_whole[posting.slot() as usize] = true);
        for (slot, score) in found {
            // Mistyped, it may be another's name.
            score.is_partial = score.typos > 0 || !is_whole[*slot as usize];
        }
    }

    fn hit(&self, query: &Query, slot: u32, score: Score) -> Hit {
        let document = self.document(slot);
        let words = word::of(document);
        let matched = query.words.iter().filter_map(|word| matched(word, document.id, &words));
        Hit { document: document.clone(), score, matched: matched.collect() }
    }
}

fn add(score: &mut Score, grade: Option<Grade>) -> bool {
    grade.inspect(|grade| score.add(*grade)).is_some()
}

/// The ids that begin so, if any could.
fn ids(text: &str) -> Option<(Xid, Xid)> {
    let is_one = (MIN_ID..=ID).contains(&text.len());
    let least = is_one.then(|| format!("{text:0<ID$}").parse().ok())??;
    // An id is 96 bits in 20 characters of five: the last has only one that counts.
    let most = match text.len() {
        ID => text.to_owned(),
        _ => format!("{text:v<width$}g", width = ID - 1),
    };
    Some((least, most.parse().ok()?))
}

/// What of a document a word stands for: the best of it.
fn matched(word: &Word, id: Xid, words: &BTreeMap<String, Place>) -> Option<Matched> {
    let typed = Typed { letters: &word.letters, allowed: word.allowed };
    let id =
        ids(&word.text()).filter(|(from, to)| (*from..=*to).contains(&id)).map(|(from, to)| {
            (Grade { typos: 0, field: Field::Id, is_begun: from != to }, id.to_string())
        });
    let graded = words.iter().filter_map(|(text, place)| {
        let (typos, is_begun) = typed.grade(text)?;
        Some((Grade { typos, field: place.field(), is_begun }, text.clone()))
    });
    let (grade, word) = graded.chain(id).min()?;
    Some(Matched { field: grade.field, word, typos: grade.typos })
}

/// How well each document has a word.
struct Grades {
    /// By slot.
    best: Vec<u8>,
    /// The slots that have one.
    noted: Vec<u32>,
}

impl Grades {
    fn new(slots: usize) -> Self {
        Self { best: vec![Grade::NONE; slots], noted: Vec::new() }
    }

    fn note(&mut self, slot: u32, grade: Grade) {
        let best = &mut self.best[slot as usize];
        if *best == Grade::NONE {
            self.noted.push(slot);
        }
        *best = grade.packed().min(*best);
    }

    fn of(&self, slot: u32) -> Option<Grade> {
        Grade::unpacked(self.best[slot as usize])
    }
}
