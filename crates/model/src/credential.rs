//! Credentials that an organization registers for external systems, instead of the platform's.
//!
//! Their secrets are stored encrypted and are never returned.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::invalid::Invalid;
use crate::text_enum::text_enum;
use crate::{OrganizationId, Time, name};

/// The maximum number of credentials of an organization.
pub const MAX_CREDENTIALS: i64 = 100;
/// The name of the only credential of Consul and of Vault.
pub const TOKEN: &str = "token";
/// The maximum length of a secret, in bytes.
const MAX_SECRET_BYTES: usize = 16 << 10;

/// Clouds and services whose variables Terraform may receive.
const PREFIXES: [&str; 15] = [
    "ARM_",
    "AWS_",
    "AZURE_",
    "CLOUDFLARE_",
    "DATADOG_",
    "DIGITALOCEAN_",
    "GITHUB_",
    "GITLAB_",
    "GOOGLE_",
    "HCLOUD_",
    "LINODE_",
    "OVH_",
    "SCW_",
    "TF_TOKEN_",
    "TF_VAR_",
];
/// Endings of variables that hold a value, not the name of a file or a program on the server.
const SUFFIXES: [&str; 11] = [
    "_ACCESS_KEY",
    "_APPLICATION_KEY",
    "_ID",
    "_KEY",
    "_PASSWORD",
    "_PROJECT",
    "_REGION",
    "_SECRET",
    "_TOKEN",
    "_USER",
    "_USERNAME",
];

/// The system of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum System {
    /// A token of Consul.
    Consul,
    /// An image registry: its host, a user and a password.
    Registry,
    /// An environment variable of Terraform.
    Terraform,
    /// A token of Vault.
    Vault,
}

text_enum!(System {
    Consul => "consul",
    Registry => "registry",
    Terraform => "terraform",
    Vault => "vault",
});

impl System {
    /// Validates the name of a credential of this system, and returns it in its stored form.
    pub fn check_name(self, text: &str) -> Result<String, Invalid> {
        match self {
            System::Consul | System::Vault if text == TOKEN => Ok(text.to_owned()),
            System::Consul | System::Vault => {
                Err(Invalid::new("name", format!("must be {TOKEN}, not {text:?}")))
            }
            System::Registry => registry_host(text),
            System::Terraform => variable(text),
        }
    }
}

/// A registry as images name it: `HOST` or `HOST:PORT`.
fn registry_host(text: &str) -> Result<String, Invalid> {
    let host = text.to_ascii_lowercase();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    if host.is_empty() || host.len() > 255 || !host.chars().all(is_plain) {
        let rule = "must be the host of a registry as images name it, such as registry.example.com \
                    or registry.example.com:5000";
        return Err(Invalid::new("name", rule));
    }
    // What image references without a host mean.
    let is_hub = matches!(&*host, "index.docker.io" | "registry-1.docker.io");
    Ok(if is_hub { "docker.io".to_owned() } else { host })
}

/// An environment variable that can't change what the server executes or reads.
fn variable(text: &str) -> Result<String, Invalid> {
    let is_plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let is_variable = PREFIXES.iter().any(|prefix| {
        // Names of providers' hosts and of variables are free.
        let is_free = matches!(*prefix, "TF_TOKEN_" | "TF_VAR_");
        let rest = text.strip_prefix(prefix).unwrap_or_default();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if is_free {
            !rest.is_empty() && rest.chars().all(is_name)
        } else {
            !rest.is_empty()
                && text.chars().all(is_plain)
                && SUFFIXES.iter().any(|suffix| text.ends_with(suffix))
        }
    });
    if is_variable && text.len() <= 128 {
        return Ok(text.to_owned());
    }
    let rule = "must be a variable with the credentials of a provider, such as AWS_ACCESS_KEY_ID, \
                GOOGLE_OAUTH_ACCESS_TOKEN, ARM_CLIENT_SECRET or TF_VAR_password; variables that name \
                files or programs are not allowed";
    Err(Invalid::new("name", rule))
}

/// Validates a secret.
pub fn check_secret(text: &str) -> Result<(), Invalid> {
    if text.is_empty() || text.len() > MAX_SECRET_BYTES || text.contains('\0') {
        let rule = format!("must have 1 to {MAX_SECRET_BYTES} bytes");
        return Err(Invalid::new("secret", rule));
    }
    Ok(())
}

