//! Words that are nearly what was typed: a letter wrong, missing, too many, or two in each other's place.
//!
//! One row of the well-known table of distances is kept for each letter of a word. Of a row only the cells
//! count whose distance can still be allowed: five, with at most two typos. So a whole tree of words is
//! compared letter by letter, and what has gone too far is left with all that begins so.

/// The most typos that are ever allowed.
const MOST: usize = 2;
/// Cells of a row that can matter.
const WIDTH: usize = 2 * MOST + 1;
/// More than anybody allows.
const FAR: u8 = 100;

/// What was typed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Typed<'a> {
    pub(super) letters: &'a [char],
    pub(super) allowed: u8,
}

/// How far the beginning of a word is from what was typed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// Cell `k` is the distance to the first `depth + k - allowed` letters that were typed.
    cells: [u8; WIDTH],
    before: [u8; WIDTH],
    depth: usize,
    last: Option<char>,
    /// The least distance of what was typed to any beginning of the word so far.
    pub(super) best: u8,
}

impl Typed<'_> {
    /// Before the first letter.
    pub(super) fn start(self) -> Row {
        let mut cells = [FAR; WIDTH];
        let own = usize::from(self.allowed);
        for (typed, cell) in cells[own..=2 * own].iter_mut().enumerate() {
            *cell = if typed <= self.letters.len() { small(typed) } else { FAR };
        }
        let row = Row { cells, before: [FAR; WIDTH], depth: 0, last: None, best: FAR };
        Row { best: self.end(&row), ..row }
    }

    /// After one letter more.
    pub(super) fn step(self, above: &Row, letter: char) -> Row {
        let (own, depth) = (usize::from(self.allowed), above.depth + 1);
        let mut cells = [FAR; WIDTH];
        for k in 0..=2 * own {
            let Some(typed) = (depth + k).checked_sub(own) else { continue };
            if typed > self.letters.len() {
                break;
            }
            cells[k] = match typed {
                0 => small(depth),
                _ => self.cell(above, cells, k, typed, letter),
            };
        }
        let row = Row { cells, before: above.cells, depth, last: Some(letter), best: above.best };
        Row { best: row.best.min(self.end(&row)), ..row }
    }

    /// After these letters more, as far as they matter.
    pub(super) fn steps(self, mut row: Row, letters: &str) -> Row {
        for letter in letters.chars() {
            if !self.is_open(&row) {
                break;
            }
            row = self.step(&row, letter);
        }
        row
    }

    fn cell(self, above: &Row, row: [u8; WIDTH], k: usize, typed: usize, letter: char) -> u8 {
        let here = self.letters[typed - 1];
        let mut least = above.cells[k] + u8::from(here != letter);
        if k < 2 * usize::from(self.allowed) {
            least = least.min(above.cells[k + 1] + 1);
        }
        if k > 0 {
            least = least.min(row[k - 1] + 1);
        }
        let is_swapped = typed > 1 && above.last == Some(here) && self.letters[typed - 2] == letter;
        if is_swapped {
            least = least.min(above.before[k] + 1);
        }
        least.min(FAR)
    }

    /// The distance of all that was typed to all letters so far.
    pub(super) fn end(self, row: &Row) -> u8 {
        let k = (self.letters.len() + usize::from(self.allowed)).checked_sub(row.depth);
        k.and_then(|k| row.cells.get(k)).copied().unwrap_or(FAR)
    }

    /// Can another letter make a difference? Otherwise all that begins so is as near as it is now, or too
    /// far as it is now: the least of a row never becomes less.
    pub(super) fn is_open(self, row: &Row) -> bool {
        row.cells.iter().any(|cell| *cell <= self.allowed.min(row.best))
    }

    /// How a word compares: how many typos, and whether only its beginning was typed.
    pub(super) fn grade(self, word: &str) -> Option<(u8, bool)> {
        let row = self.steps(self.start(), word);
        (row.best <= self.allowed).then(|| (row.best, self.end(&row) > row.best))
    }
}

fn small(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(FAR).min(FAR)
}
