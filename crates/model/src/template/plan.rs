//! What has to be done so that an environment is as its templates say.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Executor;
use crate::resource::Status;
use crate::text_enum::text_enum;

/// What is done to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    /// It is made.
    Create,
    /// It is changed where it is.
    Update,
    /// It is destroyed and made again.
    Replace,
    /// It is destroyed.
    Destroy,
    /// It stays as it is.
    Nothing,
}

text_enum!(Act {
    Create => "create",
    Update => "update",
    Replace => "replace",
    Destroy => "destroy",
    Nothing => "nothing",
});

/// A resource that is there, or half there.
#[derive(Debug, Clone, PartialEq)]
pub struct Existing {
    /// Its name.
    pub name: String,
    /// Who carries it out.
    pub executor: Executor,
    /// Where it is on its way.
    pub status: Status,
    /// The [`super::Node::print`] of what was last applied; none if nothing ever was to its end.
    pub print: Option<String>,
    /// What its executor was last told, without expressions.
    pub applied: Option<Map<String, Value>>,
    /// What it gives to others.
    pub outputs: Map<String, Value>,
    /// The resources that had to be there before it.
    pub after: Vec<String>,
}

/// What is done to one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The resource.
    pub name: String,
    /// Who carries it out.
    pub executor: Executor,
    /// What is done.
    pub act: Act,
    /// Why, as a sentence.
    pub reason: String,
    /// The resources whose steps come first.
    pub after: Vec<String>,
}

/// What has to be done, in an order in which it can be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Every resource that there is or shall be, also those that nothing is done to.
    pub steps: Vec<Step>,
    /// Names this plan: another world or another wish has another one.
    pub hash: String,
}
