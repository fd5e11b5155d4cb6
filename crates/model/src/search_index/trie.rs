//! A trie of the words of all documents, with the documents of each word.
//!
//! Words share the nodes of common prefixes; an unshared suffix is stored in one piece. Prefix
//! search walks down one path, fuzzy search several paths at once ([`super::fuzzy`]).

use slab::Slab;
use smallvec::{SmallVec, smallvec};

use super::fuzzy::{Pattern, Row};
use super::term::Location;

/// No node, or no entry.
const NONE: u32 = u32::MAX;
const ROOT: u32 = 0;

/// A trie of words.
#[derive(Debug)]
pub(super) struct Trie {
    nodes: Slab<Node>,
    entries: Slab<Entry>,
}

/// A node: stands for the prefix on the path from the root.
#[derive(Debug, Clone, Copy)]
struct Node {
    letter: char,
    /// The first child.
    child: u32,
    /// The next sibling, ordered by letter.
    next: u32,
    /// The word that ends here, or the only one below; then the node has no children.
    entry: u32,
}

#[derive(Debug)]
struct Entry {
    /// The suffix of the word below its node.
    suffix: Box<str>,
    postings: Postings,
}

/// The documents of a word, ordered by slot. Most words occur in one.
type Postings = SmallVec<[Posting; 2]>;

/// A document, by slot, and the location in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Posting(u32);

impl Posting {
    pub(super) fn new(slot: u32, location: Location) -> Self {
        Self(slot << 2 | location as u32)
    }

    pub(super) fn slot(self) -> u32 {
        self.0 >> 2
    }

    pub(super) fn location(self) -> Location {
        Location::ALL[(self.0 & 3) as usize]
    }
}

/// Called for each matching word: its documents, the number of typos, and whether only a prefix
/// matches.
pub(super) type Visit<'a> = dyn FnMut(&[Posting], u8, bool) + 'a;

impl Trie {
    pub(super) fn new() -> Self {
        let root = Node { letter: '\0', child: NONE, next: NONE, entry: NONE };
        let mut nodes = Slab::new();
        nodes.insert(root);
        Self { nodes, entries: Slab::new() }
    }

    /// The number of words.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The number of nodes, without the root.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Adds a posting that does not exist yet.
    pub(super) fn add(&mut self, word: &str, posting: Posting) {
        let (mut at, mut letters) = (ROOT, word.chars());
        loop {
            if let Some(entry) = self.entry_mut(at)
                && *entry.suffix == *letters.as_str()
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

    /// Removes the posting of a document.
    pub(super) fn remove(&mut self, word: &str, slot: u32) {
        let (mut path, mut at, mut letters) = (Vec::new(), ROOT, word.chars());
        loop {
            if let Some(entry) = self.entry_mut(at)
                && *entry.suffix == *letters.as_str()
            {
                let from = entry.postings.partition_point(|other| other.slot() < slot);
                if entry.postings.get(from).is_some_and(|found| found.slot() == slot) {
                    entry.postings.remove(from);
                }
                if entry.postings.is_empty() {
                    self.remove_entry(at, path);
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
    pub(super) fn exact(&self, word: &str) -> Option<&[Posting]> {
        let (mut at, mut letters) = (ROOT, word.chars());
        loop {
            let entry = self.entry(at).filter(|entry| *entry.suffix == *letters.as_str());
            if let Some(entry) = entry {
                return Some(&entry.postings);
            }
            at = self.child(at, letters.next()?).0?;
        }
    }

    /// Visits all words with a prefix.
    pub(super) fn with_prefix(&self, prefix: &[char], visit: &mut Visit<'_>) {
        let mut at = ROOT;
        for (count, letter) in prefix.iter().enumerate() {
            if let Some(entry) = self.entry(at).filter(|entry| !entry.suffix.is_empty()) {
                let mut rest = entry.suffix.chars();
                if prefix[count..].iter().all(|letter| rest.next() == Some(*letter)) {
                    visit(&entry.postings, 0, !rest.as_str().is_empty());
                }
                return;
            }
            let Some(child) = self.child(at, *letter).0 else { return };
            at = child;
        }
        if let Some(entry) = self.entry(at) {
            visit(&entry.postings, 0, !entry.suffix.is_empty());
        }
        self.below(at, 0, visit);
    }

    /// Visits all words whose prefix matches the pattern within its distance.
    pub(super) fn fuzzy(&self, pattern: Pattern<'_>, visit: &mut Visit<'_>) {
        self.fuzzy_below(ROOT, pattern, &pattern.start(), visit);
    }

    fn fuzzy_below(&self, at: u32, pattern: Pattern<'_>, row: &Row, visit: &mut Visit<'_>) {
        if let Some(entry) = self.entry(at) {
            let row = pattern.steps(*row, &entry.suffix);
            if row.best <= pattern.allowed {
                visit(&entry.postings, row.best, pattern.end(&row) > row.best);
            }
        }
        if !pattern.is_open(row) {
            if row.best <= pattern.allowed {
                self.below(at, row.best, visit);
            }
            return;
        }
        let mut child = self.node(at).child;
        while child != NONE {
            let Node { letter, next, .. } = *self.node(child);
            self.fuzzy_below(child, pattern, &pattern.step(row, letter), visit);
            child = next;
        }
    }

    /// Visits all words below a node as prefix matches.
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

    /// The child with this letter, if any, and its predecessor among the siblings.
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

    /// Moves the suffix of an unshared word one node down.
    fn push_down(&mut self, at: u32) {
        let Some(entry) = self.entry_mut(at) else { return };
        let mut rest = entry.suffix.chars();
        let Some(letter) = rest.next() else { return };
        entry.suffix = rest.as_str().into();
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

    fn new_entry(&mut self, suffix: &str, posting: Posting) -> u32 {
        number(self.entries.insert(Entry { suffix: suffix.into(), postings: smallvec![posting] }))
    }

    /// Removes the entry of a node, and the nodes that become empty.
    fn remove_entry(&mut self, mut at: u32, mut path: Vec<u32>) {
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
    u32::try_from(count).expect("fewer than four billion words")
}
