//! One call of the server's interface, as a value.

use base::{OsEntropy, entropy};
use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};

/// What a call carries.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// JSON.
    Json(Value),
    /// A file, as it is.
    File {
        /// What it is.
        media_type: &'static str,
        /// What is in it.
        bytes: Vec<u8>,
    },
}

/// A request body without the fields that are not given: the server's defaults apply, and an older
/// server does not meet a field that it does not know.
pub(crate) fn request(shape: &impl Serialize) -> Value {
    let mut body = json!(shape);
    if let Value::Object(fields) = &mut body {
        fields.retain(|_, value| !value.is_null());
    }
    body
}

/// What to ask of the server.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// The API of a kind of service, such as `kafkas_mgmt`; without one, the platform's own.
    pub(crate) family: Option<String>,
    /// What follows `/api/v1` or `/api/{family}/v1`, unescaped.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) body: Option<Body>,
    pub(crate) needs_token: bool,
    /// Makes the server carry out the call once, however often it arrives.
    pub(crate) idempotency_key: Option<String>,
}

impl Call {
    /// Reads something.
    pub(crate) fn get(path: &[&str]) -> Self {
        Self::new(Method::GET, path, None)
    }

    /// Deletes something.
    pub(crate) fn delete(path: &[&str]) -> Self {
        Self::new(Method::DELETE, path, None)
    }

    /// Changes something to what `body` says: doing so twice is doing so once.
    pub(crate) fn patch(path: &[&str], body: Value) -> Self {
        Self::new(Method::PATCH, path, Some(body))
    }

    /// Does something that is not safe to repeat.
    pub(crate) fn post(path: &[&str], body: Option<Value>) -> Self {
        Self::new(Method::POST, path, body)
    }

    /// Creates something, once: for calls of which the server remembers the key.
    pub(crate) fn create(path: &[&str], body: Value) -> Self {
        let key = Some(entropy::secret(&OsEntropy));
        Self { idempotency_key: key, ..Self::new(Method::POST, path, Some(body)) }
    }

    /// Hands over a file, which the server takes once.
    pub(crate) fn upload(path: &[&str], media_type: &'static str, bytes: Vec<u8>) -> Self {
        let body = Some(Body::File { media_type, bytes });
        Self { body, ..Self::create(path, Value::Null) }
    }

    /// Works without a token; none is sent.
    pub(crate) fn open(self) -> Self {
        Self { needs_token: false, ..self }
    }

    /// Goes to the API of a kind of service, instead of the platform's own.
    pub(crate) fn to(self, family: &str) -> Self {
        Self { family: Some(family.into()), ..self }
    }

    /// Adds a query parameter, if it has a value.
    pub(crate) fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Whether a second arrival does no harm.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.method != Method::POST || self.idempotency_key.is_some()
    }

    fn new(method: Method, path: &[&str], body: Option<Value>) -> Self {
        let path = path.iter().map(ToString::to_string).collect();
        let (family, query, idempotency_key) = (None, vec![], None);
        let body = body.map(Body::Json);
        Self { method, family, path, query, body, needs_token: true, idempotency_key }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_says_whether_it_may_be_repeated() {
        for (call, repeatable) in [
            (Call::get(&["clusters"]), true),
            (Call::delete(&["clusters", "x"]), true),
            (Call::create(&["clusters"], Value::Null), true),
            (Call::patch(&["clusters", "x"], Value::Null), true),
            (Call::upload(&["templates"], "application/yaml", vec![]), true),
            (Call::post(&["login"], None), false),
        ] {
            assert_eq!(call.is_repeatable(), repeatable, "{call:?}");
        }
    }

    #[test]
    fn each_creation_has_its_own_key() {
        let key = || Call::create(&["clusters"], Value::Null).idempotency_key.unwrap();
        assert_ne!(key(), key());
        assert_eq!(Call::get(&["clusters"]).idempotency_key, None);
    }
}
