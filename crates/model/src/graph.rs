//! Dependency graphs: subjects as nodes, and edges from each to its dependencies.
//!
//! A graph is built level by level from one subject ([`GraphBuilder`]), with neighbours looked up by the
//! caller, and rendered as DOT or SVG.

mod builder;
mod dot;
mod layout;
mod svg;
#[cfg(test)]
mod tests;
mod tone;

use crate::Xid;
use crate::event::Kind;
use crate::text_enum::text_enum;

pub use builder::{GraphBuilder, Neighbour};

/// The kinds of subjects in graphs.
pub const KINDS: [Kind; 6] = [
    Kind::Environment,
    Kind::Template,
    Kind::Resource,
    Kind::Deployment,
    Kind::Instance,
    Kind::Cluster,
];
/// The maximum number of nodes of a graph.
pub const MAX_NODES: usize = 2000;
/// The maximum number of edges of a graph.
pub const MAX_EDGES: usize = 20_000;

/// The direction of edges to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From a subject to its dependencies.
    Dependencies,
    /// From a subject to its dependents, which break if it is removed.
    Dependents,
}

text_enum!(Direction { Dependencies => "dependencies", Dependents => "dependents" });

/// The type of a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// An environment uses a template.
    MadeFrom,
    /// An environment contains a resource.
    Has,
    /// A resource depends on another.
    After,
    /// A resource created a deployment or an instance.
    Made,
    /// A deployment or an instance runs on a cluster.
    RunsOn,
    /// A deployment is restricted to one cluster.
    PinnedTo,
}

text_enum!(Relation {
    MadeFrom => "is made from",
    Has => "has",
    After => "is made after",
    Made => "made",
    RunsOn => "runs on",
    PinnedTo => "is pinned to",
});

impl Relation {
    /// The verb between dependent and dependency in drawings.
    pub fn label(self) -> &'static str {
        match self {
            Self::MadeFrom => "uses",
            Self::Has => "contains",
            Self::After => "depends on",
            Self::Made => "created",
            Self::RunsOn => "runs on",
            Self::PinnedTo => "is pinned to",
        }
    }
}

/// A subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The id.
    pub id: Xid,
    /// The kind.
    pub kind: Kind,
    /// The name.
    pub name: String,
    /// The status.
    pub status: Option<String>,
}

/// A dependency between two subjects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The dependent.
    pub from: Xid,
    /// The dependency.
    pub to: Xid,
    /// The type of the dependency.
    pub relation: Relation,
}

/// The dependency graph of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// The followed direction.
    pub direction: Direction,
    /// The subject and all reachable nodes, nearest first.
    pub nodes: Vec<Node>,
    /// The edges, in the order of the nodes.
    pub edges: Vec<Edge>,
    /// Were nodes or edges omitted because of the limits?
    pub is_truncated: bool,
}

impl Graph {
    /// Renders the graph as DOT for Graphviz.
    pub fn to_dot(&self) -> String {
        dot::write(self)
    }

    /// Renders the graph as SVG.
    pub fn to_svg(&self) -> String {
        svg::write(self)
    }

    /// The title of the graph.
    fn title(&self) -> String {
        let subject = self.nodes.first().map_or("nothing", |node| node.name.as_str());
        let nodes = match self.direction {
            Direction::Dependencies => "Dependencies",
            Direction::Dependents => "Dependents",
        };
        let note = if self.is_truncated { " (truncated)" } else { "" };
        format!("{nodes} of {subject}{note}")
    }
}

impl Node {
    /// Kind and status, for people.
    fn condition(&self) -> String {
        match &self.status {
            Some(status) => format!("{} · {status}", self.kind),
            None => self.kind.to_string(),
        }
    }
}
