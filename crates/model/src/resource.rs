//! Resources: the desired and the observed state of an environment's nodes.

mod reason;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::reason::StatusReason;
use crate::template::{Act, Existing, Node};
use crate::text_enum::text_enum;
use crate::{EnvironmentId, OrganizationId, ResourceId, Time};

pub use reason::Reason;

/// The status of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// A step is planned and has not started.
    Pending,
    /// The executor is planning the step.
    Planning,
    /// The resource is being created or updated.
    Applying,
    /// The desired state is applied.
    Applied,
    /// The step failed; the reason has details.
    Failed,
    /// The observed state differs from the applied state.
    Drifted,
    /// The resource is being destroyed.
    Destroying,
    /// The resource is destroyed.
    Destroyed,
}

text_enum!(Status {
    Pending => "pending",
    Planning => "planning",
    Applying => "applying",
    Applied => "applied",
    Failed => "failed",
    Drifted => "drifted",
    Destroying => "destroying",
    Destroyed => "destroyed",
});

impl Status {
    /// Is the transition to `next` allowed?
    pub fn may_become(self, next: Status) -> bool {
        use Status::{
            Applied, Applying, Destroyed, Destroying, Drifted, Failed, Pending, Planning,
        };
        match self {
            Pending => matches!(next, Planning | Destroying | Applied | Failed | Destroyed),
            Planning => matches!(next, Applying | Destroying | Applied | Failed | Pending),
            Applying => matches!(next, Applied | Failed | Pending),
            Applied => matches!(next, Pending | Drifted),
            Drifted => matches!(next, Pending | Applied),
            Failed => matches!(next, Pending),
            // A replaced resource is created again.
            Destroying => matches!(next, Destroyed | Planning | Failed | Pending),
            Destroyed => false,
        }
    }

    /// Is a step running?
    pub fn is_running(self) -> bool {
        matches!(self, Status::Planning | Status::Applying | Status::Destroying)
    }
}

/// A drifted field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The path of the field.
    pub field: String,
    /// The applied value; none if the field was absent.
    pub made: Option<Value>,
    /// The observed value; none if the field is missing.
    pub found: Option<Value>,
}

/// A Paddock object that was created for a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The kind of the object: `deployment` or `instance`.
    pub kind: String,
    /// The id of the object.
    pub id: String,
}

/// A resource of an environment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resource {
    /// The id.
    pub id: ResourceId,
    /// The environment.
    pub environment_id: EnvironmentId,
    /// The owning organization.
    pub organization_id: OrganizationId,
    /// The desired state.
    pub node: Node,
    /// The pending or running step.
    pub act: Act,
    /// The status.
    pub status: Status,
    /// Why it has this status.
    #[serde(flatten, serialize_with = "StatusReason::serialize_status")]
    pub reason: Reason,
    /// When the status last changed.
    pub status_since: Time,
    /// The progress of the running step, in percent.
    pub progress: i64,
    /// The [`Node::print`] of the last applied state.
    pub print: Option<String>,
    /// The last applied configuration, without expressions.
    pub applied: Option<Map<String, Value>>,
    /// The configuration of an unfinished apply, without expressions.
    pub tried: Option<Map<String, Value>>,
    /// The outputs. They contain no secrets.
    pub outputs: Map<String, Value>,
    /// The Paddock object that was created for it.
    pub link: Option<Link>,
    /// An existing object to adopt, by the executor's name for it.
    pub adopt: Option<String>,
    /// The drifted fields.
    pub drift: Vec<Difference>,
    /// Objects found that Paddock did not create.
    pub unexpected: Vec<String>,
    /// The time of the last observation.
    pub observed_at: Option<Time>,
    /// The number of consecutive failures of the step.
    pub attempts: i64,
    /// The fencing token: incremented whenever another server takes over the step.
    pub fence: i64,
    /// Incremented with every change of the desired state.
    pub generation: i64,
    /// The time of creation.
    pub created_at: Time,
    /// The time of the last change.
    pub updated_at: Time,
}

impl Resource {
    /// The state for the planner.
    pub fn existing(&self) -> Existing {
        Existing {
            name: self.node.name.clone(),
            executor: self.node.executor,
            status: self.status,
            print: self.print.clone(),
            applied: self.applied.clone(),
            outputs: self.outputs.clone(),
            after: self.sorted_needs(),
            act: self.act,
            is_begun: self.is_begun(),
        }
    }

