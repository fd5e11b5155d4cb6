//! Pagination.

/// A page of a list ordered by id: at most `limit` items after `after`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The last id of the previous page.
    pub after: Option<String>,
    /// Maximum number of items.
    pub limit: i64,
    /// Number of items to skip, for APIs with page numbers; `after` is faster on deep pages.
    pub skip: i64,
}

impl Page {
    /// The first page.
    pub fn first(limit: i64) -> Self {
        Self { after: None, limit, skip: 0 }
    }
}
