//! The graph of things: what must be there before what.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::Template;
use crate::Invalid;

/// The most edges, groups taken apart.
pub(super) const MAX_EDGES: usize = 200_000;

/// The things in every group of a template, of so many things in all, groups within groups taken
/// apart. Names that `thing` does not know are left out.
pub(super) fn groups<'a>(
    template: &'a Template,
    things: usize,
    thing: &dyn Fn(&str) -> Option<usize>,
) -> Result<HashMap<&'a str, Vec<usize>>, Invalid> {
    let places: HashMap<&str, usize> =
        template.groups.iter().enumerate().map(|(i, group)| (group.name.as_str(), i)).collect();
    let inner: Vec<Vec<usize>> = template
        .groups
        .iter()
        .map(|group| group.resources.iter().filter_map(|name| places.get(name.as_str()).copied()))
        .map(Iterator::collect)
        .collect();
    if let Some(cycle) = cycle(&inner) {
        let words = cycle_words(&cycle, |i| template.groups[i].name.as_str());
        let field = format!("groups[{}].resources", cycle[0]);
        return Err(Invalid::new(field, format!("groups contain each other: {words}")));
    }
    let mut found: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut edges = Edges::new(things);
    for i in order(&inner) {
        let path = format!("groups[{i}].resources");
        let members = taken_apart(each_once(&template.groups[i].resources), &found, thing);
        let members = edges.of(&path, members)?;
        found.insert(&template.groups[i].name, members);
    }
    Ok(found)
}

/// Names, each once: a list of one name a million times is no more work than the name.
pub(super) fn each_once(names: &[String]) -> impl Iterator<Item = &str> {
    let mut seen = HashSet::new();
    names.iter().map(String::as_str).filter(move |name| seen.insert(*name))
}

/// The things that names stand for: groups for all that is in them.
pub(super) fn taken_apart<'a>(
    names: impl Iterator<Item = &'a str>,
    groups: &HashMap<&str, Vec<usize>>,
    thing: &dyn Fn(&str) -> Option<usize>,
) -> impl Iterator<Item = usize> {
    names.flat_map(move |name| {
        let group = groups.get(name);
        let single = if group.is_none() { thing(name) } else { None };
        group.into_iter().flatten().copied().chain(single)
    })
}

/// A way from a thing back to itself, if there is one.
pub(super) fn cycle(after: &[Vec<usize>]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        OnTheWay,
        Done,
    }
    let mut seen = vec![Seen::No; after.len()];
    for start in 0..after.len() {
        let mut way: Vec<(usize, usize)> = Vec::new();
        if seen[start] == Seen::No {
            seen[start] = Seen::OnTheWay;
            way.push((start, 0));
        }
        while let Some((here, edge)) = way.last_mut() {
            let Some(&next) = after[*here].get(*edge) else {
                seen[*here] = Seen::Done;
                way.pop();
                continue;
            };
            *edge += 1;
            match seen[next] {
                Seen::Done => {}
                Seen::No => {
                    seen[next] = Seen::OnTheWay;
                    way.push((next, 0));
                }
                Seen::OnTheWay => {
                    let begin = way.iter().position(|&(one, _)| one == next).unwrap_or(0);
                    return Some(way[begin..].iter().map(|&(one, _)| one).collect());
                }
            }
        }
    }
    None
}

/// A cycle as people read it: `a → b → a`.
pub(super) fn cycle_words<'a>(cycle: &[usize], name: impl Fn(usize) -> &'a str) -> String {
    let closed = cycle.iter().chain(cycle.first());
    closed.map(|&i| name(i)).collect::<Vec<_>>().join(" → ")
}

/// An order in which everything comes after what must be there first; among what could be next, the
/// first goes first. What is on a cycle is left out.
pub(super) fn order(after: &[Vec<usize>]) -> Vec<usize> {
    let mut waiting: Vec<usize> = after.iter().map(Vec::len).collect();
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); after.len()];
    for (i, others) in after.iter().enumerate() {
        for &other in others {
            before[other].push(i);
        }
    }
    let ready = (0..after.len()).filter(|&i| waiting[i] == 0).map(Reverse);
    let mut ready: BinaryHeap<Reverse<usize>> = ready.collect();
    let mut order = Vec::with_capacity(after.len());
    while let Some(Reverse(i)) = ready.pop() {
        order.push(i);
        for &next in &before[i] {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    order
}

/// The order of all; what is on a cycle comes last.
pub(super) fn complete_order(after: &[Vec<usize>]) -> Vec<usize> {
    let mut order = order(after);
    if order.len() < after.len() {
        let found: HashSet<usize> = order.iter().copied().collect();
        order.extend((0..after.len()).filter(|i| !found.contains(i)));
    }
    order
}

/// Collects the things that must be there before one, each once.
pub(super) struct Edges {
    seen: Vec<usize>,
    round: usize,
    total: usize,
}

impl Edges {
    pub(super) fn new(things: usize) -> Self {
        Self { seen: vec![0; things], round: 0, total: 0 }
    }

    /// The things of one, in order; refused when all together are too many.
    pub(super) fn of(
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
                return Err(Invalid::new(path, too_many()));
            }
        }
        list.sort_unstable();
        Ok(list)
    }
}

pub(super) fn too_many() -> String {
    format!("there are more than {MAX_EDGES} dependencies; depend on fewer, or smaller groups")
}
