//! How well a document fits a query.

use super::Field;

/// How well a document fits, best first. Fields are compared top to bottom and the lowest wins, so the
/// order of the fields *is* the policy. What is equal in all of it is ordered by name, then by id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score {
    /// Letters that had to be mended, in all words: what is as it was typed comes before all else.
    pub typos: u8,
    /// Is the query less than its whole name? Who types a name means the one that is called so.
    pub is_partial: bool,
    /// How far from the name its words were found: 0 for each in the name, 1 for the id, 2 for a tag, 3
    /// for the description.
    pub distance: u8,
    /// Words of which only the beginning was typed.
    pub begun: u8,
}

impl Score {
    /// As a number for people and programs: 1 for the whole name, less for everything else, never 0.
    pub fn points(self) -> f64 {
        let lost = u32::from(self.typos) << 10
            | u32::from(self.is_partial) << 9
            | u32::from(self.distance) << 4
            | u32::from(self.begun);
        1.0 - f64::from(lost) / 32_768.0
    }

    pub(super) fn add(&mut self, grade: Grade) {
        self.typos += grade.typos;
        self.distance += grade.field as u8;
        self.begun += u8::from(grade.is_begun);
    }
}

/// How well one word fits: the lowest is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Grade {
    pub(super) typos: u8,
    pub(super) field: Field,
    pub(super) is_begun: bool,
}

impl Grade {
    /// Stands for no grade at all, and is worse than every other.
    pub(super) const NONE: u8 = u8::MAX;

    /// In one byte that has the same order.
    pub(super) fn packed(self) -> u8 {
        self.typos << 3 | (self.field as u8) << 1 | u8::from(self.is_begun)
    }

    pub(super) fn unpacked(byte: u8) -> Option<Self> {
        let fields = [Field::Name, Field::Id, Field::Tag, Field::Description];
        let field = fields[usize::from(byte >> 1 & 3)];
        let grade = Self { typos: byte >> 3, field, is_begun: byte & 1 == 1 };
        (byte != Self::NONE).then_some(grade)
    }
}
