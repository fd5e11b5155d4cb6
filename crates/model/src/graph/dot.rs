//! Renders graphs as DOT.

use std::fmt::Write as _;

use super::tone::Tone;
use super::{Graph, Node};

pub(super) fn write(graph: &Graph) -> String {
    let mut text = String::from("digraph paddock {\n");
    let title = quoted(&graph.title());
    line(&mut text, &format!("graph [rankdir=LR, label={title}, labelloc=t]"));
    line(&mut text, "node [shape=box, style=rounded, fontname=\"sans-serif\"]");
    line(&mut text, "edge [fontname=\"sans-serif\", fontsize=10, color=\"#7a869a\"]");
    for (i, node) in graph.nodes.iter().enumerate() {
        line(&mut text, &node_statement(node, i == 0));
    }
    for edge in &graph.edges {
        let (from, to) = (quoted(&edge.from.to_string()), quoted(&edge.to.to_string()));
        line(&mut text, &format!("{from} -> {to} [label={}]", quoted(edge.relation.label())));
    }
    text + "}\n"
}

fn node_statement(node: &Node, is_subject: bool) -> String {
    let label = quoted(&format!("{}\n{}", node.name, node.condition()));
    let color = quoted(Tone::from_status(node.status.as_deref()).color());
    let width = if is_subject { ", penwidth=3" } else { "" };
    format!("{} [label={label}, color={color}{width}]", quoted(&node.id.to_string()))
}

fn line(text: &mut String, statement: &str) {
    writeln!(text, "  {statement};").expect("writing to a String is infallible");
}

/// A quoted and escaped string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
