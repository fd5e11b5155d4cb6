//! Errors: RFC 9457 problem documents.

use model::invalid::FieldError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::quota::QuotaExceeded;

/// A problem document (RFC 9457).
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the status identifies the kind of problem.
    #[serde(rename = "type")]
    pub kind: String,
    /// HTTP status text.
    pub title: String,
    /// HTTP status code.
    pub status: u16,
    /// What is wrong and how to fix it.
    pub detail: String,
    /// Invalid fields, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Field>,
    /// Quota that the request exceeds, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaExceeded>,
    /// Request ID, as in the server's log.
    pub request_id: String,
}

/// An invalid field.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = ProblemField)]
pub struct Field {
    /// Path of the field: `user.username`.
    pub field: String,
    /// What is wrong and what is allowed.
    pub detail: String,
}

impl From<FieldError> for Field {
    fn from(error: FieldError) -> Self {
        Self { field: error.field, detail: error.detail }
    }
}
