//! All words of all documents, as a tree of letters, and which documents each is in.
//!
//! Words that begin alike share their first letters; where a word is alone, the rest of it is kept in one
//! piece. So beginnings are found by walking down, and words that are nearly alike by walking down several
//! ways at once ([`super::near`]).

use slab::Slab;
use smallvec::{SmallVec, smallvec};

use super::near::{Row, Typed};
use super::word::Place;

/// No node, or no word.
const NONE: u32 = u32::MAX;
const ROOT: u32 = 0;

/// The words.
#[derive(Debug)]
pub(super) struct Vocabulary {
    nodes: Slab<Node>,
    entries: Slab<Entry>,
}

/// What begins with the letters from the root to here.
#[derive(Debug, Clone, Copy)]
struct Node {
    letter: char,
    /// The first of those that have one letter more.
    child: u32,
    /// The next of those that share all but the last letter, by letter.
    next: u32,
    /// The word that ends here, or the only one that goes on from here; then there are no children.
    entry: u32,
}

#[derive(Debug)]
struct Entry {
    /// The rest of the word, below its node.
    rest: Box<str>,
    postings: Postings,
}

/// The documents that a word is in, ordered by slot. Most words are in one.
type Postings = SmallVec<[Posting; 2]>;

/// A document, by its slot, and where in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Posting(u32);

impl Posting {
    pub(super) fn new(slot: u32, place: Place) -> Self {
        Self(slot << 2 | place as u32)
    }

    pub(super) fn slot(self) -> u32 {
        self.0 >> 2
    }

    pub(super) fn place(self) -> Place {
        Place::ALL[(self.0 & 3) as usize]
    }
}

/// Told of each word that fits: its documents, how many typos, and whether only its beginning was typed.
pub(super) type Visit<'a> = dyn FnMut(&[Posting], u8, bool) + 'a;

impl Vocabulary {
    pub(super) fn new() -> Self {
        let root = Node { letter: '\0', child: NONE, next: NONE, entry: NONE };
        let mut nodes = Slab::new();
        nodes.insert(root);
        Self { nodes, entries: Slab::new() }
    }

    /// How many words there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many nodes hold them, the root not counted.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Notes that a word is in a document, in which it was not before.
    pub(super) fn add(&mut self, word: &str, posting: Posting) {
        let (mut at, mut letters) = (ROOT, word.chars());
        loop {
            if let Some(entry) = self.entry_mut(at)
                && *entry.rest == *letters.as_str()
            {
                let at = entry.postings.partition_point(|other| *other < posting);
                return entry.postings.insert(at, posting);
            }
            self.push_down(at);
            let Some(letter) = letters.next() else {
                self.node_mut(at).entry = self.new_entry("", posting);
                return;
            };
            let (found, before) = self.child(at, letter);
            at = match found {
                Some(child) => child,
                None => {
                    let entry = self.new_entry(letters.as_str(), posting);
                    self.link(at, before, letter, entry);
                    return;
                }
            };
        }
    }

    /// Notes that a word is in a document no more.
    pub(super) fn remove(&mut self, word: &str, slot: u32) {
        let (mut path, mut at, mut letters) = (Vec::new(), ROOT, word.chars());
        loop {
            if let Some(entry) = self.entry_mut(at)
                && *entry.rest == *letters.as_str()
            {
                let from = entry.postings.partition_point(|other| other.slot() < slot);
                if entry.postings.get(from).is_some_and(|found| found.slot() == slot) {
                    entry.postings.remove(from);
                }
                if entry.postings.is_empty() {
                    self.forget(at, path);
                }
                return;
            }
            let Some(child) = letters.next().and_then(|letter| self.child(at, letter).0) else {
                return;
            };
            path.push(at);
            at = child;
        }
    }

    /// The documents of a word.
    pub(super) fn exactly(&self, word: &str) -> Option<&[Posting]> {
        let (mut at, mut letters) = (ROOT, word.chars());
        loop {
            let entry = self.entry(at).filter(|entry| *entry.rest == *letters.as_str());
            if let Some(entry) = entry {
                return Some(&entry.postings);
            }
            at = self.child(at, letters.next()?).0?;
        }
    }

