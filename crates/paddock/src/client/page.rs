//! Fetches lists page by page.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::call::Call;
use super::error::Error;
use super::http::{Api, ApiResponse};
use super::print::Printer;

/// The server's maximum page size.
const MAX_PAGE: usize = 1000;

/// Maximum number of items of a list command.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Limit {
    /// Maximum number of items
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = at_least_one)]
    pub(crate) limit: usize,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "must be a number of at least 1".into())
}

/// Items of one or more pages, unchanged.
pub(crate) struct List {
    items: Vec<Box<RawValue>>,
    /// The response if there was one page; otherwise all pages merged in the same format.
    pub(crate) response: ApiResponse,
    /// Whether the server may have more items.
    is_truncated: bool,
}

#[derive(Serialize, Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    #[serde(default)]
    next: Option<Cursor>,
}

/// Start of the next page: an id, or a sequence number in the event log.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Cursor {
    Id(String),
    Seq(u64),
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => f.write_str(id),
            Self::Seq(seq) => write!(f, "{seq}"),
        }
    }
}

/// Lists up to `limit` items.
pub(crate) async fn list(api: &Api, call: Call, limit: usize) -> Result<List, Error> {
    let mut items = Vec::new();
    let mut after: Option<Cursor> = None;
    let mut pages = 0;
    loop {
        let size = MAX_PAGE.min(limit - items.len());
        let call = call.clone().query("limit", Some(size)).query("after", after.as_ref());
        let response = api.send(&call).await?;
        let page: Page = api.read(&response)?;
        pages += 1;
        // An empty page with a cursor would cause an endless loop.
        after = page.next.filter(|_| !page.items.is_empty());
        items.extend(page.items);
        if after.is_none() || items.len() >= limit {
            let is_truncated = after.is_some();
            let response = if pages == 1 { response } else { merged(&mut items, after) };
            return Ok(List { items, response, is_truncated });
        }
    }
}

fn merged(items: &mut Vec<Box<RawValue>>, next: Option<Cursor>) -> ApiResponse {
    let page = Page { items: std::mem::take(items), next };
    let body = serde_json::to_string(&page).expect("raw JSON values are valid JSON");
    *items = page.items;
    ApiResponse { is_new: false, body }
}

impl List {
    /// Selects at most `limit` items by index, in the given order.
    pub(crate) fn pick(mut self, indices: &[usize], limit: usize) -> Self {
        let is_truncated = indices.len() > limit;
        let picked = indices.iter().take(limit).filter_map(|i| self.items.get(*i).cloned());
        self.items = picked.collect();
        let response = merged(&mut self.items, None);
        Self { response, is_truncated, ..self }
    }

    /// Deserialises the items.
    pub(crate) fn read<T: DeserializeOwned>(&self, api: &Api) -> Result<Vec<T>, Error> {
        self.raw()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()
            .map_err(|_| api.invalid_response())
    }

    /// Items as JSON text.
    pub(crate) fn raw(&self) -> impl Iterator<Item = &str> {
        self.items.iter().map(|item| item.get())
    }

    /// Prints the list, and a note if it is truncated.
    pub(crate) fn print<T: DeserializeOwned>(
        &self,
        api: &Api,
        printer: &mut Printer,
        render: impl FnOnce(&[T]) -> String,
    ) -> Result<(), Error> {
        printer.response(&self.response, || Ok(render(&self.read(api)?)))?;
        self.note_truncated(printer);
        Ok(())
    }

    /// Prints a note if the list is truncated.
    pub(crate) fn note_truncated(&self, printer: &Printer) {
        if self.is_truncated {
            printer.note(&format!("showing the first {}; use --limit for more", self.items.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_pages_keep_their_items_unchanged() {
        let text = r#"{"items":[{"b":1.50,"a":"x"},{"id":12345678901234567890}],"next":"c"}"#;
        let mut page: Page = serde_json::from_str(text).unwrap();
        assert_eq!(merged(&mut page.items, page.next).body, text);
        assert_eq!(page.items.len(), 2);
    }

    #[test]
    fn items_are_picked_in_any_order() {
        let list = || {
            let text = r#"{"items":[{"n":0},{"n":1},{"n":2}]}"#;
            let Page { items, .. } = serde_json::from_str(text).unwrap();
            List {
                items,
                response: ApiResponse { is_new: false, body: text.into() },
                is_truncated: false,
            }
        };
        for (indices, limit, want, is_truncated) in [
            (&[2, 0][..], 9, r#"{"items":[{"n":2},{"n":0}],"next":null}"#, false),
            (&[2, 0], 1, r#"{"items":[{"n":2}],"next":null}"#, true),
            (&[], 9, r#"{"items":[],"next":null}"#, false),
        ] {
            let picked = list().pick(indices, limit);
            assert_eq!(picked.response.body, want);
            assert_eq!(picked.is_truncated, is_truncated);
        }
    }

    #[test]
    fn cursor_is_an_id_or_a_number() {
        for (text, want) in [
            (r#"{"items":[],"next":"abc"}"#, Some("abc")),
            (r#"{"items":[],"next":12}"#, Some("12")),
            (r#"{"items":[],"next":null}"#, None),
            (r#"{"items":[]}"#, None),
        ] {
            let page: Page = serde_json::from_str(text).unwrap();
            assert_eq!(page.next.map(|next| next.to_string()).as_deref(), want);
        }
    }
}
