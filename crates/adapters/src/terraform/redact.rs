//! Redacts secrets in Terraform's output, which repeats them in its errors.

use data_encoding::BASE64;
use model::Secret;
use serde_json::{Map, Value};

/// The replacement of a secret.
pub(super) const REDACTED: &str = "•••";
/// The minimum length of a line of a secret: shorter ones, such as brackets, are not secret.
const MIN_LINE: usize = 5;

/// All forms of all secrets, the longest first.
#[derive(Clone, Default)]
pub(super) struct Redactor(Vec<String>);

impl Redactor {
    /// Redacts the values of variables.
    pub(super) fn new(variables: &Map<String, Value>) -> Self {
        Self::default().and_variables(variables)
    }

    /// Also redacts the values of other variables.
    pub(super) fn and_variables(mut self, variables: &Map<String, Value>) -> Self {
        variables.values().for_each(|value| self.add(value));
        self.sorted()
    }

    /// Also redacts the sensitive outputs of a state.
    pub(super) fn and_outputs(mut self, state: Option<&Secret>) -> Self {
        let parsed = state.and_then(|text| serde_json::from_str::<Value>(text.reveal()).ok());
        let outputs = parsed.as_ref().and_then(|state| state["outputs"].as_object());
        // Before Terraform 0.12 outputs were by module.
        let modules = parsed.as_ref().and_then(|state| state["modules"].as_array());
        let modules = modules.into_iter().flatten().filter_map(|one| one["outputs"].as_object());
        for output in outputs.into_iter().chain(modules).flat_map(Map::values) {
            if output["sensitive"] == true {
                self.add(&output["value"]);
            }
        }
        self.sorted()
    }

    /// Also redacts the sensitive attributes of a state. Short values are not secret.
    pub(super) fn and_attributes(mut self, state: Option<&Secret>) -> Self {
        let parsed = state.and_then(|text| serde_json::from_str::<Value>(text.reveal()).ok());
        let resources = parsed.as_ref().and_then(|state| state["resources"].as_array());
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let instances = resources.into_iter().flatten().flat_map(|one| list(&one["instances"]));
        for instance in instances {
            for path in list(&instance["sensitive_attributes"]) {
                self.add_long(follow(&instance["attributes"], &list(&path)));
            }
        }
        self.sorted()
    }

    /// Also redacts other values.
    pub(super) fn and_values(mut self, values: &[Value]) -> Self {
        for value in values {
            self.add_long(value);
        }
        self.sorted()
    }

    /// Whether a value contains a secret.
    pub(super) fn is_in(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self
                .0
                .iter()
                .any(|secret| text == secret || secret.len() >= MIN_LINE && text.contains(secret)),
            Value::Array(list) => list.iter().any(|value| self.is_in(value)),
            Value::Object(fields) => fields.values().any(|value| self.is_in(value)),
            _ => false,
        }
    }

    fn add_long(&mut self, value: &Value) {
        match value {
            Value::String(text) if text.len() >= MIN_LINE => self.add_text(text),
            Value::Array(list) => list.iter().for_each(|value| self.add_long(value)),
            Value::Object(fields) => fields.values().for_each(|value| self.add_long(value)),
            _ => {}
        }
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

    /// Adds a text, its JSON string, its base64 (for user data) and its lines.
    fn add_text(&mut self, text: &str) {
        let quoted = Value::from(text).to_string();
        self.0.push(quoted[1..quoted.len() - 1].to_owned());
        self.0.push(BASE64.encode(text.as_bytes()));
        let lines = text.lines().map(str::trim).filter(|line| line.len() >= MIN_LINE);
        self.0.extend(lines.map(str::to_owned));
        self.0.push(text.trim().to_owned());
    }

    fn sorted(mut self) -> Self {
        self.0.retain(|text| !text.is_empty());
        self.0.sort_by_key(|text| std::cmp::Reverse(text.len()));
        self.0.dedup();
        self
    }

    /// The text with all secrets replaced.
    pub(super) fn redact(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, REDACTED))
    }
}

