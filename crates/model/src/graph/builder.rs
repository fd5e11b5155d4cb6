//! Builds a graph level by level.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Direction, Edge, Graph, KINDS, MAX_EDGES, MAX_NODES, Node};
use crate::Xid;
use crate::event::Kind;

/// An edge to a neighbour that may be new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// The edge.
    pub edge: Edge,
    /// The kind of the neighbour.
    pub kind: Kind,
}

/// A graph under construction.
#[derive(Debug)]
pub struct GraphBuilder {
    graph: Graph,
    /// The position of each node in the graph.
    positions: HashMap<Xid, usize>,
    linked: BTreeSet<(usize, usize)>,
    /// The position of the first node that is not expanded yet.
    expanded: usize,
    limits: (usize, usize),
}

impl GraphBuilder {
    /// A graph that contains only its subject.
    pub fn new(subject: Node, direction: Direction) -> Self {
        Self::with_limits(subject, direction, (MAX_NODES, MAX_EDGES))
    }

    /// The same with limits for nodes and edges.
    pub(super) fn with_limits(subject: Node, direction: Direction, limits: (usize, usize)) -> Self {
        let positions = HashMap::from([(subject.id, 0)]);
        let (nodes, edges) = (vec![subject], Vec::new());
        let graph = Graph { direction, nodes, edges, is_truncated: false };
        Self { graph, positions, linked: BTreeSet::new(), expanded: 0, limits }
    }

    /// The nodes to expand next, by kind. Each node is returned once.
    pub fn next_level(&mut self) -> BTreeMap<usize, (Kind, Vec<Xid>)> {
        let mut level = BTreeMap::new();
        for node in &self.graph.nodes[self.expanded..] {
            let (_, ids) = level.entry(rank(node.kind)).or_insert((node.kind, Vec::new()));
            ids.push(node.id);
        }
        self.expanded = self.graph.nodes.len();
        level
    }

    /// The neighbours at these edges that are not in the graph yet, by kind.
    pub fn new_neighbours(&self, found: &[Neighbour]) -> BTreeMap<usize, (Kind, Vec<Xid>)> {
        let new = found.iter().map(|one| (rank(one.kind), self.neighbour(&one.edge), one.kind));
        let new: BTreeMap<_, _> = new
            .filter(|(_, id, _)| !self.positions.contains_key(id))
            .map(|(rank, id, kind)| ((rank, id), kind))
            .collect();
        let mut by_kind = BTreeMap::new();
        for ((rank, id), kind) in new {
            by_kind.entry(rank).or_insert((kind, Vec::new())).1.push(id);
        }
        by_kind
    }

    /// Adds edges whose neighbours are visible: those in `nodes`, or already in the graph.
    pub fn add(&mut self, found: &[Neighbour], mut nodes: Vec<Node>) {
        nodes.sort_by(|a, b| (rank(a.kind), &a.name, a.id).cmp(&(rank(b.kind), &b.name, b.id)));
        for node in nodes {
            if self.positions.contains_key(&node.id) {
                continue;
            }
            if self.graph.nodes.len() >= self.limits.0 {
                self.graph.is_truncated = true;
                break;
            }
            self.positions.insert(node.id, self.graph.nodes.len());
            self.graph.nodes.push(node);
        }
        for Neighbour { edge, .. } in found {
            let (Some(from), Some(to)) =
                (self.positions.get(&edge.from), self.positions.get(&edge.to))
            else {
                continue;
            };
            if self.graph.edges.len() >= self.limits.1 {
                self.graph.is_truncated = true;
                break;
            }
            if self.linked.insert((*from, *to)) {
                self.graph.edges.push(*edge);
            }
        }
    }

    /// Finishes the graph.
    pub fn build(mut self) -> Graph {
        let positions = &self.positions;
        self.graph.edges.sort_by_key(|edge| (positions[&edge.from], positions[&edge.to]));
        self.graph
    }

    fn neighbour(&self, edge: &Edge) -> Xid {
        match self.graph.direction {
            Direction::Dependencies => edge.to,
            Direction::Dependents => edge.from,
        }
    }
}

/// The position of a kind in [`KINDS`].
fn rank(kind: Kind) -> usize {
    KINDS.iter().position(|other| *other == kind).unwrap_or(KINDS.len())
}
