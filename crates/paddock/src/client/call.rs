//! A call of the server's HTTP API, as a value.

use base::{OsEntropy, entropy};
use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};

/// Request body.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// JSON.
    Json(Value),
    /// A file, sent unchanged.
    File {
        /// Content type.
        media_type: &'static str,
        /// Content.
        bytes: Vec<u8>,
    },
}

/// Serialises a request body without null fields, so that the server's defaults apply and an older
/// server does not receive unknown fields.
pub(crate) fn request(shape: &impl Serialize) -> Value {
    let mut body = json!(shape);
    if let Value::Object(fields) = &mut body {
        fields.retain(|_, value| !value.is_null());
    }
    body
}

/// A request to the server.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// API family of a service kind, such as `kafkas_mgmt`; `None` for the platform API.
    pub(crate) family: Option<String>,
    /// Path segments after `/api/v1` or `/api/{family}/v1`, unescaped.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) body: Option<Body>,
    pub(crate) needs_token: bool,
    /// Makes the call idempotent at the server.
    pub(crate) idempotency_key: Option<String>,
}

impl Call {
    pub(crate) fn get(path: &[&str]) -> Self {
        Self::new(Method::GET, path, None)
    }

    pub(crate) fn delete(path: &[&str]) -> Self {
        Self::new(Method::DELETE, path, None)
    }

    /// Updates a resource; idempotent.
    pub(crate) fn patch(path: &[&str], body: Value) -> Self {
        Self::new(Method::PATCH, path, Some(body))
    }

    /// Creates or replaces a resource; idempotent.
    pub(crate) fn put(path: &[&str], body: Value) -> Self {
        Self::new(Method::PUT, path, Some(body))
    }

    /// Sends a POST that must not be retried.
    pub(crate) fn post(path: &[&str], body: Option<Value>) -> Self {
        Self::new(Method::POST, path, body)
    }

    /// Creates a resource with an idempotency key, so that retries are safe.
    pub(crate) fn create(path: &[&str], body: Value) -> Self {
        let key = Some(entropy::secret(&OsEntropy));
        Self { idempotency_key: key, ..Self::new(Method::POST, path, Some(body)) }
    }

    /// Uploads a file with an idempotency key.
    pub(crate) fn upload(path: &[&str], media_type: &'static str, bytes: Vec<u8>) -> Self {
        let body = Some(Body::File { media_type, bytes });
        Self { body, ..Self::create(path, Value::Null) }
    }

    /// Sends no token.
    pub(crate) fn without_token(self) -> Self {
        Self { needs_token: false, ..self }
    }

    /// Selects the API family of a service kind instead of the platform API.
    pub(crate) fn to(self, family: &str) -> Self {
        Self { family: Some(family.into()), ..self }
    }

    /// Adds a query parameter if it has a value.
    pub(crate) fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Whether the call is safe to retry.
    pub(crate) fn is_idempotent(&self) -> bool {
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
    fn posts_without_key_are_not_idempotent() {
        for (call, idempotent) in [
            (Call::get(&["clusters"]), true),
            (Call::delete(&["clusters", "x"]), true),
            (Call::create(&["clusters"], Value::Null), true),
            (Call::patch(&["clusters", "x"], Value::Null), true),
            (Call::upload(&["templates"], "application/yaml", vec![]), true),
            (Call::post(&["login"], None), false),
        ] {
            assert_eq!(call.is_idempotent(), idempotent, "{call:?}");
        }
    }

    #[test]
    fn each_creation_has_a_unique_idempotency_key() {
        let key = || Call::create(&["clusters"], Value::Null).idempotency_key.unwrap();
        assert_ne!(key(), key());
        assert_eq!(Call::get(&["clusters"]).idempotency_key, None);
    }
}
