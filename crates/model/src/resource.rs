//! Resources: the nodes of environments, as they are.

mod reason;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::reason::Coded;
use crate::template::{Act, Existing, Node};
use crate::text_enum::text_enum;
use crate::{EnvironmentId, OrganizationId, ResourceId, Time};

pub use reason::Reason;

/// Where a resource is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Something is to be done; it waits for its turn.
    Pending,
    /// What has to be done is found out.
    Planning,
    /// It is made or changed.
    Applying,
    /// It is as it should be.
    Applied,
    /// It could not be done; the reason says why.
    Failed,
    /// It is not as it was made.
    Drifted,
    /// It is taken away.
    Destroying,
    /// It is gone.
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
    /// May a resource go from here to `next`?
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
            // What is replaced is made again.
            Destroying => matches!(next, Destroyed | Planning | Failed | Pending),
            Destroyed => false,
        }
    }

    /// Does its executor have it?
    pub fn is_running(self) -> bool {
        matches!(self, Status::Planning | Status::Applying | Status::Destroying)
    }
}

/// One field that is not what it was made as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Which field, as a path.
    pub field: String,
    /// What it was made as; none if it was not there.
    pub made: Option<Value>,
    /// What it is; none if it is gone.
    pub found: Option<Value>,
}

/// Something of Paddock's own that was made for a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// What kind of subject it is: `deployment`, `instance`.
    pub kind: String,
    /// Its id.
    pub id: String,
}

/// A resource of an environment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resource {
    /// Its id.
    pub id: ResourceId,
    /// The environment that it is part of.
    pub environment_id: EnvironmentId,
    /// Whose it is.
    pub organization_id: OrganizationId,
    /// What it shall be.
    pub node: Node,
    /// What is to be done, or is being done.
    pub act: Act,
    /// Where it is on its way.
    pub status: Status,
    /// Why it has that status.
    #[serde(flatten, serialize_with = "Coded::tell")]
    pub reason: Reason,
    /// Since when.
    pub status_since: Time,
    /// How far the step is that goes on, in percent.
    pub progress: i64,
    /// The print of what was last applied.
    pub print: Option<String>,
    /// What its executor was last told, without expressions.
    pub applied: Option<Map<String, Value>>,
    /// What its executor was told to make, without expressions, if that did not come to its end.
    pub tried: Option<Map<String, Value>>,
    /// What it gives to others. Nothing secret is in it.
    pub outputs: Map<String, Value>,
    /// What of Paddock's own was made for it.
    pub link: Option<Link>,
    /// What exists already and shall be taken over, as the executor names it.
    pub adopt: Option<String>,
    /// What is not as it was made.
    pub drift: Vec<Difference>,
    /// What is there and was not made by Paddock.
    pub unexpected: Vec<String>,
    /// When it was last looked at.
    pub observed_at: Option<Time>,
    /// How often its step failed in a row.
    pub attempts: i64,
    /// Grows whenever another server takes over its step.
    pub fence: i64,
    /// Counts the changes of what shall be.
    pub generation: i64,
    /// When it was first asked for.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
}

impl Resource {
    /// As the planner sees it.
    pub fn existing(&self) -> Existing {
        Existing {
            name: self.node.name.clone(),
            executor: self.node.executor,
            status: self.status,
            print: self.print.clone(),
            applied: self.applied.clone(),
            outputs: self.outputs.clone(),
            after: self.all_needs(),
            act: self.act,
            is_begun: self.is_begun(),
        }
    }

    /// Has it become what a node says; without one it shall go. What it needs stays known until then.
    pub fn aim(&mut self, node: Option<&Node>, act: Act) {
        let needs = self.all_needs();
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
        // What failed before is not taken for done, nor what did not begin for half done.
        if self.act != act {
            self.attempts = 0;
        }
        self.act = act;
    }

    /// What must not go before it, by name: all that it was made after, and all that it is being made
    /// after. Some may be named twice.
    pub fn needs(&self) -> impl Iterator<Item = &String> {
        let is_after = match self.node.needs {
            // No server has ever held it: nothing was made.
            None => self.print.is_some() || self.fence > 0 || self.is_begun(),
            Some(_) => self.is_begun(),
        };
        let after = if is_after { &self.node.after[..] } else { &[] };
        self.node.needs.iter().flatten().chain(after)
    }

    fn all_needs(&self) -> Vec<String> {
        let mut all: Vec<String> = self.needs().cloned().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// May its executor have made something for it?
    pub fn is_touched(&self) -> bool {
        self.print.is_some() || self.tried.is_some()
    }

    /// Has the step that is to be done begun?
    fn is_begun(&self) -> bool {
        self.status != Status::Pending || self.attempts > 0
    }
}

/// The outputs of resources that are there, by name, for expressions.
pub fn outputs(all: &[Resource]) -> BTreeMap<String, Map<String, Value>> {
    let known = all.iter().filter(|one| one.print.is_some());
    known.map(|one| (one.node.name.clone(), one.outputs.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::Status::{
        Applied, Applying, Destroyed, Destroying, Drifted, Failed, Pending, Planning,
    };
    use super::*;
    use crate::environment::examples::resource;

    /// All steps that there are.
    const STEPS: &[(Status, &[Status])] = &[
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
    fn there_are_these_steps_and_no_others() {
        assert_eq!(STEPS.len(), Status::ALL.len());
        for (from, to) in STEPS {
            for next in Status::ALL {
                assert_eq!(from.may_become(*next), to.contains(next), "{from} to {next}");
            }
        }
    }

    fn needs(one: &Resource) -> Vec<&str> {
        one.needs().map(String::as_str).collect()
    }

    #[test]
    fn what_it_needs_stays_known_until_it_is_changed() {
        let wish = |after: &[&str]| resource("a", after, Act::Nothing, Applied).node;
        let mut one = resource("a", &["b"], Act::Nothing, Applied);
        one.aim(Some(&wish(&["c"])), Act::Update);
        one.status = Pending;
        assert_eq!((needs(&one), one.act), (vec!["b"], Act::Update));
        // Half changed, it may need both.
        one.status = Failed;
        one.attempts = 1;
        assert_eq!(needs(&one), ["b", "c"]);
        one.status = Pending;
        one.aim(Some(&wish(&["d"])), Act::Update);
        assert_eq!((needs(&one), one.attempts), (vec!["b", "c", "d"], 1));
        one.aim(None, Act::Destroy);
        assert_eq!((needs(&one), one.attempts, one.act), (vec!["b", "c", "d"], 0, Act::Destroy));

        let mut same = resource("a", &["b"], Act::Nothing, Applied);
        same.aim(Some(&wish(&["c"])), Act::Nothing);
        assert_eq!((needs(&same), same.act), (vec!["c"], Act::Nothing));
    }

    #[test]
    fn what_was_never_begun_needs_nothing() {
        let mut one = resource("a", &["b"], Act::Create, Pending);
        assert_eq!(needs(&one), Vec::<&str>::new());
        one.fence = 1;
        assert_eq!(needs(&one), ["b"]);
        one.fence = 0;
        one.status = Planning;
        assert_eq!(needs(&one), ["b"]);
    }
}
