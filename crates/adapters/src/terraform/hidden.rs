//! Texts that must not be in what leaves Terraform: it repeats secrets in its errors.

use data_encoding::BASE64;
use model::Secret;
use serde_json::{Map, Value};

/// What is put in their place.
const BLOT: &str = "•••";
/// Shorter lines of a longer secret are no secret: brackets, for example.
const SHORTEST_LINE: usize = 5;

/// All forms of all secrets, the longest first.
#[derive(Clone, Default)]
pub(super) struct Hidden(Vec<String>);

impl Hidden {
    /// Hides the values of variables.
    pub(super) fn of(variables: &Map<String, Value>) -> Self {
        let mut hidden = Self::default();
        variables.values().for_each(|value| hidden.add(value));
        hidden.sorted()
    }

    /// Hides the sensitive outputs of a state, too.
    pub(super) fn and_outputs(mut self, state: Option<&Secret>) -> Self {
        let parsed = state.and_then(|text| serde_json::from_str::<Value>(text.reveal()).ok());
        let outputs = parsed.as_ref().and_then(|state| state["outputs"].as_object());
        for output in outputs.into_iter().flat_map(Map::values) {
            if output["sensitive"] == true {
                self.add(&output["value"]);
            }
        }
        self.sorted()
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add_text(text),
            Value::Number(number) => self.0.push(number.to_string()),
            Value::Array(list) => list.iter().for_each(|value| self.add(value)),
            Value::Object(fields) => fields.values().for_each(|value| self.add(value)),
            Value::Bool(_) | Value::Null => {}
        }
    }

    /// A text, as it is quoted, its lines, and what modules make of it for user data.
    fn add_text(&mut self, text: &str) {
        let quoted = Value::from(text).to_string();
        self.0.push(quoted[1..quoted.len() - 1].to_owned());
        self.0.push(BASE64.encode(text.as_bytes()));
        let lines = text.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE);
        self.0.extend(lines.map(str::to_owned));
        self.0.push(text.trim().to_owned());
    }

    fn sorted(mut self) -> Self {
        self.0.retain(|text| !text.is_empty());
        self.0.sort_by_key(|text| std::cmp::Reverse(text.len()));
        self.0.dedup();
        self
    }

    /// The text without them.
    pub(super) fn blot(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, BLOT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_form_of_a_secret_is_blotted_out() {
        let variables =
            json!({"a": "s3\"cret", "b": ["line one\nline two\n}"], "c": {"d": 4711}, "e": true});
        let state = json!({"outputs": {"x": {"value": "h1dden", "sensitive": true}, "y": {"value": "seen"}}});
        let hidden = Hidden::of(variables.as_object().unwrap());
        let hidden = hidden.and_outputs(Some(&Secret::new(state.to_string())));
        for (text, blotted) in [
            ("a s3\"cret b", "a ••• b"),
            ("a \"s3\\\"cret\" b", "a \"•••\" b"),
            ("czMiY3JldA==", "•••"),
            ("only line two }", "only ••• }"),
            ("line one\nline two\n}", "•••"),
            ("port 4711 is true", "port ••• is true"),
            ("h1dden and seen", "••• and seen"),
        ] {
            assert_eq!(hidden.blot(text), blotted);
        }
        assert_eq!(Hidden::default().blot("all of it"), "all of it");
    }
}
