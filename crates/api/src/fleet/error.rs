//! What went wrong, as fleet managers say it: a number of their catalogue, and a reason.
//!
//! The HTTP status follows from the number. An error is written out in one place, [`super::wire::finish`],
//! which knows the kind and the operation's id.

mod catalogue;
mod number;

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use model::kind::{Kind, MultiAz};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::tenant::Of;
use super::wire::{List, Paging, Params};
use crate::Problem;
use crate::problem::{Documented, default_response};

use catalogue::{CATALOGUE, INTERNAL, entry};

/// What went wrong.
#[derive(Debug, Clone)]
pub(crate) struct Error {
    code: u16,
    reason: String,
}

/// An error on the wire.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error)]
pub(crate) struct Envelope {
    /// Its number.
    id: String,
    /// Always `Error`.
    kind: &'static str,
    /// Where it is explained.
    href: String,
    /// The number, with the kind's prefix: `KAFKAS-MGMT-7`.
    code: String,
    /// What went wrong and what to do, as a sentence.
    reason: String,
    /// Names this request in the server's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<String>,
}

impl Error {
    /// The error of that number; its reason is the catalogue's when none is given.
    pub(crate) fn new(code: u16, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }

    /// 400: a parameter or the body can't be read.
    pub(crate) fn unreadable(reason: impl Into<String>) -> Self {
        Self::new(17, reason)
    }

    /// 404: there is no such thing, or it is somebody else's.
    pub(crate) fn not_found(what: &str, id: &str) -> Self {
        let id: String = id.chars().take(64).collect();
        Self::new(7, format!("There is no {what} with the id '{}'.", id.escape_default()))
    }

    /// 404: there is nothing at this path.
    pub(crate) fn nothing_here(path: &str) -> Self {
        let path: String = path.chars().take(200).collect();
        Self::new(7, format!("There is nothing at {}.", path.escape_default()))
    }

    /// What the framework itself refuses.
    pub(super) fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::METHOD_NOT_ALLOWED => Self::new(10, "This path does not take this method."),
            StatusCode::NOT_FOUND => Self::new(7, "There is nothing at this path."),
            _ if status.is_server_error() => Self::new(INTERNAL, ""),
            _ => Self::unreadable("The request can't be read."),
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
            Broken, Conflict, Invalid, Limit, NotFound, Short, Stale, Taken, Unavailable,
        };
        match &error {
            NotFound { kind, id } => Self::not_found(kind, id),
            Taken { field: "name" } => Self::new(36, ""),
            Taken { field } => Self::new(6, format!("{field} is taken; choose another.")),
            Conflict(_) | Stale { .. } => Self::new(21, sentence(&error.to_string())),
            Invalid(_) => Self::new(8, sentence(&error.to_string())),
            Short { .. } => Self::new(24, ""),
            Limit { what, .. } => Self::new(code_of_limit(what), sentence(&error.to_string())),
            Unavailable(cause) => {
                tracing::warn!(cause, "the store is not available");
                Self::new(
                    INTERNAL,
                    "The database does not answer right now; try again in a moment.",
                )
            }
            Broken(cause) => {
                tracing::error!(cause, "the store failed");
                Self::new(INTERNAL, "")
            }
        }
    }
}

/// The number for a limit, by what it limits.
fn code_of_limit(what: &str) -> u16 {
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

/// The same, with a capital at its start and a full stop at its end.
pub(crate) fn sentence(text: &str) -> String {
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

/// The errors that a kind's API can answer with.
fn known(kind: &Kind) -> impl Iterator<Item = Envelope> {
    let is_asked = kind.offers.multi_az == MultiAz::Asked;
    let codes =
        CATALOGUE.iter().map(|(code, ..)| *code).filter(move |code| is_asked || *code != 35);
    codes.map(|code| Error::new(code, "").envelope(kind, None))
}

/// Which API.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path; the extractor of the kind reads it")]
pub(crate) struct ApiPath {
    /// The API of a kind, such as `kafkas_mgmt`.
    api: String,
}

/// Which error of which API.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ErrorPath {
    /// The API of a kind, such as `kafkas_mgmt`.
    #[serde(rename = "api")]
    _api: String,
    /// The number of the error.
    id: String,
}

/// Lists the errors that this API can answer with.
#[utoipa::path(get, path = "/api/{api}/v1/errors", tag = "errors", params(ApiPath, Paging), security(()),
    responses((status = 200, body = List<Envelope>, description = "The errors by number"), Error))]
pub(crate) async fn error_list(
    Of(kind): Of,
    params: Params,
) -> Result<Answer<List<Envelope>>, Error> {
    let page = params.page()?;
    let all: Vec<Envelope> = known(&kind).collect();
    Ok(Answer(List::part("ErrorList", all, &page)))
}

/// One error that this API can answer with.
#[utoipa::path(get, path = "/api/{api}/v1/errors/{id}", tag = "errors", params(ErrorPath), security(()),
    responses((status = 200, body = Envelope, description = "The error"), Error))]
pub(crate) async fn error_get(
    Of(kind): Of,
    Path(path): Path<ErrorPath>,
) -> Result<Answer<Envelope>, Error> {
    let found = known(&kind).find(|error| error.id == path.id);
    found.map(Answer).ok_or_else(|| Error::not_found("error", &path.id))
}
