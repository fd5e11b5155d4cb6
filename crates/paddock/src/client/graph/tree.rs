//! A graph as a text tree. Nodes that are reachable on several paths are expanded once.

use std::collections::{HashMap, HashSet};

use model::Xid;
use model::graph::Relation;
use wire::graph::{Graph, Node};

use crate::client::table::clean;

/// A pending line: node, label of the edge to it, and indentation.
struct Line<'a> {
    id: Xid,
    why: &'a str,
    lead: String,
    is_last: bool,
    depth: usize,
}

/// Renders the tree below the subject, which is the first node.
pub(super) fn tree(graph: &Graph, from_subject: bool) -> String {
    let nodes: HashMap<Xid, &Node> = graph.nodes.iter().map(|node| (node.id, node)).collect();
    let mut below: HashMap<Xid, Vec<(Xid, &str)>> = HashMap::new();
    for edge in &graph.edges {
        let (near, far) = if from_subject { (edge.from, edge.to) } else { (edge.to, edge.from) };
        below.entry(near).or_default().push((far, &edge.why));
    }
    let (mut text, mut shown) = (String::new(), HashSet::new());
    let subject = graph.nodes.first().map(|node| node.id);
    let mut open: Vec<Line<'_>> = subject.into_iter().map(Line::first).collect();
    while let Some(line) = open.pop() {
        let Some(node) = nodes.get(&line.id) else { continue };
        let children = below.get(&line.id).map_or(&[][..], Vec::as_slice);
        let is_new = shown.insert(line.id);
        text += &line.render(node, !is_new && !children.is_empty());
        if is_new {
            open.extend(line.children(children));
        }
    }
    text
}

impl<'a> Line<'a> {
    fn first(id: Xid) -> Self {
        Self { id, why: "", lead: String::new(), is_last: true, depth: 0 }
    }

    /// Lines of the children in reverse order, because they are popped from the end.
    fn children(&self, children: &[(Xid, &'a str)]) -> Vec<Line<'a>> {
        let bar = match (self.depth, self.is_last) {
            (0, _) => "",
            (_, true) => "   ",
            (_, false) => "│  ",
        };
        let lines = children.iter().enumerate().map(|(i, &(id, why))| Line {
            id,
            why,
            lead: format!("{}{bar}", self.lead),
            is_last: i + 1 == children.len(),
            depth: self.depth + 1,
        });
        lines.rev().collect()
    }

    fn render(&self, node: &Node, is_above: bool) -> String {
        let branch = match (self.depth, self.is_last) {
            (0, _) => "",
            (_, true) => "└─ ",
            (_, false) => "├─ ",
        };
        let why = self.why.parse().map_or(self.why, |relation: Relation| relation.label());
        let why = if why.is_empty() { String::new() } else { format!("{why} ") };
        let status = node.status.as_ref().map(|status| format!("  {status}")).unwrap_or_default();
        let again = if is_above { "  (see above)" } else { "" };
        let text = format!("{why}{}/{}{status}  {}{again}", node.kind, node.name, node.id);
        format!("{}{branch}{}\n", self.lead, clean(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Padding of ids, abbreviated as `~`.
    const REST: &str = "0000000000000000000";

    fn shown(graph: &str, from_subject: bool) -> String {
        let graph = serde_json::from_str(&graph.replace('~', REST)).unwrap();
        tree(&graph, from_subject).replace(REST, "")
    }

    const SHOP: &str = r#"{"nodes":[
        {"id":"e~","kind":"environment","name":"shop","status":"deployed","href":""},
        {"id":"b~","kind":"resource","name":"bus","status":"applied","href":""},
        {"id":"v~","kind":"resource","name":"web","status":"applied","href":""},
        {"id":"d~","kind":"deployment","name":"web","status":"running","href":""},
        {"id":"c~","kind":"cluster","name":"prod","status":null,"href":""}],
        "edges":[{"from":"e~","to":"b~","why":"has"},{"from":"e~","to":"v~","why":"has"},
        {"from":"b~","to":"d~","why":"made"},{"from":"v~","to":"b~","why":"is made after"},
        {"from":"d~","to":"c~","why":"runs on"}],"truncated":false}"#;

    #[test]
    fn dependencies_are_indented_below_their_dependents() {
        let want = "\
environment/shop  deployed  e
├─ contains resource/bus  applied  b
│  └─ created deployment/web  running  d
│     └─ runs on cluster/prod  c
└─ contains resource/web  applied  v
   └─ depends on resource/bus  applied  b  (see above)
";
        assert_eq!(shown(SHOP, true), want);
    }

    #[test]
    fn cycles_terminate() {
        let circle = r#"{"nodes":[
            {"id":"a~","kind":"x","name":"a","href":""},
            {"id":"b~","kind":"x","name":"b","href":""}],
            "edges":[{"from":"a~","to":"b~","why":"w"},{"from":"b~","to":"a~","why":"w"}],
            "truncated":false}"#;
        let want = "x/a  a\n└─ w x/b  b\n   └─ w x/a  a  (see above)\n";
        assert_eq!(shown(circle, true), want);
        assert_eq!(shown(circle, false), want);
    }
}
