//! Searches and orders of lists. A parsed search is printed and parsed again to the same
//! expression.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::search::{Expr, MAX_BYTES, Op, order, parse};

const COLUMNS: [&str; 5] = ["name", "owner", "region", "cloud_provider", "status"];

fuzz_target!(|text: &str| {
    let _ = order(text, &COLUMNS);
    let _ = parse(text, &COLUMNS[..1], &[Op::Eq, Op::Ne, Op::Like]);
    match parse(text, &COLUMNS, &Op::ALL) {
        Ok(None) => assert!(text.is_empty()),
        Ok(Some(search)) => check(&search, text),
        Err(error) => assert!(error.position <= text.chars().count() + 1, "{error}"),
    }
});

fn check(search: &Expr, text: &str) {
    // Terminates, and depends on the row only.
    for row in [None, Some(""), Some("a"), Some(text)] {
        assert_eq!(search.matches(&|_| row), search.matches(&|_| row));
        assert!(row.is_some() || !search.matches(&|_| row), "NULL matches nothing");
    }
    let printed = search.to_string();
    if printed.len() <= MAX_BYTES && is_printable(search) {
        assert_eq!(parse(&printed, &COLUMNS, &Op::ALL), Ok(Some(search.clone())), "{printed}");
    }
}

/// Quotes can't represent a backslash before a quote or at the end.
fn is_printable(search: &Expr) -> bool {
    let is_quotable = |value: &String| !value.contains("\\'") && !value.ends_with('\\');
    match search {
        Expr::And(parts) | Expr::Or(parts) => parts.iter().all(is_printable),
        Expr::Compare { value, .. } => is_quotable(value),
        Expr::In { values, .. } => values.iter().all(is_quotable),
    }
}
