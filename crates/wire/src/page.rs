//! Pages of lists.

use model::Page;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A page of a list.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct List<T> {
    /// The items.
    pub items: Vec<T>,
    /// Cursor of the next page; pass it as `after`. Null on the last page.
    pub next: Option<String>,
}

impl<T> List<T> {
    /// Creates the page that `page` selects. `page` requests one item more than the page holds to
    /// detect whether more follow; `id` returns the cursor of an item.
    pub fn new(mut items: Vec<T>, page: &Page, id: impl Fn(&T) -> String) -> Self {
        let has_more = truncate(&mut items, page.limit - 1);
        let next = items.last().filter(|_| has_more).map(id);
        Self { items, next }
    }
}

/// Truncates to `limit` items. Returns whether there were more.
pub fn truncate<T>(items: &mut Vec<T>, limit: i64) -> bool {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = items.len() > limit;
    items.truncate(limit);
    has_more
}
