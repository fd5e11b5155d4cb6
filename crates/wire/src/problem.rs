//! Errors: RFC 9457 problem documents.

use model::invalid::FieldError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A problem document, as RFC 9457 has it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the status says what kind of problem it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What went wrong and what to do, as a sentence.
    pub detail: String,
    /// Which fields are at fault, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Field>,
    /// Names this request in the server's log.
    pub request_id: String,
}

/// A field that is at fault.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = ProblemField)]
pub struct Field {
    /// Where it is, as a path: `user.username`.
    pub field: String,
    /// What is wrong with it and what is allowed.
    pub detail: String,
}

impl From<FieldError> for Field {
    fn from(error: FieldError) -> Self {
        Self { field: error.field, detail: error.detail }
    }
}
