//! ETags: which version of what was asked for a caller has seen.
//!
//! They count changes that users make, not the status that workers write: a change is refused
//! because somebody else made one, never because time went by.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};

use crate::Problem;

/// The header that names a generation.
pub(crate) fn etag(generation: i64) -> [(HeaderName, HeaderValue); 1] {
    let value = HeaderValue::from_str(&format!("\"{generation}\"")).expect("digits and quotes");
    [(header::ETAG, value)]
}

/// The generation that the caller wants to change, if it says so with `If-Match`.
pub(crate) struct IfMatch(Option<i64>);

impl IfMatch {
    /// Fails if it is no longer that one.
    pub(crate) fn check(&self, generation: i64) -> Result<(), Problem> {
        match self.0 {
            Some(seen) if seen != generation => Err(Problem::new(
                StatusCode::PRECONDITION_FAILED,
                format!(
                    "It was changed since you read it (ETag \"{generation}\", not \"{seen}\"); read it again."
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
        number.map(|seen| Self(Some(seen))).map_err(|_| {
            let detail = "If-Match must be an ETag that this server gave, such as \"3\".";
            Problem::new(StatusCode::BAD_REQUEST, detail)
        })
    }
}
