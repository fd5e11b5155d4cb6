//! Templates: what whole environments are made from, as versioned graphs of resources.
//!
//! A template is a YAML (or JSON) document. [`parse`] reads and checks it, [`expand`] makes the nodes of
//! an environment from one or more, [`fill`] puts values in place of expressions, and [`plan`] compares
//! with what exists. All of it is pure; nothing is carried out here.

mod check;
mod diff;
mod expand;
mod expression;
mod files;
mod fill;
mod graph;
mod hash;
mod known;
mod modules;
mod node;
mod parameter;
mod plan;
mod print;
#[cfg(test)]
mod tests;
mod thing;
mod version;
pub mod with;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::text_enum::text_enum;
use crate::yaml::{self, Refused};
use crate::{OrganizationId, TemplateId, Time};

pub use diff::{Change, diff};
pub use expand::{Expanded, Source, expand};
pub use files::files_print;
pub use fill::{fill, fill_text};
pub use hash::hash;
pub use modules::{check_modules, has_modules};
pub use node::{Context, Node};
pub use parameter::parameters;
pub use plan::{Act, Existing, Plan, Step, is_replaced, plan, plan_destruction};
pub use version::{compare_versions, parse_reference};

/// Who carries out a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Executor {
    /// A module of Terraform.
    Terraform,
    /// Keys and values in Consul.
    ConsulKv,
    /// Secrets and certificates in Vault.
    VaultSecret,
    /// An instance of a managed service.
    Service,
    /// A deployment.
    Deployment,
    /// A program or a call, whose outcome decides.
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
    /// Its name, a DNS label.
    pub name: String,
    /// Its version; `name@version` never changes.
    pub version: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// What users wrote on it.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// The commit that it came from.
    #[serde(default)]
    pub commit: Option<String>,
    /// What can be set.
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
    /// Resources of other templates of the same environment that this one refers to.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Named parts of the graph.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// Its resources.
    #[serde(default)]
    pub resources: Vec<Declared>,
    /// What runs after resources are there.
    #[serde(default)]
    pub actions: Vec<Action>,
    /// Where users of the environment begin, as addresses; expressions are allowed.
    #[serde(default)]
    pub entry_points: Vec<String>,
}

/// A template that was published.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// Its id.
    pub id: TemplateId,
    /// Whose it is; nobody's when it is shared by all.
    pub organization_id: Option<OrganizationId>,
    /// What it says.
    pub template: Template,
    /// Of what it says, and of its files.
    pub hash: String,
    /// Of its files alone; empty if there are none.
    pub files_print: String,
    /// Since when nothing new should be made from it.
    pub deprecated_at: Option<Time>,
    /// What to use instead.
    pub deprecated_why: Option<String>,
    /// Who published it.
    pub created_by: String,
    /// When it was published.
    pub created_at: Time,
}

impl Published {
    /// What it is called: `name@version`.
    pub fn reference(&self) -> String {
        format!("{}@{}", self.template.name, self.template.version)
    }
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A list of anything.
    List,
    /// Names and values.
    Map,
}

/// Something that can be set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// What it may be.
    #[serde(rename = "type")]
    pub of: Type,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Its value if nobody gives one; without it, somebody must.
    #[serde(default)]
    pub default: Option<Value>,
    /// The least number.
    #[serde(default)]
    pub minimum: Option<f64>,
    /// The greatest number.
    #[serde(default)]
    pub maximum: Option<f64>,
    /// The shortest text, in characters, or list.
    #[serde(default)]
    pub min_length: Option<u32>,
    /// The longest text, in characters, or list.
    #[serde(default)]
    pub max_length: Option<u32>,
    /// The only values, if not all of its type.
    #[serde(default)]
    pub one_of: Option<Vec<Value>>,
}

/// A named part of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name: it can be depended on.
    pub name: String,
    /// The resources and groups in it.
    pub resources: Vec<String>,
    /// What users wrote on it.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// A resource, as a template declares it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declared {
    /// Its name, a DNS label; unique in the environment.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// What users wrote on it.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Who carries it out.
    pub executor: Executor,
    /// What the executor is told; expressions are allowed in every text.
    #[serde(default)]
    pub with: Map<String, Value>,
    /// How many there are: a number, or an expression of parameters. They are called `name-0` and so on.
    #[serde(default)]
    pub count: Option<Value>,
    /// Resources and groups that must be there first.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// How to see that it works.
    #[serde(default)]
    pub status: Option<Health>,
}

/// How to see that something works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// An address that answers a GET with 200 to 299; expressions are allowed.
    pub http: String,
}

/// Something that runs after resources are there, once for each version of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Its name, among those of resources.
    pub name: String,
    /// Resources and groups that must be there first.
    #[serde(default)]
    pub after: Vec<String>,
    /// The program to run, or the address to call: as the executor `command` has it.
    #[serde(default)]
    pub app: Option<Map<String, Value>>,
    /// A secret to generate: as the executor `vault-secret` has it.
    #[serde(default)]
    pub secret: Option<Map<String, Value>>,
    /// A certificate to have issued: the fields that the executor `vault-secret` has below
    /// `certificate`, the `path` at which it is kept, and `kv_mount` if that is not below `secret`.
    #[serde(default)]
    pub certificate: Option<Map<String, Value>>,
}

impl Template {
    /// What it is called in environments: `name@version`.
    pub fn reference(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

/// Reads a template, in YAML or JSON, and checks all of its rules. `file` is what it is called in
/// what is wrong.
pub fn parse(file: &str, text: &str) -> Result<Template, Refused> {
    let template: Template = yaml::read(file, text)?;
    check::template(&template).map_err(|invalid| yaml::refuse(file, text, &invalid))?;
    Ok(template)
}

/// Names that expressions know besides parameters and resources.
pub const KNOWN_NAMES: &[&str] = &["environment", "index"];

/// Names of parameters, or of resources.
pub type Names = BTreeSet<String>;
