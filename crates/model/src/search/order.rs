//! The order of lists: `name desc, created_at`.

use std::ops::Range;

use super::Error;

/// Which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first.
    #[default]
    Ascending,
    /// Largest first.
    Descending,
}

/// The longest text, in bytes.
const MAX_BYTES: usize = 1000;

/// Reads an order over these columns, spelled as the caller spells them. The empty text is no order.
pub fn order(text: &str, columns: &[&str]) -> Result<Vec<(String, Direction)>, Error> {
    if text.len() > MAX_BYTES {
        let reason = format!("an order has at most {MAX_BYTES} bytes");
        return Err(Error { position: 1, token: String::new(), reason });
    }
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut start = 0;
    let items = text.split(',').map(|item| {
        let from = start;
        start += item.len() + 1;
        one(text, from..from + item.len(), columns)
    });
    items.collect()
}

/// One column and its direction, at `place` of the text.
fn one(text: &str, place: Range<usize>, columns: &[&str]) -> Result<(String, Direction), Error> {
    let mut at = place.start;
    let name = word(text, &mut at, place.end);
    let Some(column) = columns.iter().find(|column| column.eq_ignore_ascii_case(name)) else {
        let reason = format!("must be one of {}", columns.join(", "));
        return Err(Error::new(text, at - name.len(), reason));
    };
    let way = word(text, &mut at, place.end);
    let direction = match way.to_ascii_lowercase().as_str() {
        "" | "asc" => Direction::Ascending,
        "desc" => Direction::Descending,
        _ => return Err(Error::new(text, at - way.len(), "must be asc or desc")),
    };
    let more = word(text, &mut at, place.end);
    if more.is_empty() {
        return Ok(((*column).to_owned(), direction));
    }
    Err(Error::new(text, at - more.len(), "a comma or the end is expected"))
}

/// The next word before `end`, empty if there is none; `at` is behind it then.
fn word<'a>(text: &'a str, at: &mut usize, end: usize) -> &'a str {
    let rest = text[*at..end].trim_start();
    let word = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
    *at = end - rest.len() + word.len();
    word
}
