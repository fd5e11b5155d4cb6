//! How much was packed, weighted by priority, against what could be packed at most.

use std::collections::HashSet;

use model::Time;
use model::world::{Settings, UnitId, World};

use crate::generate::{Random, cluster, unit, xid};

/// Nodes and requests, as amounts of three kinds.
struct Family {
    name: &'static str,
    nodes: Vec<[i64; 3]>,
    /// Priority and request, oldest first.
    requests: Vec<(i64, [i64; 3])>,
}

pub(crate) fn print() {
    println!("Packing: priority-weighted volume of what was placed, against an upper bound");
    println!("{:14} {:>6} {:>9} {:>9} {:>9}", "family", "nodes", "requests", "placed", "of bound");
    for seed in 1..=3 {
        for family in families(&mut Random(seed)) {
            let placed = place(&family);
            let got = placed.iter().map(|&i| weight(&family, i)).sum::<f64>();
            let share = 100.0 * got / bound(&family);
            let (name, nodes) = (family.name, family.nodes.len());
            let (all, some) = (family.requests.len(), placed.len());
            println!("{name:14} {nodes:>6} {all:>9} {some:>9} {share:>8.2}%");
        }
    }
    small();
}

fn families(random: &mut Random) -> Vec<Family> {
    vec![
        family(
            "uniform",
            random,
            |_, _| [32_000, 0, 128_000],
            |r, _| [r.range(500, 8000), 0, r.range(1000, 32_000)],
        ),
        family(
            "heavy-tail",
            random,
            |_, _| [64_000, 0, 256_000],
            |r, _| {
                let size = (1.0 - r.part()).powf(-0.7).min(40.0);
                [scale(size, 400.0), 0, scale(size * (0.5 + r.part()), 1600.0)]
            },
        ),
        family(
            "gpu-scarce",
            random,
            |_, i| if i % 10 == 0 { [64_000, 8000, 256_000] } else { [32_000, 0, 128_000] },
            |r, _| match r.range(0, 19) {
                0 => [r.range(1000, 8000), r.range(1, 4) * 1000, r.range(4000, 32_000)],
                _ => [r.range(500, 8000), 0, r.range(1000, 32_000)],
            },
        ),
        family(
            "correlated",
            random,
            |r, _| {
                let size = r.range(1, 4);
                [16_000 * size, 0, 64_000 * size]
            },
            |r, _| {
                let size = r.range(250, 6000);
                [size, 0, size * r.range(30, 50) / 10]
            },
        ),
        adversarial(random),
    ]
}

#[expect(clippy::cast_possible_truncation, reason = "sizes are small")]
fn scale(size: f64, unit: f64) -> i64 {
    (size * unit) as i64
}

/// Requests come until they ask for a third more CPU and RAM than there is.
fn family(
    name: &'static str,
    random: &mut Random,
    node: impl Fn(&mut Random, usize) -> [i64; 3],
    request: impl Fn(&mut Random, usize) -> [i64; 3],
) -> Family {
    let nodes: Vec<[i64; 3]> = (0..300).map(|i| node(random, i)).collect();
    let total = sum(nodes.iter());
    let mut requests: Vec<(i64, [i64; 3])> = Vec::new();
    let mut asked = [0; 3];
    while [0, 2].iter().any(|&k| asked[k] * 3 < total[k] * 4) {
        let wants = request(random, requests.len());
        (0..3).for_each(|k| asked[k] += wants[k]);
        requests.push((random.range(1, 10), wants));
    }
    Family { name, nodes, requests }
}

/// The sizes that are worst for first fit (a bit over a half and a third, and what is then left),
/// with the smallest oldest in each priority, and vectors that need their opposite beside them.
fn adversarial(random: &mut Random) -> Family {
    let sizes = [
        [16_500, 0, 34_000],
        [10_900, 0, 22_500],
        [5000, 0, 10_400],
        [20_000, 0, 6900],
        [12_400, 0, 60_000],
    ];
    let mut family = family(
        "adversarial",
        random,
        |_, _| [32_400, 0, 66_900],
        |r, _| sizes[usize::try_from(r.range(0, 4)).expect("one of five")],
    );
    family.requests.sort_by_key(|(_, wants)| wants[0]);
    family
}

fn sum<'a>(rows: impl Iterator<Item = &'a [i64; 3]>) -> [i64; 3] {
    rows.fold([0; 3], |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]])
}

