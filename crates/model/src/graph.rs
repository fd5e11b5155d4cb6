//! What depends on what: subjects as nodes, and edges from each to what it needs.
//!
//! A graph is grown level by level from one subject ([`Growing`]), told of neighbours by whoever can look
//! them up, and drawn as DOT or as SVG. Nothing here knows where neighbours come from.

mod dot;
mod growing;
mod layout;
mod svg;
#[cfg(test)]
mod tests;
mod tone;

use crate::Xid;
use crate::event::Kind;
use crate::text_enum::text_enum;

pub use growing::{Found, Growing};

/// What can be part of a graph.
pub const KINDS: [Kind; 6] = [
    Kind::Environment,
    Kind::Template,
    Kind::Resource,
    Kind::Deployment,
    Kind::Instance,
    Kind::Cluster,
];
/// The most nodes of a graph.
pub const MAX_NODES: usize = 2000;
/// The most edges of a graph.
pub const MAX_EDGES: usize = 20_000;

/// Which way to look from a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// What it needs.
    Dependencies,
    /// What needs it: what breaks if it goes.
    Dependents,
}

text_enum!(Direction { Dependencies => "dependencies", Dependents => "dependents" });

/// Why a subject needs another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// An environment is made from a template.
    MadeFrom,
    /// An environment has a resource.
    Has,
    /// A resource is made after another.
    After,
    /// A resource made a deployment or an instance.
    Made,
    /// A deployment or an instance is on a cluster.
    RunsOn,
    /// A deployment may run on one cluster alone.
    PinnedTo,
}

text_enum!(Why {
    MadeFrom => "is made from",
    Has => "has",
    After => "is made after",
    Made => "made",
    RunsOn => "runs on",
    PinnedTo => "is pinned to",
});

/// A subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: Xid,
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Where it is on its way.
    pub status: Option<String>,
}

/// One subject needs another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Who needs.
    pub from: Xid,
    /// What is needed.
    pub to: Xid,
    /// Why.
    pub why: Why,
}

/// What depends on what, around a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// Which way was looked.
    pub direction: Direction,
    /// The subject, and all that was reached from it: nearest first.
    pub nodes: Vec<Node>,
    /// In the order of the nodes.
    pub edges: Vec<Edge>,
    /// Is there more than a graph may have?
    pub is_truncated: bool,
}

impl Graph {
    /// As a text in the language of Graphviz.
    pub fn to_dot(&self) -> String {
        dot::write(self)
    }

    /// As a drawing.
    pub fn to_svg(&self) -> String {
        svg::write(self)
    }

    /// What it is about, for people.
    fn title(&self) -> String {
        let subject = self.nodes.first().map_or("nothing", |node| node.name.as_str());
        let (what, more) = match self.direction {
            Direction::Dependencies => ("What", "needs"),
            Direction::Dependents => ("What needs", ""),
        };
        let cut = if self.is_truncated { " (not all of it is shown)" } else { "" };
        format!("{what} {subject} {more}").trim_end().to_owned() + cut
    }
}

impl Node {
    /// Its kind and status, for people.
    fn condition(&self) -> String {
        match &self.status {
            Some(status) => format!("{} · {status}", self.kind),
            None => self.kind.to_string(),
        }
    }
}
