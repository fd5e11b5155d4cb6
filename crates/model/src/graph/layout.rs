//! Where the nodes of a drawing stand: in columns, so that edges go from left to right.

use std::collections::HashMap;

use super::Graph;

/// How often each column is put in order by its neighbours.
const SWEEPS: usize = 2;

/// The columns, and in each the nodes from top to bottom, by their place in the graph.
pub(super) fn columns(graph: &Graph) -> Vec<Vec<usize>> {
    let places: HashMap<_, _> = (0..).zip(&graph.nodes).map(|(i, node)| (node.id, i)).collect();
    let edges: Vec<(usize, usize)> = graph
        .edges
        .iter()
        .filter_map(|edge| Some((*places.get(&edge.from)?, *places.get(&edge.to)?)))
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
    /// Who needs each node.
    before: Vec<Vec<usize>>,
    /// What each node needs.
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

    /// The column of each node: one right of the last that needs it. Where nodes need each other in a
    /// circle, the first of them is taken as if nobody needed it.
    fn layers(&self) -> Vec<usize> {
        let mut layers = vec![0; self.after.len()];
        let mut waits: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let mut is_done = vec![false; waits.len()];
        let mut open: Vec<usize> =
            (0..waits.len()).filter(|node| waits[*node] == 0).rev().collect();
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
                waits[*next] = waits[*next].saturating_sub(1);
                if waits[*next] == 0 {
                    open.push(*next);
                }
            }
        }
    }
}

/// Puts the nodes of each column in the order of the middle of their neighbours on one side.
fn sort(columns: &mut [Vec<usize>], neighbours: &[Vec<usize>], from_right: bool) {
    let mut heights = HashMap::new();
    note(&mut heights, columns.iter());
    let mut order: Vec<usize> = (0..columns.len()).collect();
    if from_right {
        order.reverse();
    }
    for column in order {
        columns[column].sort_by(|a, b| {
            let [a, b] = [a, b].map(|node| middle(*node, &neighbours[*node], &heights));
            a.total_cmp(&b)
        });
        note(&mut heights, std::iter::once(&columns[column]));
    }
}

fn note<'a>(heights: &mut HashMap<usize, f64>, columns: impl Iterator<Item = &'a Vec<usize>>) {
    for column in columns {
        // Columns are drawn around one line: what counts is how far a node is from it.
        let half = small(column.len()) / 2.0;
        heights.extend((0..).zip(column).map(|(row, node)| (*node, small(row) - half)));
    }
}

/// The middle of a node's neighbours; where it is now if it has none.
fn middle(node: usize, neighbours: &[usize], heights: &HashMap<usize, f64>) -> f64 {
    if neighbours.is_empty() {
        return heights[&node];
    }
    neighbours.iter().map(|other| heights[other]).sum::<f64>() / small(neighbours.len())
}

fn small(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