    /// Sets the desired state; without a node it is to be destroyed. The dependencies of the
    /// applied state are kept until the new state is applied.
    pub fn set_desired(&mut self, node: Option<&Node>, act: Act) {
        let needs = self.sorted_needs();
        match node {
            Some(node) => {
                self.node = node.clone();
                self.node.needs = (act != Act::Nothing).then_some(needs);
            }
            None => (self.node.after, self.node.needs) = (needs, None),
        }
        if act == Act::Nothing {
            return;
        }
        // Attempts of another step must not make this step look started.
        if self.act != act {
            self.attempts = 0;
        }
        self.act = act;
    }

    /// The names of resources that must outlive it: dependencies of the applied state and of a
    /// started step. May contain duplicates.
    pub fn needs(&self) -> impl Iterator<Item = &String> {
        let is_after = match self.node.needs {
            // A resource that no server ever claimed was never created.
            None => self.print.is_some() || self.fence > 0 || self.is_begun(),
            Some(_) => self.is_begun(),
        };
        let after = if is_after { &self.node.after[..] } else { &[] };
        self.node.needs.iter().flatten().chain(after)
    }

    fn sorted_needs(&self) -> Vec<String> {
        let mut all: Vec<String> = self.needs().cloned().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// May the executor have created something for it?
    pub fn may_exist(&self) -> bool {
        self.print.is_some() || self.tried.is_some()
    }

    /// Has the pending step started?
    fn is_begun(&self) -> bool {
        self.status != Status::Pending || self.attempts > 0
    }
}

/// The outputs of applied resources, by name, for expressions.
pub fn outputs(all: &[Resource]) -> BTreeMap<String, Map<String, Value>> {
    let applied = all.iter().filter(|one| one.print.is_some());
    applied.map(|one| (one.node.name.clone(), one.outputs.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::Status::{
        Applied, Applying, Destroyed, Destroying, Drifted, Failed, Pending, Planning,
    };
    use super::*;
    use crate::environment::examples::resource;

    /// All allowed transitions.
    const TRANSITIONS: &[(Status, &[Status])] = &[
        (Pending, &[Planning, Destroying, Applied, Failed, Destroyed]),
        (Planning, &[Pending, Applying, Destroying, Applied, Failed]),
        (Applying, &[Pending, Applied, Failed]),
        (Applied, &[Pending, Drifted]),
        (Drifted, &[Pending, Applied]),
        (Failed, &[Pending]),
        (Destroying, &[Pending, Planning, Failed, Destroyed]),
        (Destroyed, &[]),
    ];

    #[test]
    fn only_listed_transitions_are_allowed() {
        assert_eq!(TRANSITIONS.len(), Status::ALL.len());
        for (from, to) in TRANSITIONS {
            for next in Status::ALL {
                assert_eq!(from.may_become(*next), to.contains(next), "{from} to {next}");
            }
        }
    }

    fn needs(one: &Resource) -> Vec<&str> {
        one.needs().map(String::as_str).collect()
    }

    #[test]
    fn old_dependencies_are_kept_until_the_change_is_applied() {
        let node = |after: &[&str]| resource("a", after, Act::Nothing, Applied).node;
        let mut one = resource("a", &["b"], Act::Nothing, Applied);
        one.set_desired(Some(&node(&["c"])), Act::Update);
        one.status = Pending;
        assert_eq!((needs(&one), one.act), (vec!["b"], Act::Update));
        // A partly applied change may need both.
        one.status = Failed;
        one.attempts = 1;
        assert_eq!(needs(&one), ["b", "c"]);
        one.status = Pending;
        one.set_desired(Some(&node(&["d"])), Act::Update);
        assert_eq!((needs(&one), one.attempts), (vec!["b", "c", "d"], 1));
        one.set_desired(None, Act::Destroy);
        assert_eq!((needs(&one), one.attempts, one.act), (vec!["b", "c", "d"], 0, Act::Destroy));

        let mut same = resource("a", &["b"], Act::Nothing, Applied);
        same.set_desired(Some(&node(&["c"])), Act::Nothing);
        assert_eq!((needs(&same), same.act), (vec!["c"], Act::Nothing));
    }

    #[test]
    fn resource_that_never_started_has_no_dependencies() {
        let mut one = resource("a", &["b"], Act::Create, Pending);
        assert_eq!(needs(&one), Vec::<&str>::new());
        one.fence = 1;
        assert_eq!(needs(&one), ["b"]);
        one.fence = 0;
        one.status = Planning;
        assert_eq!(needs(&one), ["b"]);
    }
}
