//! Templates: versioned graphs of resources from which environments are created.
//!
//! A template is a YAML (or JSON) document. [`parse`] reads and validates it, [`expand`] turns one
//! or more templates into the nodes of an environment, [`fill`] evaluates expressions, and [`plan`]
//! compares the desired state with existing resources. Everything is pure; executors apply the
//! plan.

mod check;
pub mod configuration;
mod declaration;
mod diff;
mod expand;
mod expression;
mod files;
mod fill;
mod fingerprint;
mod graph;
mod hash;
mod modules;
mod node;
mod parameter;
mod plan;
mod symbols;
#[cfg(test)]
mod tests;
mod version;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::text_enum::text_enum;
use crate::yaml::{self, FileError};
use crate::{OrganizationId, TemplateId, Time};

pub use diff::{Change, diff};
pub use expand::{Expanded, Source, expand};
pub use files::files_fingerprint;
pub use fill::{fill, fill_text};
pub use hash::hash;
pub use modules::{check_modules, has_modules};
pub use node::{Context, Node};
pub use parameter::parameters;
pub use plan::{Act, Existing, Plan, Step, forces_replacement, plan, plan_destruction};
pub use version::{compare_versions, parse_reference};

/// The executor that manages a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Executor {
    /// A Terraform module.
    Terraform,
    /// Keys and values in Consul.
    ConsulKv,
    /// Secrets and certificates in Vault.
    VaultSecret,
    /// An instance of a managed service.
    Service,
    /// A deployment.
    Deployment,
    /// A container or an HTTP call that must succeed.
    Command,
}

text_enum!(Executor {
    Terraform => "terraform",
    ConsulKv => "consul-kv",
    VaultSecret => "vault-secret",
    Service => "service",
    Deployment => "deployment",
    Command => "command",
});

/// A template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// The name, a DNS label.
    pub name: String,
    /// The version; a published `name@version` is immutable.
    pub version: String,
    /// A description for people.
    #[serde(default)]
    pub description: String,
    /// User-defined tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// The Git commit of the source.
    #[serde(default)]
    pub commit: Option<String>,
    /// The declared parameters.
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
    /// Resources of other templates in the same environment that this template references.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Named subgraphs.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// The declared resources.
    #[serde(default)]
    pub resources: Vec<ResourceDeclaration>,
    /// Actions that run after resources are applied.
    #[serde(default)]
    pub actions: Vec<Action>,
    /// URLs at which users enter the environment; expressions are allowed.
    #[serde(default)]
    pub entry_points: Vec<String>,
}

/// A published template.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// The id.
    pub id: TemplateId,
    /// The owning organization; none if the template is shared by all.
    pub organization_id: Option<OrganizationId>,
    /// The document.
    pub template: Template,
    /// Hash of the document and its files.
    pub hash: String,
    /// Fingerprint of the files alone; empty if the template has none.
    pub files_print: String,
    /// When the template was deprecated.
    pub deprecated_at: Option<Time>,
    /// Why, and what to use instead.
    pub deprecated_why: Option<String>,
    /// The publisher.
    pub created_by: String,
    /// The time of publication.
    pub created_at: Time,
}

impl Published {
    /// The reference `name@version`.
    pub fn reference(&self) -> String {
        format!("{}@{}", self.template.name, self.template.version)
    }
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    /// A string.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A list of values of any type.
    List,
    /// A map with string keys.
    Map,
}

/// A parameter of a template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// The type.
    #[serde(rename = "type")]
    pub value_type: Type,
    /// A description for people.
    #[serde(default)]
    pub description: String,
    /// The value used when none is given; a parameter without a default is required.
    #[serde(default)]
    pub default: Option<Value>,
    /// The smallest number allowed.
    #[serde(default)]
    pub minimum: Option<f64>,
    /// The largest number allowed.
    #[serde(default)]
    pub maximum: Option<f64>,
    /// The minimum length of a string, in characters, or of a list.
    #[serde(default)]
    pub min_length: Option<u32>,
    /// The maximum length of a string, in characters, or of a list.
    #[serde(default)]
    pub max_length: Option<u32>,
    /// The allowed values; all values of the type if absent.
    #[serde(default)]
    pub one_of: Option<Vec<Value>>,
}

/// A named subgraph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The name, usable in `depends_on`.
    pub name: String,
    /// Member resources and groups.
    pub resources: Vec<String>,
    /// User-defined tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// A resource as declared in a template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceDeclaration {
    /// The name, a DNS label; unique in the environment.
    pub name: String,
    /// A description for people.
    #[serde(default)]
    pub description: String,
    /// User-defined tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// The executor.
    pub executor: Executor,
    /// The configuration for the executor; expressions are allowed in every string.
    #[serde(default)]
    pub with: Map<String, Value>,
    /// The number of instances: a number, or an expression over parameters. Instances are named
    /// `name-0`, `name-1` and so on.
    #[serde(default)]
    pub count: Option<Value>,
    /// Resources and groups that must be applied first.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// The health check.
    #[serde(default)]
    pub status: Option<Health>,
}

/// A health check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// A URL that must answer GET with a 2xx status; expressions are allowed.
    pub http: String,
}

/// An action: runs after resources are applied, once per version of its configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// The name; shares the namespace of resources.
    pub name: String,
    /// Resources and groups that must be applied first.
    #[serde(default)]
    pub after: Vec<String>,
    /// A container to run or a URL to call: the configuration of the executor `command`.
    #[serde(default)]
    pub app: Option<Map<String, Value>>,
    /// A secret to generate: the configuration of the executor `vault-secret`.
    #[serde(default)]
    pub secret: Option<Map<String, Value>>,
    /// A certificate to issue: the fields below `certificate` of the executor `vault-secret`, the
    /// `path` at which it is stored, and `kv_mount` if that is not below `secret`.
    #[serde(default)]
    pub certificate: Option<Map<String, Value>>,
}

impl Template {
    /// The reference used by environments: `name@version`.
    pub fn reference(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

/// Reads and validates a template in YAML or JSON. Errors refer to the text as `file`.
pub fn parse(file: &str, text: &str) -> Result<Template, FileError> {
    let template: Template = yaml::read(file, text)?;
    check::template(&template).map_err(|invalid| yaml::file_error(file, text, &invalid))?;
    Ok(template)
}

/// Names that expressions can use besides parameters and resources.
pub const BUILT_IN_NAMES: &[&str] = &["environment", "index"];

/// Names of parameters or of resources.
pub type Names = BTreeSet<String>;
