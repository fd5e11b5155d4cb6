//! The configuration (`with`) of each executor, after evaluation of expressions.

mod check;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Executor;
use crate::Invalid;

/// A Terraform module.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terraform {
    /// The directory of the module within the template's files: `./network`.
    pub source: String,
    /// The module's variables.
    #[serde(default)]
    pub variables: Map<String, Value>,
    /// The timeout of one run, in seconds.
    #[serde(default)]
    pub timeout_seconds: Option<u32>,
}

/// Keys and values in Consul.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsulKv {
    /// The prefix of every key: `shop/`. Owned by this resource alone.
    pub prefix: String,
    /// Keys below the prefix, and their values. Values other than strings are written as JSON.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// The datacenter; that of the agent by default.
    #[serde(default)]
    pub datacenter: Option<String>,
}

/// Secrets and certificates in Vault.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultSecret {
    /// The path below the mount: `shop/db`.
    pub path: String,
    /// The mount of the KV engine; `secret` by default.
    #[serde(default)]
    pub mount: Option<String>,
    /// Values that are generated once and never leave Vault.
    #[serde(default)]
    pub generate: BTreeMap<String, Generate>,
    /// Non-secret values, such as a user name.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// A certificate that Vault issues; stored with its key at the path.
    #[serde(default)]
    pub certificate: Option<Certificate>,
}

/// A value to generate.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generate {
    /// The number of characters; 32 by default.
    #[serde(default = "default_length")]
    pub length: u32,
    /// The allowed characters; letters and digits by default.
    #[serde(default)]
    pub alphabet: Option<String>,
}

fn default_length() -> u32 {
    32
}

/// A certificate to issue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// The mount of the PKI engine; `pki` by default.
    #[serde(default)]
    pub mount: Option<String>,
    /// The role of the PKI engine.
    pub role: String,
    /// The common name: a host name.
    pub common_name: String,
    /// Subject alternative fields.
    #[serde(default)]
    pub alt_names: Vec<String>,
    /// The time to live, in seconds; that of the role by default.
    #[serde(default)]
    pub ttl_seconds: Option<u64>,
}

/// An instance of a managed service.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// The kind, by its name in the catalog.
    pub kind: String,
    /// The name; derived from the environment and the resource by default.
    #[serde(default)]
    pub name: Option<String>,
    /// The type, in its smallest size; chosen by quota if neither this nor `plan` is given.
    #[serde(default)]
    pub instance_type: Option<String>,
    /// The type and size: `standard.x1`.
    #[serde(default)]
    pub plan: Option<String>,
    /// The cloud provider.
    #[serde(default)]
    pub cloud_provider: Option<String>,
    /// The region.
    #[serde(default)]
    pub region: Option<String>,
    /// The billing model.
    #[serde(default)]
    pub billing_model: Option<String>,
}

/// A deployment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deployment {
    /// The name; derived from the environment and the resource by default.
    #[serde(default)]
    pub name: Option<String>,
    /// The image; without one the deployment only reserves capacity.
    #[serde(default)]
    pub image: Option<String>,
    /// The CPU request.
    #[serde(default)]
    pub cpu: Option<Value>,
    /// The memory request.
    #[serde(default)]
    pub ram: Option<Value>,
    /// Requests for other resource types.
    #[serde(default)]
    pub resources: BTreeMap<String, Value>,
    /// The scheduling priority; higher values are placed first.
    #[serde(default)]
    pub priority: i64,
    /// The number of replicas.
    #[serde(default)]
    pub replicas: Option<u32>,
    /// Environment variables. Values other than strings are written as JSON.
    #[serde(default)]
    pub env: BTreeMap<String, Value>,
    /// The command; that of the image by default.
    #[serde(default)]
    pub command: Vec<String>,
    /// The container ports.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// The required cluster, by name or id.
    #[serde(default)]
    pub cluster: Option<String>,
    /// User-defined labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// A container or an HTTP call that must succeed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The name.
    #[serde(default)]
    pub name: Option<String>,
    /// An image to run, or a URL (`http://…`, `https://…`) to call.
    pub url: String,
    /// The command; that of the image by default.
    #[serde(default)]
    pub command: Vec<String>,
    /// The container's environment variables. Values other than strings are written as JSON.
    #[serde(default)]
    pub env: BTreeMap<String, Value>,
    /// The CPU request of the container; 100m by default.
    #[serde(default)]
    pub cpu: Option<Value>,
    /// The memory request of the container; 64Mi by default.
    #[serde(default)]
    pub ram: Option<Value>,
    /// The required cluster, by name or id.
    #[serde(default)]
    pub cluster: Option<String>,
    /// The HTTP method; POST by default.
    #[serde(default)]
    pub method: Option<String>,
    /// The request body, sent as JSON.
    #[serde(default)]
    pub body: Option<Value>,
    /// The timeout, in seconds; 600 by default.
    #[serde(default)]
    pub timeout_seconds: Option<u32>,
}

