//! Packed requests, weighted by priority, against upper bounds.

use std::collections::HashSet;

use model::Time;
use model::world::{Settings, UnitId, World};

use crate::bound::{self, Rule};
use crate::families::{Family, KINDS, Kind};
use crate::generate::{cluster, unit, xid};
use crate::table::Row;

pub(crate) fn rows(is_quick: bool) -> Vec<Row> {
    let (seeds, worlds) = if is_quick { (1, 20) } else { (5, 100) };
    KINDS.iter().flat_map(|kind| [large(kind, seeds), small(kind, worlds)]).collect()
}

fn large(kind: &Kind, seeds: u64) -> Row {
    let (mut shares, mut shares_by_node, mut attainable) = (Vec::new(), Vec::new(), Vec::new());
    let mut size = 0;
    for seed in 1..=seeds {
        let family = kind.large(seed);
        let got = packed(&family);
        let (volume, by_node) = (bound::volume(&family), bound::by_node(&family));
        shares.push(100.0 * got / volume);
        shares_by_node.extend(by_node.map(|most| 100.0 * got / most));
        attainable.extend(by_node.map(|most| 100.0 * most / volume));
        size = family.requests.len();
    }
    let by_node = if shares_by_node.is_empty() {
        String::new()
    } else {
        format!(
            "; {} of the bound per node, a tighter bound which is {} of the \
             volume bound",
            spread(&shares_by_node),
            spread(&attainable)
        )
    };
    let result = format!("{} of the volume bound{by_node}", spread(&shares));
    let name = kind.name;
    Row::new(format!("packing, {name}: 300 nodes, about {size} requests"), result, "≥ 97 %")
}

/// Against the exact optimum.
fn small(kind: &Kind, worlds: u64) -> Row {
    let (mut got, mut best, mut in_order, mut volume, mut hits) = (0.0, 0.0, 0.0, 0.0, 0);
    for seed in 0..worlds {
        let family = kind.small(seed);
        let mine = packed(&family);
        let most = bound::exact(&family, Rule::InOrder);
        let most_of_all = bound::exact(&family, Rule::Any);
        let (by_volume, by_node) = (bound::volume(&family), bound::by_node(&family));
        assert!(mine <= most + 1e-9 && most <= most_of_all + 1e-9, "exact is exact");
        assert!(most_of_all <= by_volume + 1e-9, "the volume bound is a bound");
        assert!(
            by_node.is_none_or(|bound| most_of_all <= bound + 1e-9),
            "the bound per node is a bound"
        );
        hits += usize::from(mine > most - 1e-9);
        (got, in_order) = (got + mine, in_order + most);
        (best, volume) = (best + most_of_all, volume + by_volume);
    }
    let share = |most: f64| 100.0 * got / most;
    let result = format!(
        "{:.1} % of the exact optimum, {:.1} % of the exact optimum that serves higher priorities \
         first ({hits} of {worlds} optimal); the optimum is {:.1} % of the volume bound",
        share(best),
        share(in_order),
        100.0 * best / volume,
    );
    Row::new(format!("packing, {}: 3 small nodes", kind.name), result, "")
}

/// The mean and the worst.
fn spread(shares: &[f64]) -> String {
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let worst = shares.iter().copied().fold(f64::INFINITY, f64::min);
    format!("{mean:.2} % (worst seed {worst:.2} %)")
}

/// The worth of what a world with these nodes starts.
fn packed(family: &Family) -> f64 {
    let mut world = World::new(Settings::default());
    for (n, node) in (0u32..).zip(&family.nodes) {
        world.set_cluster(cluster(n, *node));
    }
    for (n, (priority, wants)) in (0u32..).zip(&family.requests) {
        world.add_pending(&unit(n, *priority, *wants));
    }
    let starts = world.decide(Time(0), usize::MAX).starts;
    let started: HashSet<UnitId> = starts.iter().map(|start| start.unit).collect();
    let id = |n: u32| UnitId { owner: xid(n), replica: 0 };
    let weights = (0u32..).zip(family.weights()).filter(|(n, _)| started.contains(&id(*n)));
    weights.map(|(_, weight)| weight).sum()
}
