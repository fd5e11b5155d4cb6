//! Error messages in the responses of external systems, shortened to one line.

use model::Secret;
use serde_json::Value;

/// The maximum length of an external message, in characters.
const MAX_CHARS: usize = 200;

/// The fields in which OAuth, Keycloak and Vault put error messages, best first.
const FIELDS: [&str; 4] = ["error_description", "errorMessage", "errors", "error"];

/// The error message in a JSON body, as one line of limited length.
pub(super) fn in_json(body: &Value) -> Option<String> {
    let text = FIELDS.iter().find_map(|field| match body.get(field)? {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => {
            Some(list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
        }
        _ => None,
    })?;
    line(&text)
}

/// The message of any response, as one line: its error message, else its JSON, else its first line.
pub(crate) fn summarize(body: &[u8]) -> Option<String> {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => in_json(&value).or_else(|| line(&value.to_string())),
        Err(_) => first_line(body),
    }
}

/// The first line of a plain-text response; none for HTML, whose first line carries no message.
pub(super) fn first_line(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?.trim_start();
    if text.starts_with('<') { None } else { line(text.lines().next()?) }
}

fn line(text: &str) -> Option<String> {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line: String = line.trim().chars().take(MAX_CHARS).collect();
    (!line.is_empty()).then_some(line)
}

/// The text with every secret replaced.
pub(super) fn redact(text: &str, secrets: &[&Secret]) -> String {
    let shown = secrets.iter().map(|secret| secret.reveal()).filter(|secret| !secret.is_empty());
    shown.fold(text.to_owned(), |text, secret| text.replace(secret, "•••"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn message_is_found_in_the_field_of_each_system() {
        for (body, message) in [
            (json!({"error": "invalid_token", "error_description": "too\nold"}), Some("too old")),
            (json!({"errorMessage": "Client exists"}), Some("Client exists")),
            (json!({"errors": ["Vault is sealed", 1, "sorry"]}), Some("Vault is sealed, sorry")),
            (json!({"error": "x".repeat(300)}), Some(&*"x".repeat(MAX_CHARS))),
            (json!({"error": " "}), None),
            (json!({"errors": []}), None),
            (json!([1, 2]), None),
            (Value::Null, None),
        ] {
            assert_eq!(in_json(&body).as_deref(), message, "{body}");
        }
    }

    #[test]
    fn plain_text_is_reduced_to_its_first_line() {
        for (body, line) in [
            (&b"\n ACL not found\nat 1"[..], Some("ACL not found")),
            (b"<html>\nno", None),
            (b"", None),
            (&[0xff, 0xfe], None),
        ] {
            assert_eq!(first_line(body).as_deref(), line, "{body:?}");
        }
    }

    #[test]
    fn any_response_is_summarized_in_one_line() {
        for (body, line) in [
            ("{\n  \"error\": \"no\"\n}", Some("no")),
            ("{\n  \"title\": \"no\"\n}", Some("{\"title\":\"no\"}")),
            ("no\nreally", Some("no")),
            ("<html>", None),
        ] {
            assert_eq!(summarize(body.as_bytes()).as_deref(), line, "{body}");
        }
    }

    #[test]
    fn secrets_are_redacted() {
        let (one, none) = (Secret::new("s3cret"), Secret::new(""));
        assert_eq!(redact("no s3cret for s3cret", &[&none, &one]), "no ••• for •••");
    }
}
