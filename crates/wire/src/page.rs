//! Parts of lists.

use model::Page;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A part of a list.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct List<T> {
    /// The items.
    pub items: Vec<T>,
    /// Give this as `after` to get the next part; nothing if this was the last.
    pub next: Option<String>,
}

impl<T> List<T> {
    /// The part of a list that `page` selects. `page` asks for one item more than the part holds, so
    /// that a further part is noticed; `id` names an item.
    pub fn new(mut items: Vec<T>, page: &Page, id: impl Fn(&T) -> String) -> Self {
        let has_more = cut(&mut items, page.limit - 1);
        let next = items.last().filter(|_| has_more).map(id);
        Self { items, next }
    }
}

/// Truncates to `limit` items. Returns whether there were more.
pub fn cut<T>(items: &mut Vec<T>, limit: i64) -> bool {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = items.len() > limit;
    items.truncate(limit);
    has_more
}
