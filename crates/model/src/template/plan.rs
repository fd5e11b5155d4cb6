//! What has to be done so that an environment is as its templates say.

mod compare;
mod decide;
mod order;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::print::Print;
use super::{Context, Executor, Node};
use crate::resource::Status;
use crate::text_enum::text_enum;

pub use decide::is_replaced;

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
    /// What was to be done to it and has not come to its end; nothing if all has.
    pub act: Act,
    /// Has that begun?
    pub is_begun: bool,
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

impl Existing {
    /// Is there nothing left of it?
    fn is_gone(&self) -> bool {
        self.status == Status::Destroyed
    }
}

/// What has to be done so that there is what `nodes` say. `context` has what exists give; `exists` is
/// all that is there. The same comes out whenever the same goes in.
pub fn plan(nodes: &[Node], context: &Context, exists: &[Existing]) -> Plan {
    let there: HashMap<&str, &Existing> =
        exists.iter().filter(|one| !one.is_gone()).map(|one| (one.name.as_str(), one)).collect();
    let wanted = Wanted::new(nodes);
    let decisions = decide::all(&wanted, context, &there);
    let why = "it is in none of the templates any more";
    let steps = order::steps(&wanted, &decisions, exists, why);
    hashed(steps, nodes, exists)
}

/// What has to be done so that nothing is left: what others need goes after them.
pub fn plan_destruction(exists: &[Existing]) -> Plan {
    let why = "the environment shall not be there any more";
    hashed(order::steps(&Wanted::new(&[]), &[], exists, why), &[], exists)
}

/// What shall be there, with names looked up once.
struct Wanted<'a> {
    nodes: &'a [Node],
    places: HashMap<&'a str, usize>,
    /// The places of what each is after.
    after: Vec<Vec<usize>>,
}

impl<'a> Wanted<'a> {
    fn new(nodes: &'a [Node]) -> Self {
        let places: HashMap<&str, usize> =
            nodes.iter().enumerate().map(|(i, node)| (node.name.as_str(), i)).collect();
        let place = |name: &String| places.get(name.as_str()).copied();
        let mut after: Vec<Vec<usize>> = Vec::with_capacity(nodes.len());
        for (i, node) in nodes.iter().enumerate() {
            // Neighbours often are after the same: all that depend on a group, or are counted.
            let like = i.checked_sub(1).filter(|&last| nodes[last].after == node.after);
            after.push(match like {
                Some(last) => after[last].clone(),
                None => node.after.iter().filter_map(place).collect(),
            });
        }
        Self { nodes, places, after }
    }
}

/// The print of what is done, of all that is wished, and of all that is there: what is done may be the
/// same when an executor is told something else than before.
fn hashed(steps: Vec<Step>, nodes: &[Node], exists: &[Existing]) -> Plan {
    let mut print = Print::default();
    print.number(steps.len());
    let mut done: Vec<&Step> = steps.iter().collect();
    done.sort_unstable_by_key(|step| &step.name);
    for step in done {
        print.text(&step.name).text(step.executor.as_str()).text(step.act.as_str());
        print.text(&step.reason).number(step.after.len());
        for other in &step.after {
            print.text(other);
        }
    }
    let mut wanted: Vec<&Node> = nodes.iter().collect();
    wanted.sort_unstable_by_key(|node| &node.name);
    print.number(wanted.len());
    for node in wanted {
        print.text(&node.name).text(&node.print).text(&node.template).text(&node.description);
        print.text(node.health.as_deref().unwrap_or("")).number(node.tags.len());
        for (key, value) in &node.tags {
            print.text(key).text(value);
        }
    }
    let mut there: Vec<&Existing> = exists.iter().filter(|one| !one.is_gone()).collect();
    there.sort_unstable_by_key(|one| &one.name);
    print.number(there.len());
    for one in there {
        print.text(&one.name).text(one.executor.as_str()).text(one.status.as_str());
        print.text(one.act.as_str()).number(usize::from(one.is_begun));
        print.text(one.print.as_deref().unwrap_or(""));
        print.map(one.applied.as_ref().unwrap_or(&Map::new())).map(&one.outputs);
    }
    Plan { steps, hash: print.done() }
}
