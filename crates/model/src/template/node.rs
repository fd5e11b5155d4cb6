//! The nodes of an environment: expanded resources and actions of its templates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Executor, Names};

/// The desired state of one resource or action of an environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// The name, unique in the environment: `web`, or `web-0` if it has a count.
    pub name: String,
    /// The name of its declaration: `web`.
    pub of: String,
    /// The index among the instances of a counted resource, from 0.
    pub index: Option<u32>,
    /// The declaring template, `name@version`.
    pub template: String,
    /// The executor.
    pub executor: Executor,
    /// Is it an action?
    pub is_action: bool,
    /// A description for people.
    pub description: String,
    /// User-defined tags.
    pub tags: BTreeMap<String, String>,
    /// The configuration for the executor, with unevaluated expressions.
    pub with: Map<String, Value>,
    /// The URL of its health check, with unevaluated expressions.
    pub health: Option<String>,
    /// The nodes that must be applied first, sorted by name.
    pub after: Vec<String>,
    /// Dependencies of the previously applied state, kept until this state is applied; none if this
    /// state is applied or nothing exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<Vec<String>>,
    /// The referenced parameters.
    pub parameters: Names,
    /// The resources whose outputs it references, as declared: `web`, not `web-0`.
    pub outputs_of: Names,
    /// Fingerprint of the executor, `with`, the values of the referenced parameters, and the files
    /// of the template if the executor uses them.
    pub print: String,
}

/// The values available to expressions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Context {
    /// The environment's id.
    pub environment_id: String,
    /// The environment's name.
    pub environment_name: String,
    /// The id of its organization.
    pub organization_id: String,
    /// All parameters, including defaults.
    pub parameters: Map<String, Value>,
    /// The outputs of applied nodes, by node name (`web`, `web-0`).
    pub outputs: BTreeMap<String, Map<String, Value>>,
}
