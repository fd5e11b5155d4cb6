//! Tokens: bearer credentials of users and service accounts.

use model::{Time, TokenId, UserId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a token may be used for. It never allows more than the role of its user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenScope {
    /// Whether the token only reads.
    #[serde(default)]
    pub read_only: bool,
    /// Kinds of subjects that the token reads and changes, such as `deployment`; empty for all.
    #[serde(default)]
    pub kinds: Vec<String>,
}

/// A token.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Unique identifier.
    #[schema(value_type = String)]
    pub id: TokenId,
    /// Kind: `session` (a login), `personal` or `service_account`.
    pub kind: String,
    /// Name; empty for logins.
    pub name: String,
    /// Scope.
    pub scope: TokenScope,
    /// User that the token acts for.
    #[schema(value_type = String)]
    pub user_id: UserId,
    /// Name of the service account that the token acts for, if any.
    pub service_account: Option<String>,
    /// Actor who created the token; empty for logins.
    pub created_by: String,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
    /// Expiry time.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Time,
    /// Time of the last use, with an accuracy of a minute.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_used_at: Option<Time>,
    /// Whether this request used the token.
    pub is_current: bool,
    /// The secret, for the `Authorization` header; only in the response to the creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl Token {
    /// Creates the view of `token` for a request that used the token `current`.
    pub fn new(token: model::token::Token, current: Option<TokenId>) -> Self {
        let kinds = token.scope.kinds.iter().map(ToString::to_string).collect();
        Self {
            is_current: current == Some(token.id),
            id: token.id,
            kind: token.kind.to_string(),
            name: token.name,
            scope: TokenScope { read_only: token.scope.read_only, kinds },
            user_id: token.user_id,
            service_account: token.service_account,
            created_by: token.created_by,
            created_at: token.created_at,
            expires_at: token.expires_at,
            last_used_at: token.last_used_at,
            token: None,
        }
    }
}

/// A token to create.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Name that tells the token from others.
    pub name: String,
    /// Lifetime in seconds; 90 days by default. The server limits it.
    pub expires_in: Option<i64>,
    /// Scope; everything by default.
    #[serde(default)]
    pub scope: TokenScope,
    /// Service account of the organization, by name. It is created if it does not exist. Allowed for
    /// owners.
    pub service_account: Option<String>,
    /// Role of the service account: `member` (default) or `viewer`.
    pub role: Option<String>,
}
