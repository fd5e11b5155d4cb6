//! Errors of the fleet API: a code of the catalogue and a reason.
//!
//! The code determines the HTTP status. [`super::wire::finish`] renders errors, because it knows
//! the kind and the operation ID.

mod catalogue;
mod number;

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use model::kind::{Kind, MultiAz};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::tenant::ApiKind;
use super::wire::{List, Paging, Params};
use crate::Problem;
use crate::problem::{Documented, default_response};

use catalogue::{CATALOGUE, INTERNAL, entry};

/// An error.
#[derive(Debug, Clone)]
pub(crate) struct Error {
    code: u16,
    reason: String,
}

/// An error response.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error)]
pub(crate) struct Envelope {
    /// Error code.
    id: String,
    /// Always `Error`.
    kind: &'static str,
    /// Path of the error's description.
    href: String,
    /// Error code with the kind's prefix: `KAFKAS-MGMT-7`.
    code: String,
    /// What is wrong and how to fix it.
    reason: String,
    /// Operation ID, as in the server's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<String>,
}

impl Error {
    /// Creates an error; an empty reason stands for the catalogue's.
    pub(crate) fn new(code: u16, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }

    /// 400: a parameter or the body cannot be parsed.
    pub(crate) fn unreadable(reason: impl Into<String>) -> Self {
        Self::new(17, reason)
    }

    /// 404: does not exist or is not visible to the caller.
    pub(crate) fn not_found(what: &str, id: &str) -> Self {
        let id: String = id.chars().take(64).collect();
        Self::new(7, format!("No {what} has the id '{}'.", id.escape_default()))
    }

    /// 404: no such path.
    pub(crate) fn path_not_found(path: &str) -> Self {
        let path: String = path.chars().take(200).collect();
        Self::new(7, format!("Path {} not found.", path.escape_default()))
    }

    /// Error for a response of the framework itself.
    pub(super) fn from_status(status: StatusCode) -> Self {
        match status {
            StatusCode::METHOD_NOT_ALLOWED => Self::new(10, "Method not allowed for this path."),
            StatusCode::NOT_FOUND => Self::new(7, "Path not found."),
            _ if status.is_server_error() => Self::new(INTERNAL, ""),
            _ => Self::unreadable("The request is malformed."),
        }
    }

    pub(super) fn is_unauthenticated(&self) -> bool {
        self.code == 15
    }

    pub(super) fn status(&self) -> StatusCode {
        let (_, status, _) = entry(self.code);
        StatusCode::from_u16(*status).expect("the catalogue has statuses of HTTP")
    }

    pub(super) fn envelope(&self, kind: &Kind, operation_id: Option<String>) -> Envelope {
        let (code, _, meaning) = entry(self.code);
        let reason =
            if self.reason.is_empty() { (*meaning).to_owned() } else { self.reason.clone() };
        Envelope {
            id: code.to_string(),
            kind: "Error",
            href: format!("/api/{}/v1/errors/{code}", kind.api),
            code: format!("{}-{code}", kind.error_prefix),
            reason,
            operation_id,
        }
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        use store::Error::{
            AlreadyExists, Conflict, Database, InsufficientCapacity, Invalid, Limit, NotFound,
            QuotaExceeded, Stale, Unavailable,
        };
        match &error {
            NotFound { kind, id } => Self::not_found(kind, id),
            AlreadyExists { field: "name" } => Self::new(36, ""),
            AlreadyExists { field } => {
                Self::new(6, format!("{field} is already in use; choose another."))
            }
            Conflict(_) | Stale { .. } => Self::new(21, capitalized(&error.to_string())),
            Invalid(_) => Self::new(8, capitalized(&error.to_string())),
            InsufficientCapacity { .. } => Self::new(24, ""),
            Limit { what, .. } => Self::new(limit_code(what), capitalized(&error.to_string())),
            QuotaExceeded(_) => Self::new(5, capitalized(&error.to_string())),
            Unavailable(cause) => {
                tracing::warn!(cause, "database unavailable");
                Self::new(INTERNAL, "The database is unavailable; try again.")
            }
            Database(cause) => {
                tracing::error!(cause, "database request failed");
                Self::new(INTERNAL, "")
            }
        }
    }
}

/// Error code of a limit, by the limited object.
fn limit_code(what: &str) -> u16 {
    if what.contains("service account") {
        return 115;
    }
    if what.contains("quota") { 5 } else { 24 }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        let code = match problem.status().as_u16() {
            401 => 15,
            403 => 4,
            404 => 7,
            405 => 10,
            409 => 6,
            429 => 429,
            status if status >= 500 => INTERNAL,
            _ => 17,
        };
        Self::new(code, problem.to_string())
    }
}

/// Capitalizes the text and adds a full stop.
pub(crate) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str().trim_end_matches('.'))
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl utoipa::IntoResponses for Error {
    fn responses() -> Documented {
        default_response("Error", "application/json")
    }
}

/// Errors that a kind's API can return.
fn errors_of(kind: &Kind) -> impl Iterator<Item = Envelope> {
    let has_multi_az = kind.offers.multi_az == MultiAz::Asked;
    let codes =
        CATALOGUE.iter().map(|(code, ..)| *code).filter(move |code| has_multi_az || *code != 35);
    codes.map(|code| Error::new(code, "").envelope(kind, None))
}

/// Path of an API.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path; the extractor of the kind reads it")]
pub(crate) struct ApiPath {
    /// API of a kind, such as `kafkas_mgmt`.
    api: String,
}

/// Path of an error.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ErrorPath {
    /// API of a kind, such as `kafkas_mgmt`.
    #[serde(rename = "api")]
    _api: String,
    /// Error code.
    id: String,
}

/// Lists the errors of this API.
#[utoipa::path(get, path = "/api/{api}/v1/errors", tag = "errors", params(ApiPath, Paging), security(()),
    responses((status = 200, body = List<Envelope>, description = "Errors by code"), Error))]
pub(crate) async fn error_list(
    ApiKind(kind): ApiKind,
    params: Params,
) -> Result<Answer<List<Envelope>>, Error> {
    let page = params.page()?;
    let all: Vec<Envelope> = errors_of(&kind).collect();
    Ok(Answer(List::part("ErrorList", all, &page)))
}

/// Returns an error of this API.
#[utoipa::path(get, path = "/api/{api}/v1/errors/{id}", tag = "errors", params(ErrorPath), security(()),
    responses((status = 200, body = Envelope, description = "The error"), Error))]
pub(crate) async fn error_get(
    ApiKind(kind): ApiKind,
    Path(path): Path<ErrorPath>,
) -> Result<Answer<Envelope>, Error> {
    let found = errors_of(&kind).find(|error| error.id == path.id);
    found.map(Answer).ok_or_else(|| Error::not_found("error", &path.id))
}
