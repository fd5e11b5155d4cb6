//! Credentials of organizations for external systems.

use model::{Time, credential};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A credential, without its secret.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Credential {
    /// System: `consul`, `registry`, `terraform` or `vault`.
    pub system: String,
    /// Name: the host of a registry, the environment variable of Terraform, or `token`.
    pub name: String,
    /// User of a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Who set it last.
    pub updated_by: String,
    /// When it was set last.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Time,
}

impl From<credential::Credential> for Credential {
    fn from(credential: credential::Credential) -> Self {
        let credential::Credential { system, name, username, updated_by, updated_at, .. } =
            credential;
        Self { system: system.to_string(), name, username, updated_by, updated_at }
    }
}

/// Credentials of an organization.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CredentialList {
    /// Credentials, ordered by system and name.
    pub items: Vec<Credential>,
}

/// A new value of a credential.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetCredential {
    /// Secret: a token, a password, or the value of a variable. It is stored encrypted and never
    /// returned.
    pub secret: String,
    /// User of a registry; required there, not allowed otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
}

impl std::fmt::Debug for SetCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetCredential").field("username", &self.username).finish_non_exhaustive()
    }
}
