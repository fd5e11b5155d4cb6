//! A graph that grows level by level.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Direction, Edge, Graph, KINDS, MAX_EDGES, MAX_NODES, Node};
use crate::Xid;
use crate::event::Kind;

/// An edge to somebody, who may be new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The edge.
    pub edge: Edge,
    /// What is at its far end, as seen from the subject.
    pub kind: Kind,
}

/// A graph in the making.
#[derive(Debug)]
pub struct Growing {
    graph: Graph,
    /// Where each node is in the graph.
    known: HashMap<Xid, usize>,
    linked: BTreeSet<(usize, usize)>,
    /// Where those begin whose neighbours are not known yet.
    grown: usize,
    most: (usize, usize),
}

impl Growing {
    /// A graph of nothing but its subject.
    pub fn new(subject: Node, direction: Direction) -> Self {
        Self::at_most(subject, direction, (MAX_NODES, MAX_EDGES))
    }

    /// The same with other limits, of nodes and of edges.
    pub(super) fn at_most(subject: Node, direction: Direction, most: (usize, usize)) -> Self {
        let known = HashMap::from([(subject.id, 0)]);
        let (nodes, edges) = (vec![subject], Vec::new());
        let graph = Graph { direction, nodes, edges, is_truncated: false };
        Self { graph, known, linked: BTreeSet::new(), grown: 0, most }
    }

    /// Those whose neighbours are wanted next, by kind. None of them is wanted again.
    pub fn next_level(&mut self) -> BTreeMap<usize, (Kind, Vec<Xid>)> {
        let mut level = BTreeMap::new();
        for node in &self.graph.nodes[self.grown..] {
            let (_, ids) = level.entry(rank(node.kind)).or_insert((node.kind, Vec::new()));
            ids.push(node.id);
        }
        self.grown = self.graph.nodes.len();
        level
    }

    /// Whom these edges lead to that is not known yet, by kind.
    pub fn strangers(&self, found: &[Found]) -> BTreeMap<usize, (Kind, Vec<Xid>)> {
        let new = found.iter().map(|one| (rank(one.kind), self.far(&one.edge), one.kind));
        let new: BTreeMap<_, _> = new
            .filter(|(_, id, _)| !self.known.contains_key(id))
            .map(|(rank, id, kind)| ((rank, id), kind))
            .collect();
        let mut by_kind = BTreeMap::new();
        for ((rank, id), kind) in new {
            by_kind.entry(rank).or_insert((kind, Vec::new())).1.push(id);
        }
        by_kind
    }

    /// Adds what was found, as far as those at its far end may be seen: they are among `nodes`, or known.
    pub fn add(&mut self, found: &[Found], mut nodes: Vec<Node>) {
        nodes.sort_by(|a, b| (rank(a.kind), &a.name, a.id).cmp(&(rank(b.kind), &b.name, b.id)));
        for node in nodes {
            if self.known.contains_key(&node.id) {
                continue;
            }
            if self.graph.nodes.len() >= self.most.0 {
                self.graph.is_truncated = true;
                break;
            }
            self.known.insert(node.id, self.graph.nodes.len());
            self.graph.nodes.push(node);
        }
        for Found { edge, .. } in found {
            let (Some(from), Some(to)) = (self.known.get(&edge.from), self.known.get(&edge.to))
            else {
                continue;
            };
            if self.graph.edges.len() >= self.most.1 {
                self.graph.is_truncated = true;
                break;
            }
            if self.linked.insert((*from, *to)) {
                self.graph.edges.push(*edge);
            }
        }
    }

    /// The graph as it is now.
    pub fn done(mut self) -> Graph {
        let known = &self.known;
        self.graph.edges.sort_by_key(|edge| (known[&edge.from], known[&edge.to]));
        self.graph
    }

    fn far(&self, edge: &Edge) -> Xid {
        match self.graph.direction {
            Direction::Dependencies => edge.to,
            Direction::Dependents => edge.from,
        }
    }
}

/// The place of a kind among those of graphs.
fn rank(kind: Kind) -> usize {
    KINDS.iter().position(|other| *other == kind).unwrap_or(KINDS.len())
}
