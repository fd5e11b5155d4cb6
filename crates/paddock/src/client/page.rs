//! Lists, page after page, until there are enough.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::call::Call;
use super::error::Error;
use super::http::{Answer, Api};
use super::print::Printer;

/// The most that the server gives at once.
const MAX_PAGE: usize = 1000;

/// How many items a list command shows.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Limit {
    /// The most to list
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = at_least_one)]
    pub(crate) limit: usize,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "it must be a number from 1 on".into())
}

/// As many pages as were needed. The items stay as the server wrote them.
pub(crate) struct List {
    items: Vec<Box<RawValue>>,
    /// One page as it came; several put together in the same form.
    pub(crate) answer: Answer,
    /// Whether the server has, or may have, more.
    is_cut: bool,
}

#[derive(Serialize, Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    #[serde(default)]
    next: Option<Cursor>,
}

/// Where the next page begins: an id, or a number in the event log.
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
        let answer = api.send(&call).await?;
        let page: Page = api.read(&answer)?;
        pages += 1;
        // An empty page that promises another one would keep us here for ever.
        after = page.next.filter(|_| !page.items.is_empty());
        items.extend(page.items);
        if after.is_none() || items.len() >= limit {
            let is_cut = after.is_some();
            let answer = if pages == 1 { answer } else { together(&mut items, after) };
            return Ok(List { items, answer, is_cut });
        }
    }
}

fn together(items: &mut Vec<Box<RawValue>>, next: Option<Cursor>) -> Answer {
    let page = Page { items: std::mem::take(items), next };
    let body = serde_json::to_string(&page).expect("pieces of JSON make JSON");
    *items = page.items;
    Answer { is_new: false, body }
}

impl List {
    /// Only the items at these places, in their order, and at most so many.
    pub(crate) fn pick(mut self, places: &[usize], limit: usize) -> Self {
        let is_cut = places.len() > limit;
        let picked = places.iter().take(limit).filter_map(|place| self.items.get(*place).cloned());
        self.items = picked.collect();
        let answer = together(&mut self.items, None);
        Self { answer, is_cut, ..self }
    }

    /// The items, read.
    pub(crate) fn read<T: DeserializeOwned>(&self, api: &Api) -> Result<Vec<T>, Error> {
        self.raw().map(serde_json::from_str).collect::<Result<_, _>>().map_err(|_| api.foreign())
    }

    /// The items, as they came.
    pub(crate) fn raw(&self) -> impl Iterator<Item = &str> {
        self.items.iter().map(|item| item.get())
    }

    /// Prints the list, and remarks when it goes on.
    pub(crate) fn print<T: DeserializeOwned>(
        &self,
        api: &Api,
        printer: &mut Printer,
        render: impl FnOnce(&[T]) -> String,
    ) -> Result<(), Error> {
        printer.answer(&self.answer, || Ok(render(&self.read(api)?)))?;
        self.remark_cut(printer);
        Ok(())
    }

    /// Remarks when there may be more than was listed.
    pub(crate) fn remark_cut(&self, printer: &Printer) {
        if self.is_cut {
            printer.note(&format!("listed the first {}; for more see --limit", self.items.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_put_together_keep_their_items_to_the_letter() {
        let text = r#"{"items":[{"b":1.50,"a":"x"},{"id":12345678901234567890}],"next":"c"}"#;
        let mut page: Page = serde_json::from_str(text).unwrap();
        assert_eq!(together(&mut page.items, page.next).body, text);
        assert_eq!(page.items.len(), 2);
    }

    #[test]
    fn items_are_picked_in_any_order() {
        let list = || {
            let text = r#"{"items":[{"n":0},{"n":1},{"n":2}]}"#;
            let Page { items, .. } = serde_json::from_str(text).unwrap();
            List { items, answer: Answer { is_new: false, body: text.into() }, is_cut: false }
        };
        for (places, limit, want, is_cut) in [
            (&[2, 0][..], 9, r#"{"items":[{"n":2},{"n":0}],"next":null}"#, false),
            (&[2, 0], 1, r#"{"items":[{"n":2}],"next":null}"#, true),
            (&[], 9, r#"{"items":[],"next":null}"#, false),
        ] {
            let picked = list().pick(places, limit);
            assert_eq!(picked.answer.body, want);
            assert_eq!(picked.is_cut, is_cut);
        }
    }

    #[test]
    fn the_next_page_may_be_an_id_or_a_number() {
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
