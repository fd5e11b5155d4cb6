//! Validation of names and texts from users.

use std::collections::BTreeMap;

use crate::Invalid;
use crate::invalid::Check;

/// Maximum number of labels of an object.
pub const MAX_LABELS: usize = 64;

/// Checks a line of text: not empty, no control characters, at most `max` characters. Trims it.
pub fn line(field: &str, text: &str, max: usize) -> Result<String, Invalid> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Invalid::new(field, "must not be empty"));
    }
    line_or_empty(field, text, max)
}

/// Like [`line()`], but may be empty.
pub fn line_or_empty(field: &str, text: &str, max: usize) -> Result<String, Invalid> {
    let text = text.trim();
    let length = text.chars().count();
    if length > max {
        return Err(Invalid::new(
            field,
            format!("must have at most {max} characters, not {length}"),
        ));
    }
    if text.chars().any(is_unprintable) {
        return Err(Invalid::new(field, "must not contain control characters"));
    }
    Ok(text.to_owned())
}

/// Control characters, and those that hide or reorder others.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Checks a DNS label: 1 to 63 of `a-z0-9-`, not starting or ending with `-`.
pub fn dns_label(field: &str, text: &str) -> Result<(), Invalid> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = (1..=63).contains(&text.len())
        && text.chars().all(allowed)
        && !text.starts_with('-')
        && !text.ends_with('-');
    if is_label {
        return Ok(());
    }
    let why = "must have 1 to 63 characters of a-z, 0-9 and -, and not start or end with -";
    Err(Invalid::new(field, why))
}

/// Checks a DNS name: labels separated by dots.
pub fn dns_name(field: &str, text: &str) -> Result<(), Invalid> {
    let is_short = text.len() <= 253;
    if is_short && text.split('.').all(|label| dns_label(field, label).is_ok()) {
        return Ok(());
    }
    let rule =
        "must be a domain name such as services.example.org, in lower case, without a final dot";
    Err(Invalid::new(field, rule))
}

/// The normalized form for case-insensitive comparison.
pub fn fold(name: &str) -> String {
    name.trim().to_lowercase()
}

/// Checks labels: short keys from a small alphabet, short values.
pub fn labels(field: &str, labels: &BTreeMap<String, String>) -> Result<(), Invalid> {
    if labels.len() > MAX_LABELS {
        return Err(Invalid::new(field, format!("must have at most {MAX_LABELS} labels")));
    }
    let mut check = Check::default();
    for (key, value) in labels {
        let path = format!("{field}.{}", key.escape_default());
        check.field(label_key(&path, key));
        check.field(line_or_empty(&path, value, 255));
    }
    check.done()
}

fn label_key(field: &str, key: &str) -> Result<(), Invalid> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    if (1..=63).contains(&key.len()) && key.chars().all(allowed) {
        return Ok(());
    }
    Err(Invalid::new(field, "key must have 1 to 63 letters, digits, '.', '_', '-' or '/'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_must_be_printable_and_within_the_limit() {
        for (text, good) in [
            ("Sample", true),
            (" padded ", true),
            ("Zoë's team", true),
            ("", false),
            ("   ", false),
            ("a\nb", false),
            ("a\u{0}b", false),
            ("a\u{202e}b", false),
            ("12345678901", false),
        ] {
            assert_eq!(line("name", text, 10).is_ok(), good, "{text:?}");
        }
    }

    #[test]
    fn message_names_field_and_rule() {
        let error = line("user.display_name", &"x".repeat(11), 10).unwrap_err();
        assert_eq!(error.to_string(), "user.display_name: must have at most 10 characters, not 11");
    }
}
