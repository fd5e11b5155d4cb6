//! Renders graphs as SVG.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::layout;
use super::tone::Tone;
use super::{Edge, Graph, Node};
use crate::Xid;

const BOX: (usize, usize) = (200, 46);
const GAP: (usize, usize) = (70, 16);
const MARGIN: usize = 20;
/// The maximum number of characters that fit into a box.
const MAX_CHARACTERS: usize = 26;

const STYLE: &str = "\
text{font-family:system-ui,sans-serif;fill:#1c2430}.name{font-size:13px;font-weight:600}\
.condition{font-size:11px;fill:#5b6675}rect{fill:#fff;stroke-width:1.5}.subject rect{stroke-width:3}\
path{fill:none;stroke:#9aa5b5;stroke-width:1.2}.tip{fill:#9aa5b5;stroke:none}\
@media(prefers-color-scheme:dark){text{fill:#e8edf4}.condition{fill:#a3afbf}rect{fill:#1b222c}\
path{stroke:#66717f}.tip{fill:#66717f}}";

/// The upper left corner of each node.
type Corners = HashMap<Xid, (usize, usize)>;

pub(super) fn write(graph: &Graph) -> String {
    let columns = layout::columns(graph);
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let (width, height) = (extent(columns.len(), BOX.0, GAP.0), extent(rows, BOX.1, GAP.1));
    let corners = corners(graph, &columns, height);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
         <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" \
         markerHeight=\"8\" orient=\"auto\"><path class=\"tip\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n",
        escaped(&graph.title())
    );
    for edge in &graph.edges {
        draw_edge(&mut svg, edge, &corners);
    }
    for (i, node) in graph.nodes.iter().enumerate() {
        draw_node(&mut svg, node, i == 0, corners[&node.id]);
    }
    svg + "</svg>\n"
}

/// The total size of `count` boxes with gaps and margins.
fn extent(count: usize, size: usize, gap: usize) -> usize {
    2 * MARGIN + count * (size + gap) - gap.min(count * gap)
}

fn corners(graph: &Graph, columns: &[Vec<usize>], height: usize) -> Corners {
    let mut corners = Corners::new();
    for (column, nodes) in columns.iter().enumerate() {
        let top = MARGIN + (height - extent(nodes.len(), BOX.1, GAP.1)) / 2;
        for (row, node) in nodes.iter().enumerate() {
            let corner = (MARGIN + column * (BOX.0 + GAP.0), top + row * (BOX.1 + GAP.1));
            corners.insert(graph.nodes[*node].id, corner);
        }
    }
    corners
}

fn draw_edge(svg: &mut String, edge: &Edge, corners: &Corners) {
    let (Some(from), Some(to)) = (corners.get(&edge.from), corners.get(&edge.to)) else { return };
    let (x, y) = (from.0 + BOX.0, from.1 + BOX.1 / 2);
    let (to_x, to_y) = (to.0, to.1 + BOX.1 / 2);
    let bend = GAP.0 / 2;
    let (near, far) = (x + bend, to_x.saturating_sub(bend));
    writeln!(
        svg,
        "<path d=\"M{x} {y}C{near} {y} {far} {to_y} {to_x} {to_y}\" marker-end=\"url(#tip)\">\
         <title>{}</title></path>",
        escaped(edge.relation.label())
    )
    .expect("writing to a String is infallible");
}

fn draw_node(svg: &mut String, node: &Node, is_subject: bool, (x, y): (usize, usize)) {
    let tone = Tone::from_status(node.status.as_deref());
    let subject = if is_subject { " subject" } else { "" };
    let (width, height) = BOX;
    let condition = node.condition();
    let tooltip = format!("{} {}: {condition}", node.name, node.id);
    writeln!(
        svg,
        "<g class=\"node {}{subject}\"><title>{}</title>\
         <rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"7\" stroke=\"{}\"/>\
         <text class=\"name\" x=\"{}\" y=\"{}\">{}</text>\
         <text class=\"condition\" x=\"{}\" y=\"{}\">{}</text></g>",
        tone.class(),
        escaped(&tooltip),
        tone.color(),
        x + 12,
        y + 20,
        escaped(&shortened(&node.name)),
        x + 12,
        y + 36,
        escaped(&shortened(&condition)),
    )
    .expect("writing to a String is infallible");
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= MAX_CHARACTERS {
        return text.to_owned();
    }
    text.chars().take(MAX_CHARACTERS - 1).chain(['…']).collect()
}

/// Escapes text for XML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
