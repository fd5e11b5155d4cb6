//! Dependency graphs.

use model::{Xid, graph};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::search::href;

/// What depends on what, around a subject.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Graph {
    /// The subject, and what was reached from it: nearest first, 2000 at most.
    pub nodes: Vec<Node>,
    /// Who needs what.
    pub edges: Vec<Edge>,
    /// Is there more than is shown?
    pub truncated: bool,
}

/// A subject.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = GraphNode)]
pub struct Node {
    /// Its id.
    #[schema(value_type = String)]
    pub id: Xid,
    /// What it is.
    pub kind: String,
    /// Its name; a template's is `name@version`.
    pub name: String,
    /// Where it is on its way, if it has one.
    pub status: Option<String>,
    /// Where it is in this API.
    pub href: String,
}

/// One subject needs another.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = GraphEdge)]
pub struct Edge {
    /// The id of who needs.
    #[schema(value_type = String)]
    pub from: Xid,
    /// The id of what is needed.
    #[schema(value_type = String)]
    pub to: Xid,
    /// Why, as words between the two: `runs on`.
    pub why: String,
}

impl From<graph::Graph> for Graph {
    fn from(of: graph::Graph) -> Self {
        Self {
            nodes: of.nodes.into_iter().map(Node::from).collect(),
            edges: of.edges.into_iter().map(Edge::from).collect(),
            truncated: of.is_truncated,
        }
    }
}

impl From<graph::Node> for Node {
    fn from(of: graph::Node) -> Self {
        Self {
            href: href(of.kind, of.id, &of.name),
            id: of.id,
            kind: of.kind.to_string(),
            name: of.name,
            status: of.status,
        }
    }
}

impl From<graph::Edge> for Edge {
    fn from(of: graph::Edge) -> Self {
        Self { from: of.from, to: of.to, why: of.why.to_string() }
    }
}
