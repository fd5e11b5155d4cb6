//! Scores: how well a document matches a query.

use super::Field;

/// How well a document matches. Fields are compared top to bottom and the lowest wins, so the order
/// of the fields *is* the policy. Equal scores are ordered by name, then by id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score {
    /// The number of typos in all terms: exact matches come first.
    pub typos: u8,
    /// Is the query not the full name? A full name most likely means that document.
    pub is_partial: bool,
    /// The sum over all terms of the matched field: 0 for the name, 1 for the id, 2 for a tag, 3
    /// for the description.
    pub distance: u8,
    /// The number of terms that match only a prefix of a word.
    pub prefixes: u8,
}

impl Score {
    /// The score as a number: 1 for the full name, less for everything else, never 0.
    pub fn points(self) -> f64 {
        let penalty = u32::from(self.typos) << 10
            | u32::from(self.is_partial) << 9
            | u32::from(self.distance) << 4
            | u32::from(self.prefixes);
        1.0 - f64::from(penalty) / 32_768.0
    }

    pub(super) fn add(&mut self, grade: Grade) {
        self.typos += grade.typos;
        self.distance += grade.field as u8;
        self.prefixes += u8::from(grade.is_prefix);
    }
}

/// How well one term matches: the lowest is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Grade {
    pub(super) typos: u8,
    pub(super) field: Field,
    pub(super) is_prefix: bool,
}

impl Grade {
    /// No match; worse than every grade.
    pub(super) const NONE: u8 = u8::MAX;

    /// The grade as a byte with the same order.
    pub(super) fn packed(self) -> u8 {
        self.typos << 3 | (self.field as u8) << 1 | u8::from(self.is_prefix)
    }

    pub(super) fn unpacked(byte: u8) -> Option<Self> {
        let fields = [Field::Name, Field::Id, Field::Tag, Field::Description];
        let field = fields[usize::from(byte >> 1 & 3)];
        let grade = Self { typos: byte >> 3, field, is_prefix: byte & 1 == 1 };
        (byte != Self::NONE).then_some(grade)
    }
}
