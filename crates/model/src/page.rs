//! Which part of a list is wanted.

/// A part of a list that is ordered by id: at most `limit`, beginning after `after`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The last id of the part before.
    pub after: Option<String>,
    /// How many at most.
    pub limit: i64,
    /// How many to leave out first. For APIs that count pages; `after` does not grow slow.
    pub skip: i64,
}

impl Page {
    /// The first `limit`.
    pub fn first(limit: i64) -> Self {
        Self { after: None, limit, skip: 0 }
    }
}