    /// All words that begin with what was typed.
    pub(super) fn begin_with(&self, typed: &[char], visit: &mut Visit<'_>) {
        let mut at = ROOT;
        for (count, letter) in typed.iter().enumerate() {
            if let Some(entry) = self.entry(at).filter(|entry| !entry.rest.is_empty()) {
                let mut rest = entry.rest.chars();
                if typed[count..].iter().all(|letter| rest.next() == Some(*letter)) {
                    visit(&entry.postings, 0, !rest.as_str().is_empty());
                }
                return;
            }
            let Some(child) = self.child(at, *letter).0 else { return };
            at = child;
        }
        if let Some(entry) = self.entry(at) {
            visit(&entry.postings, 0, !entry.rest.is_empty());
        }
        self.below(at, 0, visit);
    }

    /// All words that are, or begin with, something near what was typed.
    pub(super) fn near(&self, typed: Typed<'_>, visit: &mut Visit<'_>) {
        self.near_below(ROOT, typed, &typed.start(), visit);
    }

    fn near_below(&self, at: u32, typed: Typed<'_>, row: &Row, visit: &mut Visit<'_>) {
        if let Some(entry) = self.entry(at) {
            let row = typed.steps(*row, &entry.rest);
            if row.best <= typed.allowed {
                visit(&entry.postings, row.best, typed.end(&row) > row.best);
            }
        }
        if !typed.is_open(row) {
            if row.best <= typed.allowed {
                self.below(at, row.best, visit);
            }
            return;
        }
        let mut child = self.node(at).child;
        while child != NONE {
            let Node { letter, next, .. } = *self.node(child);
            self.near_below(child, typed, &typed.step(row, letter), visit);
            child = next;
        }
    }

    /// All words below a node; of each only the beginning was typed.
    fn below(&self, at: u32, typos: u8, visit: &mut Visit<'_>) {
        let mut open = vec![self.node(at).child];
        while let Some(at) = open.pop() {
            if at == NONE {
                continue;
            }
            let Node { child, next, .. } = *self.node(at);
            open.extend([next, child]);
            if let Some(entry) = self.entry(at) {
                visit(&entry.postings, typos, true);
            }
        }
    }

    fn node(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }

    fn node_mut(&mut self, at: u32) -> &mut Node {
        &mut self.nodes[at as usize]
    }

    fn entry(&self, at: u32) -> Option<&Entry> {
        self.entries.get(self.node(at).entry as usize)
    }

    fn entry_mut(&mut self, at: u32) -> Option<&mut Entry> {
        let entry = self.node(at).entry;
        self.entries.get_mut(entry as usize)
    }

    /// The child with that letter, if there is one, and the child before its place.
    fn child(&self, at: u32, letter: char) -> (Option<u32>, Option<u32>) {
        let (mut child, mut before) = (self.node(at).child, None);
        while child != NONE {
            let node = self.node(child);
            if node.letter >= letter {
                return ((node.letter == letter).then_some(child), before);
            }
            (before, child) = (Some(child), node.next);
        }
        (None, before)
    }

    /// Moves the rest of a word that was alone here one letter down.
    fn push_down(&mut self, at: u32) {
        let Some(entry) = self.entry_mut(at) else { return };
        let mut rest = entry.rest.chars();
        let Some(letter) = rest.next() else { return };
        entry.rest = rest.as_str().into();
        let moved = std::mem::replace(&mut self.node_mut(at).entry, NONE);
        self.link(at, None, letter, moved);
    }

    fn link(&mut self, parent: u32, before: Option<u32>, letter: char, entry: u32) {
        let next = match before {
            Some(before) => self.node(before).next,
            None => self.node(parent).child,
        };
        let new = number(self.nodes.insert(Node { letter, child: NONE, next, entry }));
        match before {
            Some(before) => self.node_mut(before).next = new,
            None => self.node_mut(parent).child = new,
        }
    }

    fn new_entry(&mut self, rest: &str, posting: Posting) -> u32 {
        number(self.entries.insert(Entry { rest: rest.into(), postings: smallvec![posting] }))
    }

    /// Forgets the word at a node, and the nodes that are there for nothing else.
    fn forget(&mut self, mut at: u32, mut path: Vec<u32>) {
        let entry = std::mem::replace(&mut self.node_mut(at).entry, NONE);
        self.entries.remove(entry as usize);
        while let Some(parent) = path.pop() {
            let Node { letter, child, next, entry } = *self.node(at);
            if child != NONE || entry != NONE {
                return;
            }
            match self.child(parent, letter).1 {
                Some(before) => self.node_mut(before).next = next,
                None => self.node_mut(parent).child = next,
            }
            self.nodes.remove(at as usize);
            at = parent;
        }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("there are fewer words than four billion")
}
