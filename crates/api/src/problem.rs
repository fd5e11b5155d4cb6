//! Errors for the caller: RFC 9457 problem documents.
//!
//! Handlers return a [`Problem`]; the middleware in `observe` renders it, because it knows the
//! request ID.

use std::collections::BTreeMap;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::Invalid;
use model::invalid::FieldError;
use model::organization::quota::Exceeded;
use model::yaml::FileError;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder, ResponsesBuilder};
use wire::problem::Problem as Document;
use wire::quota::QuotaExceeded;

/// An error response.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    detail: String,
    errors: Vec<FieldError>,
    quota: Option<Box<QuotaExceeded>>,
    retry_after_secs: Option<u64>,
}

impl Problem {
    /// Creates a problem with a status.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { status, detail, errors: Vec::new(), quota: None, retry_after_secs: None }
    }

    /// 400: an invalid field.
    pub(crate) fn field(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Invalid::new(field, detail).into()
    }

    /// 401: not authenticated.
    pub(crate) fn unauthenticated(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail)
    }

    /// 403: not permitted.
    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// 403: a field that the caller may not set.
    pub(crate) fn forbidden_field(field: impl Into<String>, detail: &str) -> Self {
        let field = FieldError { field: field.into(), detail: detail.into() };
        let detail_text = format!("{}: {detail}.", field.field);
        Self { errors: vec![field], ..Self::forbidden(detail_text) }
    }

    /// 404: does not exist or is not visible to the caller.
    pub(crate) fn not_found(kind: &str, id: &str) -> Self {
        let id: String = id.chars().take(64).collect();
        Self::new(StatusCode::NOT_FOUND, capitalized(&format!("{kind} {id:?} not found")))
    }

    /// 409: not possible in the current state.
    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// 409: the value is already in use.
    pub(crate) fn taken(field: &str) -> Self {
        let detail = "is already in use; choose another";
        let taken = FieldError { field: field.into(), detail: detail.into() };
        Self { errors: vec![taken], ..Self::conflict(format!("{field} {detail}.")) }
    }

    /// 409: a quota of the organization would be exceeded.
    fn quota(exceeded: Exceeded) -> Self {
        let detail = format!(
            "{} Nothing was changed; {}, or ask the platform administrator to raise the quota.",
            capitalized(&exceeded.to_string()),
            exceeded.kind.remedy()
        );
        Self { quota: Some(Box::new(exceeded.into())), ..Self::conflict(detail) }
    }

    /// 429: too many requests.
    pub(crate) fn too_many(detail: impl Into<String>, retry_after_secs: u64) -> Self {
        let retry_after_secs = Some(retry_after_secs.max(1));
        Self { retry_after_secs, ..Self::new(StatusCode::TOO_MANY_REQUESTS, detail) }
    }

    /// 503: a dependency is unavailable.
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
            quota: self.quota.as_deref().cloned(),
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
            [error] => format!("{}: {}.", error.field, error.detail),
            many => format!("{} fields are invalid.", many.len()),
        };
        Self { errors: invalid.0, ..Self::new(StatusCode::BAD_REQUEST, detail) }
    }
}

impl From<FileError> for Problem {
    fn from(refused: FileError) -> Self {
        let detail = format!("{refused}.");
        // The reason starts with the field name if a field is invalid.
        let (field, why) = match refused.reason.split_once(": ") {
            Some((field, why)) if !field.contains(' ') => (field.to_owned(), why),
            _ => (refused.file, refused.reason.as_str()),
        };
        let why = match refused.line {
            Some(line) => format!("line {line}: {why}"),
            None => why.to_owned(),
        };
        let invalid = FieldError { field, detail: why };
        Self { errors: vec![invalid], ..Self::new(StatusCode::BAD_REQUEST, detail) }
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        use store::Error::{
            AlreadyExists, Conflict, Database, InsufficientCapacity, Invalid, Limit, NotFound,
            QuotaExceeded, Stale, Unavailable,
        };
        match error {
            NotFound { kind, id } => Self::not_found(kind, &id),
            Stale { .. } => {
                Self::new(StatusCode::PRECONDITION_FAILED, capitalized(&error.to_string()))
            }
            AlreadyExists { field } => Self::taken(field),
            Conflict(detail) => Self::conflict(capitalized(&detail)),
            InsufficientCapacity { missing } => Self::conflict(format!(
                "Insufficient capacity: the request exceeds the available amount by {missing}. \
                 Nothing was changed."
            )),
            Limit { limit, what } => Self::conflict(format!(
                "The limit of {limit} {what} is reached; delete some, or ask the platform administrator to raise it."
            )),
            QuotaExceeded(exceeded) => Self::quota(*exceeded),
            Invalid(invalid) => invalid.into(),
            Unavailable(cause) => {
                tracing::warn!(cause, "database unavailable");
                Self::unavailable("The database is unavailable; try again.")
            }
            Database(cause) => {
                tracing::error!(cause, "database request failed");
                Self::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "Internal error; details are in the server log.",
                )
            }
        }
    }
}

