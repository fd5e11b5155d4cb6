//! Responses of an API server.

use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use axum::response::IntoResponse as _;
use serde_json::{Value, json};

/// A failed request.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: u16,
    reason: &'static str,
    message: String,
    retry_after: Option<u32>,
}

impl Failure {
    pub(super) fn new(code: u16, message: impl Into<String>) -> Self {
        let reason = match code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            405 => "MethodNotAllowed",
            409 => "Conflict",
            410 => "Expired",
            415 => "UnsupportedMediaType",
            422 => "Invalid",
            429 => "TooManyRequests",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "InternalError",
        };
        Self { code, reason, message: message.into(), retry_after: None }
    }

    pub(super) fn exists(message: impl Into<String>) -> Self {
        Self { reason: "AlreadyExists", ..Self::new(409, message) }
    }

    pub(super) fn busy(seconds: u32) -> Self {
        let message =
            "the server has received too many requests and has asked us to try again later";
        Self { retry_after: Some(seconds), ..Self::new(429, message) }
    }

    pub(super) fn body(&self) -> Value {
        let mut body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code});
        if let Some(seconds) = self.retry_after {
            body["details"] = json!({"retryAfterSeconds": seconds});
        }
        body
    }
}

impl From<Failure> for Response<Body> {
    fn from(failure: Failure) -> Self {
        let mut response = json_response(failure.code, &failure.body());
        if let Some(seconds) = failure.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// Result of a handler.
pub(super) type Answer = Result<Response<Body>, Failure>;

pub(super) fn json_response(code: u16, body: &Value) -> Response<Body> {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = [(header::CONTENT_TYPE, "application/json")];
    (status, json, body.to_string()).into_response()
}

#[expect(clippy::unnecessary_wraps, reason = "handlers return it")]
pub(super) fn ok(body: &Value) -> Answer {
    Ok(json_response(200, body))
}
