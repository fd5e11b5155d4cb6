//! What foreign answers say about their errors, made fit for our sentences.

use model::Secret;
use serde_json::Value;

/// The most characters of a foreign sentence.
const MAX_CHARS: usize = 200;

/// Where OAuth, Keycloak and Vault put their sentences, best first.
const PLACES: [&str; 4] = ["error_description", "errorMessage", "errors", "error"];

/// The sentence of an error's body, on one line and not too long.
pub(super) fn said(body: &Value) -> Option<String> {
    let text = PLACES.iter().find_map(|place| match body.get(place)? {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => {
            Some(list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
        }
        _ => None,
    })?;
    line(&text)
}

/// What an answer of any kind says, in one line: its sentence, else its JSON, else its first line.
pub(crate) fn of(body: &[u8]) -> Option<String> {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => said(&value).or_else(|| line(&value.to_string())),
        Err(_) => first_line(body),
    }
}

/// The first line of an answer that is plain text: a page for people says nothing in its first line.
pub(super) fn first_line(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?.trim_start();
    if text.starts_with('<') { None } else { line(text.lines().next()?) }
}

fn line(text: &str) -> Option<String> {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line: String = line.trim().chars().take(MAX_CHARS).collect();
    (!line.is_empty()).then_some(line)
}

/// The text, with every secret in it blotted out.
pub(super) fn without(text: &str, secrets: &[&Secret]) -> String {
    let shown = secrets.iter().map(|secret| secret.reveal()).filter(|secret| !secret.is_empty());
    shown.fold(text.to_owned(), |text, secret| text.replace(secret, "•••"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_sentence_is_found_where_each_system_puts_it() {
        for (body, sentence) in [
            (json!({"error": "invalid_token", "error_description": "too\nold"}), Some("too old")),
            (json!({"errorMessage": "Client exists"}), Some("Client exists")),
            (json!({"errors": ["Vault is sealed", 1, "sorry"]}), Some("Vault is sealed, sorry")),
            (json!({"error": "x".repeat(300)}), Some(&*"x".repeat(MAX_CHARS))),
            (json!({"error": " "}), None),
            (json!({"errors": []}), None),
            (json!([1, 2]), None),
            (Value::Null, None),
        ] {
            assert_eq!(said(&body).as_deref(), sentence, "{body}");
        }
    }

    #[test]
    fn of_plain_text_the_first_line_is_taken() {
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
    fn of_any_answer_there_is_one_line() {
        for (body, line) in [
            ("{\n  \"error\": \"no\"\n}", Some("no")),
            ("{\n  \"title\": \"no\"\n}", Some("{\"title\":\"no\"}")),
            ("no\nreally", Some("no")),
            ("<html>", None),
        ] {
            assert_eq!(of(body.as_bytes()).as_deref(), line, "{body}");
        }
    }

    #[test]
    fn secrets_are_blotted_out() {
        let (one, none) = (Secret::new("s3cret"), Secret::new(""));
        assert_eq!(without("no s3cret for s3cret", &[&none, &one]), "no ••• for •••");
    }
}
