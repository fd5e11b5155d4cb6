//! Layered layout: nodes in columns, so that edges go from left to right.

use std::collections::HashMap;

use super::Graph;

/// The number of passes that sort columns by neighbours.
const SWEEPS: usize = 2;

/// The columns, each with its nodes from top to bottom, by position in the graph.
pub(super) fn columns(graph: &Graph) -> Vec<Vec<usize>> {
    let positions: HashMap<_, _> = (0..).zip(&graph.nodes).map(|(i, node)| (node.id, i)).collect();
    let edges: Vec<(usize, usize)> = graph
        .edges
        .iter()
        .filter_map(|edge| Some((*positions.get(&edge.from)?, *positions.get(&edge.to)?)))
        .collect();
    let neighbours = Neighbours::new(graph.nodes.len(), &edges);
    let mut columns: Vec<Vec<usize>> = Vec::new();
    for (node, layer) in neighbours.layers().into_iter().enumerate() {
        columns.resize_with(columns.len().max(layer + 1), Vec::new);
        columns[layer].push(node);
    }
    for _ in 0..SWEEPS {
        sort(&mut columns, &neighbours.before, false);
        sort(&mut columns, &neighbours.after, true);
    }
    columns
}

struct Neighbours {
    /// The dependents of each node.
    before: Vec<Vec<usize>>,
    /// The dependencies of each node.
    after: Vec<Vec<usize>>,
}

impl Neighbours {
    fn new(nodes: usize, edges: &[(usize, usize)]) -> Self {
        let mut all = Self { before: vec![Vec::new(); nodes], after: vec![Vec::new(); nodes] };
        for (from, to) in edges.iter().filter(|(from, to)| from != to) {
            all.after[*from].push(*to);
            all.before[*to].push(*from);
        }
        all
    }

    /// The column of each node: one to the right of its rightmost dependent. On a cycle, the first
    /// node is treated as if it had no dependents.
    fn layers(&self) -> Vec<usize> {
        let mut layers = vec![0; self.after.len()];
        let mut pending: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let mut is_done = vec![false; pending.len()];
        let mut open: Vec<usize> =
            (0..pending.len()).filter(|node| pending[*node] == 0).rev().collect();
        let mut stuck = 0;
        loop {
            let node = match open.pop() {
                Some(node) => node,
                None => {
                    while stuck < is_done.len() && is_done[stuck] {
                        stuck += 1;
                    }
                    if stuck == is_done.len() {
                        return layers;
                    }
                    stuck
                }
            };
            is_done[node] = true;
            for next in &self.after[node] {
                if is_done[*next] {
                    continue;
                }
                layers[*next] = layers[*next].max(layers[node] + 1);
                pending[*next] = pending[*next].saturating_sub(1);
                if pending[*next] == 0 {
                    open.push(*next);
                }
            }
        }
    }
}

/// Sorts each column by the mean height of the neighbours on one side (barycenter heuristic).
fn sort(columns: &mut [Vec<usize>], neighbours: &[Vec<usize>], from_right: bool) {
    let mut heights = HashMap::new();
    record_heights(&mut heights, columns.iter());
    let mut order: Vec<usize> = (0..columns.len()).collect();
    if from_right {
        order.reverse();
    }
    for column in order {
        columns[column].sort_by(|a, b| {
            let [a, b] = [a, b].map(|node| mean_height(*node, &neighbours[*node], &heights));
            a.total_cmp(&b)
        });
        record_heights(&mut heights, std::iter::once(&columns[column]));
    }
}

fn record_heights<'a>(
    heights: &mut HashMap<usize, f64>,
    columns: impl Iterator<Item = &'a Vec<usize>>,
) {
    for column in columns {
        // Columns are centered vertically: heights are relative to the center line.
        let half = to_f64(column.len()) / 2.0;
        heights.extend((0..).zip(column).map(|(row, node)| (*node, to_f64(row) - half)));
    }
}

/// The mean height of a node's neighbours; its own height if it has none.
fn mean_height(node: usize, neighbours: &[usize], heights: &HashMap<usize, f64>) -> f64 {
    if neighbours.is_empty() {
        return heights[&node];
    }
    neighbours.iter().map(|other| heights[other]).sum::<f64>() / to_f64(neighbours.len())
}

fn to_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
