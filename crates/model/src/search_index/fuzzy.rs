//! Fuzzy matching by Damerau-Levenshtein distance: substitutions, deletions, insertions and
//! transpositions.
//!
//! Each letter of a word adds a row to the distance table. Only the cells near the diagonal whose
//! distance can stay within the limit are computed: five, with at most two typos. A trie is
//! compared letter by letter, and subtrees beyond the limit are pruned.

/// The maximum number of typos.
const MAX_TYPOS: usize = 2;
/// The number of computed cells of a row.
const WIDTH: usize = 2 * MAX_TYPOS + 1;
/// A distance beyond every limit.
const FAR: u8 = 100;

/// A search pattern: the letters of a term, and the allowed distance.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pattern<'a> {
    pub(super) letters: &'a [char],
    pub(super) allowed: u8,
}

/// The distances of a word's prefix to the prefixes of the pattern.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// Cell `k` is the distance to the first `depth + k - allowed` letters of the pattern.
    cells: [u8; WIDTH],
    before: [u8; WIDTH],
    depth: usize,
    last: Option<char>,
    /// The smallest distance of the pattern to any prefix of the word so far.
    pub(super) best: u8,
}

impl Pattern<'_> {
    /// The row before the first letter.
    pub(super) fn start(self) -> Row {
        let mut cells = [FAR; WIDTH];
        let limit = usize::from(self.allowed);
        for (length, cell) in cells[limit..=2 * limit].iter_mut().enumerate() {
            *cell = if length <= self.letters.len() { small(length) } else { FAR };
        }
        let row = Row { cells, before: [FAR; WIDTH], depth: 0, last: None, best: FAR };
        Row { best: self.end(&row), ..row }
    }

    /// The row after another letter.
    pub(super) fn step(self, above: &Row, letter: char) -> Row {
        let (limit, depth) = (usize::from(self.allowed), above.depth + 1);
        let mut cells = [FAR; WIDTH];
        for k in 0..=2 * limit {
            let Some(length) = (depth + k).checked_sub(limit) else { continue };
            if length > self.letters.len() {
                break;
            }
            cells[k] = match length {
                0 => small(depth),
                _ => self.cell(above, cells, k, length, letter),
            };
        }
        let row = Row { cells, before: above.cells, depth, last: Some(letter), best: above.best };
        Row { best: row.best.min(self.end(&row)), ..row }
    }

    /// The row after these letters; stops when further letters make no difference.
    pub(super) fn steps(self, mut row: Row, letters: &str) -> Row {
        for letter in letters.chars() {
            if !self.is_open(&row) {
                break;
            }
            row = self.step(&row, letter);
        }
        row
    }

    fn cell(self, above: &Row, row: [u8; WIDTH], k: usize, length: usize, letter: char) -> u8 {
        let here = self.letters[length - 1];
        let mut least = above.cells[k] + u8::from(here != letter);
        if k < 2 * usize::from(self.allowed) {
            least = least.min(above.cells[k + 1] + 1);
        }
        if k > 0 {
            least = least.min(row[k - 1] + 1);
        }
        let is_swapped =
            length > 1 && above.last == Some(here) && self.letters[length - 2] == letter;
        if is_swapped {
            least = least.min(above.before[k] + 1);
        }
        least.min(FAR)
    }

    /// The distance of the whole pattern to all letters so far.
    pub(super) fn end(self, row: &Row) -> u8 {
        let k = (self.letters.len() + usize::from(self.allowed)).checked_sub(row.depth);
        k.and_then(|k| row.cells.get(k)).copied().unwrap_or(FAR)
    }

    /// Can another letter make a difference? Otherwise all words with this prefix have the current
    /// best distance: the minimum of a row never decreases.
    pub(super) fn is_open(self, row: &Row) -> bool {
        row.cells.iter().any(|cell| *cell <= self.allowed.min(row.best))
    }

    /// Compares a word: the number of typos, and whether the pattern only matches a prefix.
    pub(super) fn grade(self, word: &str) -> Option<(u8, bool)> {
        let row = self.steps(self.start(), word);
        (row.best <= self.allowed).then(|| (row.best, self.end(&row) > row.best))
    }
}

fn small(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(FAR).min(FAR)
}
