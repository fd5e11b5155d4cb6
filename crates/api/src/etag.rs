//! ETags: optimistic concurrency control.
//!
//! ETags count spec changes by users, not status updates by workers: a request fails only because
//! of another user's change.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};

use crate::Problem;

/// Header with the generation as ETag.
pub(crate) fn etag(generation: i64) -> [(HeaderName, HeaderValue); 1] {
    let value = HeaderValue::from_str(&format!("\"{generation}\"")).expect("digits and quotes");
    [(header::ETAG, value)]
}

/// Generation expected by the caller, from `If-Match`.
pub(crate) struct IfMatch(Option<i64>);

impl IfMatch {
    /// Fails if the current generation differs.
    pub(crate) fn check(&self, generation: i64) -> Result<(), Problem> {
        match self.0 {
            Some(expected) if expected != generation => Err(Problem::new(
                StatusCode::PRECONDITION_FAILED,
                format!(
                    "The object has changed since it was read: its ETag is \"{generation}\", not \"{expected}\". Read it again."
                ),
            )),
            _ => Ok(()),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get(header::IF_MATCH) else { return Ok(Self(None)) };
        let text = value.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Ok(Self(None));
        }
        let number = text.trim_start_matches("W/").trim_matches('"').parse();
        number.map(|expected| Self(Some(expected))).map_err(|_| {
            let detail = "If-Match must be an ETag returned by this server, such as \"3\".";
            Problem::new(StatusCode::BAD_REQUEST, detail)
        })
    }
}
