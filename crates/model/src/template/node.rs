//! The nodes of an environment: what its templates' resources and actions come to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Executor, Names};

/// One thing that an environment shall have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its name, unique in the environment: `web`, or `web-0` if there may be several.
    pub name: String,
    /// The name of the resource or action that it comes from: `web`.
    pub of: String,
    /// Which of several it is, from 0.
    pub index: Option<u32>,
    /// The template that it comes from, `name@version`.
    pub template: String,
    /// Who carries it out.
    pub executor: Executor,
    /// Is it an action?
    pub is_action: bool,
    /// What it is for.
    pub description: String,
    /// What users wrote on it.
    pub tags: BTreeMap<String, String>,
    /// What the executor is told, with expressions.
    pub with: Map<String, Value>,
    /// An address that answers when it works, with expressions.
    pub health: Option<String>,
    /// The nodes that must be there first, by name, in order.
    pub after: Vec<String>,
    /// What it still needs because it is not yet as this says; none if it is, or is not there at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<Vec<String>>,
    /// The parameters that it uses.
    pub parameters: Names,
    /// The resources whose outputs it uses, as declared: `web`, not `web-0`.
    pub outputs_of: Names,
    /// Changes exactly when what it is told may change: of its executor, `with`, the values of the
    /// parameters that it uses, and the files of its template if it uses them.
    pub print: String,
}

/// What expressions are given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Context {
    /// The environment's id.
    pub environment_id: String,
    /// The environment's name.
    pub environment_name: String,
    /// All parameters, with defaults.
    pub parameters: Map<String, Value>,
    /// The outputs of nodes that are there, by the node's name (`web`, `web-0`).
    pub outputs: BTreeMap<String, Map<String, Value>>,
}
