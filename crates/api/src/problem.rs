//! What went wrong, for the caller: RFC 9457 problem documents.
//!
//! A handler's error becomes a [`Problem`]; it is written out in one place, by the middleware in
//! `observe`, which also knows the request's id.

use std::collections::BTreeMap;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::Invalid;
use model::invalid::FieldError;
use model::yaml::Refused;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder, ResponsesBuilder};
use wire::problem::Problem as Document;

/// What went wrong.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    detail: String,
    errors: Vec<FieldError>,
    retry_after_secs: Option<u64>,
}

impl Problem {
    /// A problem of that status.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), errors: Vec::new(), retry_after_secs: None }
    }

    /// 400, about one field.
    pub(crate) fn field(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Invalid::new(field, detail).into()
    }

    /// 401: who are you?
    pub(crate) fn unauthenticated(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail)
    }

    /// 403: not you.
    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// 403, about one field.
    pub(crate) fn forbidden_field(field: impl Into<String>, detail: &str) -> Self {
        let field = FieldError { field: field.into(), detail: detail.into() };
        let sentence = format!("{}: {detail}.", field.field);
        Self { errors: vec![field], ..Self::forbidden(sentence) }
    }

    /// 404, about a thing that is not there, or not the caller's.
    pub(crate) fn not_found(kind: &str, id: &str) -> Self {
        let id: String = id.chars().take(64).collect();
        Self::new(StatusCode::NOT_FOUND, format!("There is no {kind} {id:?} here."))
    }

    /// 409: not as things are.
    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// 409: another one has that value already.
    pub(crate) fn taken(field: &str) -> Self {
        let detail = "is taken; choose another";
        let taken = FieldError { field: field.into(), detail: detail.into() };
        Self { errors: vec![taken], ..Self::conflict(format!("{field} {detail}.")) }
    }

    /// 429: not so fast.
    pub(crate) fn too_many(detail: impl Into<String>, retry_after_secs: u64) -> Self {
        let retry_after_secs = Some(retry_after_secs.max(1));
        Self { retry_after_secs, ..Self::new(StatusCode::TOO_MANY_REQUESTS, detail) }
    }

    /// 503: somebody who is needed does not answer.
    pub(crate) fn unavailable(detail: impl Into<String>) -> Self {
        Self { retry_after_secs: Some(1), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn is_unauthenticated(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }

    pub(crate) fn document(&self, request_id: &str) -> Document {
        Document {
            kind: "about:blank".into(),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            detail: self.detail.clone(),
            errors: self.errors.iter().cloned().map(Into::into).collect(),
            request_id: request_id.to_owned(),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.detail)
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        let detail = match invalid.0.as_slice() {
            [one] => format!("{}: {}.", one.field, one.detail),
            many => format!("{} fields are not valid.", many.len()),
        };
        Self { errors: invalid.0, ..Self::new(StatusCode::BAD_REQUEST, detail) }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let detail = format!("{refused}.");
        // The reason begins with the field, if it is the fault of one.
        let (field, why) = match refused.reason.split_once(": ") {
            Some((field, why)) if !field.contains(' ') => (field.to_owned(), why),
            _ => (refused.file, refused.reason.as_str()),
        };
        let why = match refused.line {
            Some(line) => format!("line {line}: {why}"),
            None => why.to_owned(),
        };
        let at_fault = FieldError { field, detail: why };
        Self { errors: vec![at_fault], ..Self::new(StatusCode::BAD_REQUEST, detail) }
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        use store::Error::{
            Broken, Conflict, Invalid, Limit, NotFound, Short, Stale, Taken, Unavailable,
        };
        match error {
            NotFound { kind, id } => Self::not_found(kind, &id),
            Stale { .. } => {
                Self::new(StatusCode::PRECONDITION_FAILED, sentence(&error.to_string()))
            }
            Taken { field } => Self::taken(field),
            Conflict(detail) => Self::conflict(sentence(&detail)),
            Short { missing } => {
                Self::conflict(format!("Not possible: {missing} too much. Nothing was changed."))
            }
            Limit { limit, what } => Self::conflict(format!(
                "The limit of {limit} {what} is reached; delete some, or ask the platform administrator to raise it."
            )),
            Invalid(invalid) => invalid.into(),
            Unavailable(cause) => {
                tracing::warn!(cause, "the store is not available");
                Self::unavailable("The database does not answer right now; try again in a moment.")
            }
            Broken(cause) => {
                tracing::error!(cause, "the store failed");
                Self::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "Something is wrong on our side; it has been logged.",
                )
            }
        }
    }
}

/// The same, with a capital at its start and a full stop at its end.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if let Some(secs) = self.retry_after_secs {
            response.headers_mut().insert(header::RETRY_AFTER, secs.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let offer =
                HeaderValue::from_static("Bearer realm=\"paddock\", Basic realm=\"paddock\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, offer);
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl utoipa::IntoResponses for Problem {
    fn responses() -> Documented {
        default_response("Problem", "application/problem+json")
    }
}

/// Responses as OpenAPI documents have them, by status.
pub(crate) type Documented = BTreeMap<String, RefOr<utoipa::openapi::Response>>;

/// Documents the answer to any failure.
pub(crate) fn default_response(schema: &str, content_type: &str) -> Documented {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).build();
    let response = ResponseBuilder::new()
        .description("What went wrong, and what to do about it.")
        .content(content_type, content);
    ResponsesBuilder::new().response("default", response).build().responses
}
