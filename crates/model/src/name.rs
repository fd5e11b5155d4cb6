//! Rules for the names and texts that users choose.

use std::collections::BTreeMap;

use crate::Invalid;
use crate::invalid::Check;

/// How many labels one thing may carry.
pub const MAX_LABELS: usize = 64;

/// A line of text that people read: not empty, no control characters, at most `max` characters.
///
/// Blanks around it are dropped.
pub fn line(field: &str, text: &str, max: usize) -> Result<String, Invalid> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Invalid::new(field, "must not be empty"));
    }
    line_or_empty(field, text, max)
}

/// As [`line()`], but it may be empty.
pub fn line_or_empty(field: &str, text: &str, max: usize) -> Result<String, Invalid> {
    let text = text.trim();
    let length = text.chars().count();
    if length > max {
        return Err(Invalid::new(field, format!("{length} characters; at most {max} are allowed")));
    }
    if text.chars().any(is_unprintable) {
        return Err(Invalid::new(field, "control characters are not allowed"));
    }
    Ok(text.to_owned())
}

/// Characters that hide or reorder others; they have no place in a name.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A name that can be a DNS label: `a-z0-9-`, at most 63, neither first nor last a `-`.
pub fn dns_label(field: &str, text: &str) -> Result<(), Invalid> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_one = (1..=63).contains(&text.len())
        && text.chars().all(allowed)
        && !text.starts_with('-')
        && !text.ends_with('-');
    if is_one {
        return Ok(());
    }
    Err(Invalid::new(field, "1 to 63 of a-z, 0-9 and -, neither first nor last a -"))
}

/// Checks a name of the domain name system: labels with dots between them.
pub fn dns_name(field: &str, text: &str) -> Result<(), Invalid> {
    let is_short = text.len() <= 253;
    if is_short && text.split('.').all(|label| dns_label(field, label).is_ok()) {
        return Ok(());
    }
    let rule =
        "must be a domain name such as services.example.org, in lower case, without a final dot";
    Err(Invalid::new(field, rule))
}

/// The form of a name in which two names count as the same.
pub fn fold(name: &str) -> String {
    name.trim().to_lowercase()
}

/// Labels: short keys from a small alphabet, short values.
pub fn labels(field: &str, labels: &BTreeMap<String, String>) -> Result<(), Invalid> {
    if labels.len() > MAX_LABELS {
        return Err(Invalid::new(field, format!("at most {MAX_LABELS} labels")));
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
    Err(Invalid::new(
        field,
        "a label's key has 1 to 63 characters: letters, digits, '.', '_', '-', '/'",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
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
    fn the_message_names_field_and_rule() {
        let error = line("user.display_name", &"x".repeat(11), 10).unwrap_err();
        assert_eq!(error.to_string(), "user.display_name: 11 characters; at most 10 are allowed");
    }
}