/// Capitalizes the text and adds a full stop.
fn capitalized(text: &str) -> String {
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

/// OpenAPI responses by status.
pub(crate) type Documented = BTreeMap<String, RefOr<utoipa::openapi::Response>>;

/// Documents the response to any failure.
pub(crate) fn default_response(schema: &str, content_type: &str) -> Documented {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).build();
    let response = ResponseBuilder::new()
        .description("Error: what is wrong and how to fix it.")
        .content(content_type, content);
    ResponsesBuilder::new().response("default", response).build().responses
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn snapshot_of_every_problem_is_current() {
        use store::Error::{
            AlreadyExists, Conflict, Database, InsufficientCapacity, Invalid, Limit, NotFound,
            QuotaExceeded, Stale, Unavailable,
        };
        let invalid = || model::Invalid::new("resources.cpu", "must not be negative");
        let mut two = invalid();
        two.0.extend(model::Invalid::new("name", "must not be empty").0);
        let missing = [("cpu".to_owned(), "1.5".parse().unwrap())].into_iter().collect();
        let exceeded = Exceeded {
            kind: "cpu".parse().unwrap(),
            used: "7".parse().unwrap(),
            requested: "2".parse().unwrap(),
            limit: "8".parse().unwrap(),
        };
        let errors = testing::every_variant!(store::Error {
            NotFound { .. } => [store::Error::not_found("cluster", "prod")],
            Stale { .. } => [Stale { seen: 2, now: 3 }],
            AlreadyExists { .. } => [AlreadyExists { field: "name" }],
            Conflict(_) => [Conflict("cluster prod is ready; only a failed cluster can be retried".into())],
            InsufficientCapacity { .. } => [InsufficientCapacity { missing }],
            Limit { .. } => [Limit { limit: 1000, what: "deployments per organization" }],
            QuotaExceeded(_) => [QuotaExceeded(Box::new(exceeded))],
            Invalid(_) => [Invalid(invalid()), Invalid(two)],
            Unavailable(_) => [Unavailable("connection refused".into())],
            Database(_) => [Database("no such table".into())],
        });
        let refused =
            |reason: &str, line| FileError { line, ..FileError::new("template.yaml", reason) };
        let own = [
            Problem::unauthenticated("Invalid username or password."),
            Problem::forbidden("Only an owner of the organization may do this."),
            Problem::forbidden_field("shared", "only the platform administrator may set it"),
            Problem::too_many("Too many failed login attempts; try again in 7 s.", 7),
            refused("resources[0].executor: must be one of deployment, service", Some(7)).into(),
            refused("not valid YAML", None).into(),
        ];
        let mut text = String::from(
            "Problem documents (RFC 9457) of the API: status and title, detail, and invalid fields.\n",
        );
        for problem in errors.into_iter().map(Problem::from).chain(own) {
            let document = problem.document("r1");
            write!(text, "\n{} {}\n  {}\n", document.status, document.title, document.detail)
                .unwrap();
            for field in document.errors {
                writeln!(text, "  - {}: {}", field.field, field.detail).unwrap();
            }
        }
        testing::assert_snapshot("problems.txt", &text);
    }
}
