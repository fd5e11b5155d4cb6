//! Dependency graphs.

use model::{Xid, graph};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::search::href;

/// Dependency graph of a subject.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Graph {
    /// The subject and the nodes reached from it, nearest first; at most 2000.
    pub nodes: Vec<Node>,
    /// Dependencies.
    pub edges: Vec<Edge>,
    /// Whether the graph was truncated.
    pub truncated: bool,
}

/// A subject.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = GraphNode)]
pub struct Node {
    /// Unique identifier.
    #[schema(value_type = String)]
    pub id: Xid,
    /// Kind of the subject.
    pub kind: String,
    /// Name; `name@version` for templates.
    pub name: String,
    /// Status, if the subject has one.
    pub status: Option<String>,
    /// Path in this API.
    pub href: String,
}

/// A dependency between two subjects.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = GraphEdge)]
pub struct Edge {
    /// ID of the dependent subject.
    #[schema(value_type = String)]
    pub from: Xid,
    /// ID of the dependency.
    #[schema(value_type = String)]
    pub to: Xid,
    /// Relationship, as a phrase between the two names: `runs on`.
    pub why: String,
}

impl From<graph::Graph> for Graph {
    fn from(graph: graph::Graph) -> Self {
        Self {
            nodes: graph.nodes.into_iter().map(Node::from).collect(),
            edges: graph.edges.into_iter().map(Edge::from).collect(),
            truncated: graph.is_truncated,
        }
    }
}

impl From<graph::Node> for Node {
    fn from(node: graph::Node) -> Self {
        Self {
            href: href(node.kind, node.id, &node.name),
            id: node.id,
            kind: node.kind.to_string(),
            name: node.name,
            status: node.status,
        }
    }
}

impl From<graph::Edge> for Edge {
    fn from(edge: graph::Edge) -> Self {
        Self { from: edge.from, to: edge.to, why: edge.relation.to_string() }
    }
}