/// Which requests a world with these nodes starts.
fn place(family: &Family) -> Vec<usize> {
    let mut world = World::new(Settings::default());
    for (n, node) in (0u32..).zip(&family.nodes) {
        world.set_cluster(cluster(n, *node));
    }
    for (n, (priority, wants)) in (0u32..).zip(&family.requests) {
        world.wait(&unit(n, *priority, *wants));
    }
    let started: HashSet<UnitId> =
        world.decide(Time(0), usize::MAX).starts.iter().map(|start| start.unit).collect();
    let id = |i: usize| UnitId { owner: xid(u32::try_from(i).expect("few")), replica: 0 };
    (0..family.requests.len()).filter(|&i| started.contains(&id(i))).collect()
}

/// Priority times the share of all there is that it asks for.
fn weight(family: &Family, i: usize) -> f64 {
    let total = sum(family.nodes.iter());
    let (priority, wants) = family.requests[i];
    let kinds = (0..3).filter(|&k| total[k] > 0);
    priority as f64 * kinds.map(|k| wants[k] as f64 / total[k] as f64).sum::<f64>()
}

/// An upper bound: the linear program in which the nodes are one and requests may be cut. Its dual
/// is a bound for any prices; they are improved by steps along the subgradient.
fn bound(family: &Family) -> f64 {
    let total = sum(family.nodes.iter());
    let shares: Vec<(f64, [f64; 3])> = (0..family.requests.len())
        .map(|i| {
            let wants = family.requests[i].1;
            let share =
                |k: usize| if total[k] > 0 { wants[k] as f64 / total[k] as f64 } else { 0.0 };
            (weight(family, i), [share(0), share(1), share(2)])
        })
        .collect();
    let (mut prices, mut best) = ([1.0f64; 3], f64::INFINITY);
    for round in 1..=4000 {
        let cost = |r: &[f64; 3]| prices.iter().zip(r).map(|(p, r)| p * r).sum::<f64>();
        let gains = shares.iter().map(|(w, r)| w - cost(r)).filter(|gain| *gain > 0.0);
        let value = prices.iter().sum::<f64>() + gains.sum::<f64>();
        best = best.min(value);
        let mut slack = [1.0f64; 3];
        for (_, r) in shares.iter().filter(|(w, r)| *w > cost(r)) {
            (0..3).for_each(|k| slack[k] -= r[k]);
        }
        let step = 4.0 / f64::from(round).sqrt();
        (0..3).for_each(|k| prices[k] = (prices[k] - step * slack[k]).max(0.0));
    }
    best
}

/// Where all packings can be tried: against the best there is, and against the best among those
/// that serve higher priorities first.
fn small() {
    let (mut got, mut best, mut strict, mut hits) = (0.0, 0.0, 0.0, 0);
    let runs = 200;
    for seed in 0..runs {
        let mut random = Random(1000 + seed);
        let nodes = vec![[8000, 0, 8000]; 3];
        let mut requests: Vec<_> = (0..12)
            .map(|_| {
                (random.range(1, 10), [random.range(1, 5) * 1000, 0, random.range(1, 5) * 1000])
            })
            .collect();
        requests.sort_by_key(|(priority, _)| -priority);
        let family = Family { name: "small", nodes, requests };
        let mine = place(&family).iter().map(|&i| weight(&family, i)).sum::<f64>();
        let most = exact(&family, 0, &mut family.nodes.clone(), false);
        let most_strict = exact(&family, 0, &mut family.nodes.clone(), true);
        (got, best, strict) = (got + mine, best + most, strict + most_strict);
        hits += usize::from(mine > most_strict - 1e-9);
    }
    let share = |most: f64| 100.0 * got / most;
    println!(
        "small (3 nodes, 12 requests, {runs} worlds): {:.2}% of the exact optimum that serves higher \
         priorities first ({hits} optimal), {:.2}% of the one that does not",
        share(strict),
        share(best)
    );
}

/// The most that can be packed from request `i` on. If `strict`, whoever fits is served, in order.
fn exact(family: &Family, i: usize, free: &mut Vec<[i64; 3]>, strict: bool) -> f64 {
    let Some((_, wants)) = family.requests.get(i) else { return 0.0 };
    let fits = free.iter().any(|node| (0..3).all(|k| wants[k] <= node[k]));
    let mut best = if strict && fits { 0.0 } else { exact(family, i + 1, free, strict) };
    for n in 0..free.len() {
        let is_first_alike = free[..n].iter().all(|other| *other != free[n]);
        if is_first_alike && (0..3).all(|k| wants[k] <= free[n][k]) {
            (0..3).for_each(|k| free[n][k] -= wants[k]);
            best = best.max(weight(family, i) + exact(family, i + 1, free, strict));
            (0..3).for_each(|k| free[n][k] += wants[k]);
        }
    }
    best
}