/// Whether a name denotes a secret.
pub(super) fn looks_secret(name: &str) -> bool {
    const ENDS: [&str; 10] = [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "private_key",
        "api_key",
        "access_key",
        "secret_key",
        "credentials",
    ];
    let name = name.to_lowercase().replace('-', "_");
    ENDS.iter().any(|end| name.ends_with(end))
}

/// The value at an attribute path of a state.
fn follow<'a>(from: &'a Value, path: &[Value]) -> &'a Value {
    path.iter().fold(from, |at, step| {
        let at = bare(at);
        match (&step["value"], &step["value"]["value"]) {
            (Value::String(name), _) | (_, Value::String(name)) => &at[name],
            (_, Value::Number(index)) => {
                let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
                index.map_or(&Value::Null, |index| &at[index])
            }
            _ => &Value::Null,
        }
    })
}

/// Unwraps a dynamically typed value, which a state stores with its type.
fn bare(value: &Value) -> &Value {
    match value.as_object() {
        Some(fields) if fields.len() == 2 && fields.contains_key("type") => {
            fields.get("value").unwrap_or(value)
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_form_of_a_secret_is_redacted() {
        let variables =
            json!({"a": "s3\"cret", "b": ["line one\nline two\n}"], "c": {"d": 4711}, "e": true});
        let state = json!({"outputs": {"x": {"value": "h1dden", "sensitive": true}, "y": {"value": "seen"}}});
        let redactor = Redactor::new(variables.as_object().unwrap());
        let redactor = redactor.and_outputs(Some(&Secret::new(state.to_string())));
        for (text, redacted) in [
            ("a s3\"cret b", "a ••• b"),
            ("a \"s3\\\"cret\" b", "a \"•••\" b"),
            ("czMiY3JldA==", "•••"),
            ("only line two }", "only ••• }"),
            ("line one\nline two\n}", "•••"),
            ("port 4711 is true", "port ••• is true"),
            ("h1dden and seen", "••• and seen"),
        ] {
            assert_eq!(redactor.redact(text), redacted);
        }
        assert_eq!(Redactor::default().redact("all of it"), "all of it");
    }

    #[test]
    fn sensitive_attributes_of_a_state_are_redacted() {
        let state = json!({"resources": [{"instances": [{
            "attributes": {
                "password": "top-secret",
                "input": {"value": {"p": "s3cret", "n": "seen"}, "type": ["object"]},
                "list": ["first", "second"],
                "size": 5,
            },
            "sensitive_attributes": [
                [{"type": "get_attr", "value": "password"}],
                [{"type": "get_attr", "value": "input"}, {"type": "get_attr", "value": "p"}],
                [{"type": "get_attr", "value": "list"},
                 {"type": "index", "value": {"value": 1, "type": "number"}}],
                [{"type": "get_attr", "value": "size"}],
                [{"type": "get_attr", "value": "gone"}],
            ],
        }]}]});
        let redactor = Redactor::default().and_attributes(Some(&Secret::new(state.to_string())));
        let redactor = redactor.and_values(&[json!(["planned", "x"])]);
        assert_eq!(
            redactor.redact("top-secret s3cret seen first second 5 planned x"),
            "••• ••• seen first ••• 5 ••• x"
        );
        assert!(redactor.is_in(&json!({"a": ["a s3cret b"]})));
        assert!(!redactor.is_in(&json!({"a": ["seen", 5]})));
    }

    #[test]
    fn secret_names_are_recognized() {
        for secret in ["password", "db_password", "AWS_SECRET_ACCESS_KEY", "api-key", "TF_TOKEN"] {
            assert!(looks_secret(secret), "{secret}");
        }
        for plain in ["name", "secret_name", "token_ttl", "key", "AWS_REGION", "passwords_file"] {
            assert!(!looks_secret(plain), "{plain}");
        }
    }
}
