//! The sort order of lists: `name desc, created_at`.

use std::ops::Range;

use super::Error;

/// A sort direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first.
    #[default]
    Ascending,
    /// Largest first.
    Descending,
}

/// The maximum size of an order, in bytes.
const MAX_BYTES: usize = 1000;

/// Parses an order over these columns, as spelled by the caller. An empty text means no order.
pub fn order(text: &str, columns: &[&str]) -> Result<Vec<(String, Direction)>, Error> {
    if text.len() > MAX_BYTES {
        let reason = format!("an order may have at most {MAX_BYTES} bytes");
        return Err(Error { position: 1, token: String::new(), reason });
    }
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut start = 0;
    let items = text.split(',').map(|item| {
        let from = start;
        start += item.len() + 1;
        sort_key(text, from..from + item.len(), columns)
    });
    items.collect()
}

/// Parses one column and its direction in `range` of the text.
fn sort_key(
    text: &str,
    range: Range<usize>,
    columns: &[&str],
) -> Result<(String, Direction), Error> {
    let mut at = range.start;
    let name = word(text, &mut at, range.end);
    let Some(column) = columns.iter().find(|column| column.eq_ignore_ascii_case(name)) else {
        let reason = format!("must be one of {}", columns.join(", "));
        return Err(Error::new(text, at - name.len(), reason));
    };
    let keyword = word(text, &mut at, range.end);
    let direction = match keyword.to_ascii_lowercase().as_str() {
        "" | "asc" => Direction::Ascending,
        "desc" => Direction::Descending,
        _ => return Err(Error::new(text, at - keyword.len(), "must be asc or desc")),
    };
    let more = word(text, &mut at, range.end);
    if more.is_empty() {
        return Ok(((*column).to_owned(), direction));
    }
    Err(Error::new(text, at - more.len(), "expected a comma or end of input"))
}

/// The next word before `end`, empty if none; advances `at`.
fn word<'a>(text: &'a str, at: &mut usize, end: usize) -> &'a str {
    let rest = text[*at..end].trim_start();
    let word = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
    *at = end - rest.len() + word.len();
    word
}
