//! Password resets.

use model::{Time, UserId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A password reset.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct PasswordReset {
    /// User whose password was reset.
    #[schema(value_type = String)]
    pub user_id: UserId,
    /// Username.
    pub username: String,
    /// Single-use code with which the user sets a new password. Returned only once.
    pub code: String,
    /// Expiry time of the code.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Time,
}

/// Redemption of a password reset.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordRedemption {
    /// Code of the reset.
    pub code: String,
    /// New password of at least the configured minimum length.
    pub password: String,
}