/// Validates the user of a credential: required for registries, and only there.
pub fn check_username(system: System, username: Option<&str>) -> Result<Option<String>, Invalid> {
    match (system, username) {
        (System::Registry, Some(username)) if !username.contains(':') => {
            name::line("username", username, 255).map(Some)
        }
        (System::Registry, Some(_)) => Err(Invalid::new("username", "must not contain a colon")),
        (System::Registry, None) => Err(Invalid::new("username", "is required for a registry")),
        (_, None) => Ok(None),
        (_, Some(_)) => Err(Invalid::new("username", "is allowed for a registry only")),
    }
}

/// A credential of an organization, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Credential {
    /// Its organization.
    pub organization_id: OrganizationId,
    /// Its system.
    pub system: System,
    /// Its name: the host of a registry, a variable, or `token`.
    pub name: String,
    /// The user of a registry.
    pub username: Option<String>,
    /// Who set it last.
    pub updated_by: String,
    /// When it was set last.
    pub updated_at: Time,
}

/// The encryption context of a credential.
pub fn purpose(organization: OrganizationId, system: System, name: &str) -> String {
    format!("organization/{organization}/credential/{system}/{name}")
}

/// Credentials of one registry, sent to the agent that pulls an image from it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullCredentials {
    /// The registry's host, as images name it.
    pub registry: String,
    /// The user.
    pub username: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for PullCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PullCredentials({}, {}, •••)", self.registry, self.username)
    }
}

/// The registry of an image, as credentials name it: the part before the first slash, if it is a
/// host, else Docker Hub.
pub fn registry_of(image: &str) -> String {
    let host = image.split_once('/').map(|(host, _)| host).filter(|host| {
        host.contains(['.', ':']) || *host == "localhost" || host.chars().any(char::is_uppercase)
    });
    host.and_then(|host| registry_host(host).ok()).unwrap_or_else(|| "docker.io".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_by_system() {
        for (system, name, stored) in [
            (System::Consul, "token", Some("token")),
            (System::Vault, "root", None),
            (System::Registry, "Registry.example:5000", Some("registry.example:5000")),
            (System::Registry, "index.docker.io", Some("docker.io")),
            (System::Registry, "https://registry.example", None),
            (System::Registry, "registry.example/team", None),
            (System::Registry, "", None),
            (System::Terraform, "AWS_ACCESS_KEY_ID", Some("AWS_ACCESS_KEY_ID")),
            (System::Terraform, "AWS_SECRET_ACCESS_KEY", Some("AWS_SECRET_ACCESS_KEY")),
            (System::Terraform, "TF_VAR_db_password", Some("TF_VAR_db_password")),
            (System::Terraform, "TF_TOKEN_app_terraform_io", Some("TF_TOKEN_app_terraform_io")),
            (System::Terraform, "AWS_CONFIG_FILE", None),
            (System::Terraform, "AWS_SHARED_CREDENTIALS_FILE", None),
            (System::Terraform, "AWS_PROFILE", None),
            (System::Terraform, "GOOGLE_APPLICATION_CREDENTIALS", None),
            (System::Terraform, "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES", None),
            (System::Terraform, "LD_PRELOAD", None),
            (System::Terraform, "PATH", None),
            (System::Terraform, "TF_CLI_ARGS", None),
            (System::Terraform, "TF_CLI_CONFIG_FILE", None),
            (System::Terraform, "TF_VAR_", None),
            (System::Terraform, "GIT_SSH_COMMAND", None),
            (System::Terraform, "AWS_=_TOKEN", None),
        ] {
            assert_eq!(system.check_name(name).ok().as_deref(), stored, "{system} {name}");
        }
    }

    #[test]
    fn registry_of_an_image_is_its_host_or_docker_hub() {
        for (image, registry) in [
            ("registry.example/team/web:1", "registry.example"),
            ("127.0.0.1:5000/web@sha256:00", "127.0.0.1:5000"),
            ("team/web", "docker.io"),
            ("web", "docker.io"),
            ("docker.io/library/web", "docker.io"),
            ("index.docker.io/library/web", "docker.io"),
        ] {
            assert_eq!(registry_of(image), registry, "{image}");
        }
    }

    #[test]
    fn pull_credentials_are_not_shown() {
        let (registry, username, password) = ("r".into(), "u".into(), "s3cret".into());
        let shown = format!("{:?}", PullCredentials { registry, username, password });
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