impl Command {
    /// Is it an HTTP call?
    pub fn is_call(&self) -> bool {
        self.url.starts_with("http://") || self.url.starts_with("https://")
    }
}

/// Deserialises `with` as an executor's configuration. Errors name fields as `with.…`.
pub fn read<T: DeserializeOwned>(with: &Map<String, Value>) -> Result<T, Invalid> {
    serde_path_to_error::deserialize(Value::Object(with.clone())).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { "with".to_owned() } else { format!("with.{path}") };
        Invalid::new(field, error.into_inner().to_string())
    })
}

/// Validates the configuration of an executor.
pub fn check(executor: Executor, with: &Map<String, Value>) -> Result<(), Invalid> {
    match executor {
        Executor::Terraform => check::terraform(&read(with)?),
        Executor::ConsulKv => check::consul_kv(&read(with)?),
        Executor::VaultSecret => check::vault_secret(&read(with)?),
        Executor::Service => check::service(&read(with)?),
        Executor::Deployment => check::deployment(&read(with)?),
        Executor::Command => check::command(&read(with)?),
    }
    .map_err(|invalid| invalid.within("with"))
}

/// Checks for unknown and missing fields in `with`. Possible before expressions are evaluated.
pub(super) fn check_fields(executor: Executor, with: &Map<String, Value>) -> Result<(), Invalid> {
    let (required, optional) = fields(executor);
    let is_known = |name: &str| required.contains(&name) || optional.contains(&name);
    if let Some(name) = with.keys().find(|name| !is_known(name)) {
        let all = [required, optional].concat().join(", ");
        let detail = format!("unknown field for executor {executor}; expected one of {all}");
        return Err(Invalid::new(format!("with.{name}"), detail));
    }
    match required.iter().find(|name| !with.contains_key(**name)) {
        Some(name) => Err(Invalid::new("with", format!("executor {executor} requires {name}"))),
        None => Ok(()),
    }
}

/// The required and the optional fields of an executor.
fn fields(executor: Executor) -> (&'static [&'static str], &'static [&'static str]) {
    match executor {
        Executor::Terraform => (&["source"], &["variables", "timeout_seconds"]),
        Executor::ConsulKv => (&["prefix"], &["values", "datacenter"]),
        Executor::VaultSecret => (&["path"], &["mount", "generate", "values", "certificate"]),
        Executor::Service => (
            &["kind"],
            &["name", "instance_type", "plan", "cloud_provider", "region", "billing_model"],
        ),
        Executor::Deployment => (
            &[],
            &[
                "name",
                "image",
                "cpu",
                "ram",
                "resources",
                "priority",
                "replicas",
                "env",
                "command",
                "ports",
                "cluster",
                "labels",
            ],
        ),
        Executor::Command => (
            &["url"],
            &[
                "name",
                "command",
                "env",
                "cpu",
                "ram",
                "cluster",
                "method",
                "body",
                "timeout_seconds",
            ],
        ),
    }
}
