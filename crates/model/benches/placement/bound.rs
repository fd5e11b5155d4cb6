//! Upper bounds of a packing, and the exact optimum for small inputs.

use std::collections::BTreeMap;

use crate::families::{Amounts, Family};

/// The volume bound: the linear program in which all nodes are one and requests are divisible. Its
/// dual is a bound for any prices, which are improved by subgradient steps.
pub(crate) fn volume(family: &Family) -> f64 {
    let weights = family.weights();
    let shares: Vec<[f64; 3]> = (0..family.requests.len()).map(|i| family.shares(i)).collect();
    let (mut prices, mut best) = ([1.0f64; 3], f64::INFINITY);
    for round in 1..=4000 {
        let (mut value, mut slack) = (prices.iter().sum::<f64>(), [1.0f64; 3]);
        for (weight, share) in weights.iter().zip(&shares) {
            let gain = weight - (0..3).map(|k| prices[k] * share[k]).sum::<f64>();
            if gain > 0.0 {
                value += gain;
                (0..3).for_each(|k| slack[k] -= share[k]);
            }
        }
        best = best.min(value);
        let step = 4.0 / f64::from(round).sqrt();
        (0..3).for_each(|k| prices[k] = (prices[k] - step * slack[k]).max(0.0));
    }
    best
}

/// A tighter bound for identical nodes and few request sizes: every node holds a set of requests
/// that fits on it, and only the number of nodes per set is divisible.
///
/// Also the dual: with a price per size, no node earns more than its most expensive set, and a
/// request adds its worth above its price.
pub(crate) fn by_node(family: &Family) -> Option<f64> {
    let first = family.nodes.first()?;
    let mut worth: BTreeMap<Amounts, Vec<f64>> = BTreeMap::new();
    for ((_, amounts), weight) in family.requests.iter().zip(family.weights()) {
        worth.entry(*amounts).or_default().push(weight);
    }
    if worth.len() > 6 || family.nodes.iter().any(|node| node != first) {
        return None;
    }
    let (sizes, worth): (Vec<Amounts>, Vec<Vec<f64>>) = worth.into_iter().unzip();
    let mut sets = Vec::new();
    fill(&sizes, *first, &mut Vec::new(), &mut sets);
    let count = family.nodes.len() as f64;
    let scale = worth.iter().flatten().copied().fold(0.0, f64::max);
    let (mut prices, mut best) = (vec![scale / 2.0; sizes.len()], f64::INFINITY);
    for round in 1..=20_000 {
        let earns = |set: &[f64]| set.iter().zip(&prices).map(|(n, price)| n * price).sum::<f64>();
        let dearest = sets.iter().max_by(|a, b| earns(a).total_cmp(&earns(b)))?;
        let mut value = count * earns(dearest);
        let mut surplus: Vec<f64> = dearest.iter().map(|n| n * count).collect();
        for (size, worth) in worth.iter().enumerate() {
            for gain in worth.iter().map(|w| w - prices[size]).filter(|gain| *gain > 0.0) {
                value += gain;
                surplus[size] -= 1.0;
            }
        }
        best = best.min(value);
        let step = scale / 10.0 / count / f64::from(round).sqrt();
        for (price, surplus) in prices.iter_mut().zip(surplus) {
            *price = (*price - step * surplus).max(0.0);
        }
    }
    Some(best)
}

/// All sets that fit on a node, as counts per size.
fn fill(sizes: &[Amounts], left: Amounts, set: &mut Vec<f64>, sets: &mut Vec<Vec<f64>>) {
    let Some((size, rest)) = sizes.split_first() else {
        sets.push(set.clone());
        return;
    };
    for n in 0.. {
        let left = [0, 1, 2].map(|k| left[k] - n * size[k]);
        if left.iter().any(|amount| *amount < 0) {
            return;
        }
        set.push(n as f64);
        fill(rest, left, set, sets);
        set.pop();
    }
}

/// Which packings are allowed.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Rule {
    /// Any packing: a request may be skipped in favour of lower priorities.
    Any,
    /// Every request that fits is placed, by priority and age.
    InOrder,
}

/// The optimum, by branch and bound.
pub(crate) fn exact(family: &Family, rule: Rule) -> f64 {
    let weights = family.weights();
    let mut order: Vec<usize> = (0..family.requests.len()).collect();
    order.sort_by_key(|&i| -family.requests[i].0);
    let requests = order.iter().map(|&i| {
        let share = family.shares(i).iter().sum::<f64>();
        Request { amounts: family.requests[i].1, weight: weights[i], share }
    });
    let total = family.total();
    let mut search =
        Search { requests: requests.collect(), free: family.nodes.clone(), total, rule, best: 0.0 };
    search.visit(0, 0.0);
    search.best
}

struct Request {
    amounts: Amounts,
    weight: f64,
    share: f64,
}

struct Search {
    /// By priority, and thus by worth per share.
    requests: Vec<Request>,
    free: Vec<Amounts>,
    total: Amounts,
    rule: Rule,
    best: f64,
}

impl Search {
    fn visit(&mut self, i: usize, worth: f64) {
        self.best = self.best.max(worth);
        if i == self.requests.len() || worth + self.upper_bound(i) <= self.best + 1e-12 {
            return;
        }
        let Request { amounts, weight, .. } = self.requests[i];
        let mut is_served = false;
        for n in 0..self.free.len() {
            let is_first_equal = !self.free[..n].contains(&self.free[n]);
            if is_first_equal && (0..3).all(|k| amounts[k] <= self.free[n][k]) {
                is_served = true;
                (0..3).for_each(|k| self.free[n][k] -= amounts[k]);
                self.visit(i + 1, worth + weight);
                (0..3).for_each(|k| self.free[n][k] += amounts[k]);
            }
        }
        if self.rule == Rule::Any || !is_served {
            self.visit(i + 1, worth);
        }
    }

    /// Upper bound of the worth from request `i` on, with divisible requests.
    fn upper_bound(&self, i: usize) -> f64 {
        let free = |k: usize| self.free.iter().map(|node| node[k]).sum::<i64>() as f64;
        let kinds = (0..3).filter(|&k| self.total[k] > 0);
        let mut left: f64 = kinds.map(|k| free(k) / self.total[k] as f64).sum();
        let mut bound = 0.0;
        for request in &self.requests[i..] {
            let part = (left / request.share).min(1.0);
            bound += part * request.weight;
            left -= part * request.share;
        }
        bound
    }
}
