//! What each executor is told: the shapes of `with`, once expressions have become values.

mod check;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Executor;
use crate::Invalid;

/// A module of Terraform.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terraform {
    /// The folder of the module among the template's files: `./network`.
    pub source: String,
    /// The module's variables.
    #[serde(default)]
    pub variables: Map<String, Value>,
    /// How long one run may take, in seconds.
    #[serde(default)]
    pub timeout_seconds: Option<u32>,
}

/// Keys and values in Consul.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsulKv {
    /// What every key begins with: `shop/`. It belongs to this resource alone.
    pub prefix: String,
    /// Keys below the prefix, and their values. What is no text is written as JSON.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// The datacenter, if not that of the agent.
    #[serde(default)]
    pub datacenter: Option<String>,
}

/// Secrets and certificates in Vault.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultSecret {
    /// Where it is kept, below the mount: `shop/db`.
    pub path: String,
    /// The mount of the KV engine; `secret` if none is named.
    #[serde(default)]
    pub mount: Option<String>,
    /// Values that are made once and never leave Vault.
    #[serde(default)]
    pub generate: BTreeMap<String, Generate>,
    /// Values that are no secret: a user name, for example.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// A certificate that Vault issues and keeps with its key at the path.
    #[serde(default)]
    pub certificate: Option<Certificate>,
}

/// A value to make.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generate {
    /// How many characters; 32 if nothing is said.
    #[serde(default = "thirty_two")]
    pub length: u32,
    /// Which characters; letters and digits if nothing is said.
    #[serde(default)]
    pub alphabet: Option<String>,
}

fn thirty_two() -> u32 {
    32
}

/// A certificate to have issued.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// The mount of the PKI engine; `pki` if none is named.
    #[serde(default)]
    pub mount: Option<String>,
    /// The role there.
    pub role: String,
    /// Whose certificate it is: a host name.
    pub common_name: String,
    /// Other host names.
    #[serde(default)]
    pub alt_names: Vec<String>,
    /// How long it is good, in seconds; as the role says if nothing is said.
    #[serde(default)]
    pub ttl_seconds: Option<u64>,
}

/// An instance of a managed service.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// The kind, as the catalog calls it.
    pub kind: String,
    /// Its name; made from those of the environment and the resource if none is given.
    #[serde(default)]
    pub name: Option<String>,
    /// Its type, in its smallest size; as quota allows if neither this nor a plan is given.
    #[serde(default)]
    pub instance_type: Option<String>,
    /// Its type and size: `standard.x1`.
    #[serde(default)]
    pub plan: Option<String>,
    /// The cloud provider.
    #[serde(default)]
    pub cloud_provider: Option<String>,
    /// The region.
    #[serde(default)]
    pub region: Option<String>,
    /// How it is paid for.
    #[serde(default)]
    pub billing_model: Option<String>,
}

/// A deployment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deployment {
    /// Its name; made from those of the environment and the resource if none is given.
    #[serde(default)]
    pub name: Option<String>,
    /// The image; without one it only holds its capacity.
    #[serde(default)]
    pub image: Option<String>,
    /// How much CPU.
    #[serde(default)]
    pub cpu: Option<Value>,
    /// How much RAM.
    #[serde(default)]
    pub ram: Option<Value>,
    /// How much of other things.
    #[serde(default)]
    pub resources: BTreeMap<String, Value>,
    /// Who is first.
    #[serde(default)]
    pub priority: i64,
    /// How many run.
    #[serde(default)]
    pub replicas: Option<u32>,
    /// Its environment variables. What is no text is written as JSON.
    #[serde(default)]
    pub env: BTreeMap<String, Value>,
    /// The command, if not the image's.
    #[serde(default)]
    pub command: Vec<String>,
    /// The ports that it listens on.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// The cluster, by name or id, if it has to be that one.
    #[serde(default)]
    pub cluster: Option<String>,
    /// What is written on it.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// A program or a call, whose outcome decides.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// What it is called.
    #[serde(default)]
    pub name: Option<String>,
    /// An image to run, or an address (`http://…`, `https://…`) to call.
    pub url: String,
    /// The command, if not the image's.
    #[serde(default)]
    pub command: Vec<String>,
    /// The program's environment variables. What is no text is written as JSON.
    #[serde(default)]
    pub env: BTreeMap<String, Value>,
    /// How much CPU the program gets; 100m if nothing is said.
    #[serde(default)]
    pub cpu: Option<Value>,
    /// How much RAM the program gets; 64Mi if nothing is said.
    #[serde(default)]
    pub ram: Option<Value>,
    /// The cluster to run on, by name or id, if it has to be that one.
    #[serde(default)]
    pub cluster: Option<String>,
    /// How the address is called; POST if nothing is said.
    #[serde(default)]
    pub method: Option<String>,
    /// What is sent to the address, as JSON.
    #[serde(default)]
    pub body: Option<Value>,
    /// How long it may take, in seconds; 600 if nothing is said.
    #[serde(default)]
    pub timeout_seconds: Option<u32>,
}

impl Command {
    /// Is it an address to call?
    pub fn is_call(&self) -> bool {
        self.url.starts_with("http://") || self.url.starts_with("https://")
    }
}

/// Reads `with` as an executor's shape. Fields are called `with.…` in what is wrong.
pub fn read<T: DeserializeOwned>(with: &Map<String, Value>) -> Result<T, Invalid> {
    serde_path_to_error::deserialize(Value::Object(with.clone())).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { "with".to_owned() } else { format!("with.{path}") };
        Invalid::new(field, error.into_inner().to_string())
    })
}

/// Is `with` what this executor takes?
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

/// Are the names in `with` those that this executor takes, and is none missing that it must have?
/// That can be said before expressions have values.
pub(super) fn check_names(executor: Executor, with: &Map<String, Value>) -> Result<(), Invalid> {
    let (required, optional) = names(executor);
    let is_known = |name: &str| required.contains(&name) || optional.contains(&name);
    if let Some(name) = with.keys().find(|name| !is_known(name)) {
        let all = [required, optional].concat().join(", ");
        let detail = format!("{executor} has no such field; it has {all}");
        return Err(Invalid::new(format!("with.{name}"), detail));
    }
    match required.iter().find(|name| !with.contains_key(**name)) {
        Some(name) => Err(Invalid::new("with", format!("{executor} must have {name}"))),
        None => Ok(()),
    }
}

/// The fields that an executor must have, and those that it may have.
fn names(executor: Executor) -> (&'static [&'static str], &'static [&'static str]) {
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
