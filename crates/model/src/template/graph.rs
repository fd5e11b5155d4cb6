//! The dependency graph of declarations.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::Template;
use crate::Invalid;

/// The maximum number of edges after expanding groups.
pub(super) const MAX_EDGES: usize = 200_000;

/// The members of every group of a template, with nested groups expanded. `position` maps names to
/// declarations, of which there are `count`; names it does not know are skipped.
pub(super) fn groups<'a>(
    template: &'a Template,
    count: usize,
    position: &dyn Fn(&str) -> Option<usize>,
) -> Result<HashMap<&'a str, Vec<usize>>, Invalid> {
    let indexes: HashMap<&str, usize> =
        template.groups.iter().enumerate().map(|(i, group)| (group.name.as_str(), i)).collect();
    let inner: Vec<Vec<usize>> = template
        .groups
        .iter()
        .map(|group| group.resources.iter().filter_map(|name| indexes.get(name.as_str()).copied()))
        .map(Iterator::collect)
        .collect();
    if let Some(cycle) = cycle(&inner) {
        let cycle_text = format_cycle(&cycle, |i| template.groups[i].name.as_str());
        let field = format!("groups[{}].resources", cycle[0]);
        return Err(Invalid::new(field, format!("groups contain each other: {cycle_text}")));
    }
    let mut expanded: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut edges = Edges::new(count);
    for i in order(&inner) {
        let path = format!("groups[{i}].resources");
        let members = expand_groups(distinct(&template.groups[i].resources), &expanded, position);
        let members = edges.collect(&path, members)?;
        expanded.insert(&template.groups[i].name, members);
    }
    Ok(expanded)
}

/// Distinct names: repeating a name a million times costs no more than naming it once.
pub(super) fn distinct(names: &[String]) -> impl Iterator<Item = &str> {
    let mut seen = HashSet::new();
    names.iter().map(String::as_str).filter(move |name| seen.insert(*name))
}

/// The declarations that names stand for; a group stands for all of its members.
pub(super) fn expand_groups<'a>(
    names: impl Iterator<Item = &'a str>,
    groups: &HashMap<&str, Vec<usize>>,
    position: &dyn Fn(&str) -> Option<usize>,
) -> impl Iterator<Item = usize> {
    names.flat_map(move |name| {
        let group = groups.get(name);
        let single = if group.is_none() { position(name) } else { None };
        group.into_iter().flatten().copied().chain(single)
    })
}

/// A cycle in the graph, if any.
pub(super) fn cycle(after: &[Vec<usize>]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Unvisited,
        OnPath,
        Done,
    }
    let mut states = vec![State::Unvisited; after.len()];
    for start in 0..after.len() {
        let mut path: Vec<(usize, usize)> = Vec::new();
        if states[start] == State::Unvisited {
            states[start] = State::OnPath;
            path.push((start, 0));
        }
        while let Some((here, edge)) = path.last_mut() {
            let Some(&next) = after[*here].get(*edge) else {
                states[*here] = State::Done;
                path.pop();
                continue;
            };
            *edge += 1;
            match states[next] {
                State::Done => {}
                State::Unvisited => {
                    states[next] = State::OnPath;
                    path.push((next, 0));
                }
                State::OnPath => {
                    let begin = path.iter().position(|&(one, _)| one == next).unwrap_or(0);
                    return Some(path[begin..].iter().map(|&(one, _)| one).collect());
                }
            }
        }
    }
    None
}

/// A cycle as `a → b → a`.
pub(super) fn format_cycle<'a>(cycle: &[usize], name: impl Fn(usize) -> &'a str) -> String {
    let closed = cycle.iter().chain(cycle.first());
    closed.map(|&i| name(i)).collect::<Vec<_>>().join(" → ")
}

/// A topological order; ties are broken by position. Declarations on a cycle are omitted.
pub(super) fn order(after: &[Vec<usize>]) -> Vec<usize> {
    let mut pending: Vec<usize> = after.iter().map(Vec::len).collect();
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); after.len()];
    for (i, others) in after.iter().enumerate() {
        for &other in others {
            dependents[other].push(i);
        }
    }
    let ready = (0..after.len()).filter(|&i| pending[i] == 0).map(Reverse);
    let mut ready: BinaryHeap<Reverse<usize>> = ready.collect();
    let mut order = Vec::with_capacity(after.len());
    while let Some(Reverse(i)) = ready.pop() {
        order.push(i);
        for &next in &dependents[i] {
            pending[next] -= 1;
            if pending[next] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    order
}

/// A topological order with declarations on a cycle at the end.
pub(super) fn complete_order(after: &[Vec<usize>]) -> Vec<usize> {
    let mut order = order(after);
    if order.len() < after.len() {
        let found: HashSet<usize> = order.iter().copied().collect();
        order.extend((0..after.len()).filter(|i| !found.contains(i)));
    }
    order
}

/// Collects the distinct dependencies of declarations and counts them.
pub(super) struct Edges {
    seen: Vec<usize>,
    round: usize,
    total: usize,
}

impl Edges {
    pub(super) fn new(count: usize) -> Self {
        Self { seen: vec![0; count], round: 0, total: 0 }
    }

    /// The dependencies of one declaration, sorted; an error when the total exceeds the limit.
    pub(super) fn collect(
        &mut self,
        path: &str,
        others: impl Iterator<Item = usize>,
    ) -> Result<Vec<usize>, Invalid> {
        self.round += 1;
        let mut list = Vec::new();
        for other in others {
            if std::mem::replace(&mut self.seen[other], self.round) != self.round {
                list.push(other);
                self.total += 1;
            }
            if self.total > MAX_EDGES {
                return Err(Invalid::new(path, too_many_edges()));
            }
        }
        list.sort_unstable();
        Ok(list)
    }
}

pub(super) fn too_many_edges() -> String {
    format!("more than {MAX_EDGES} dependencies; depend on fewer resources or on smaller groups")
}
