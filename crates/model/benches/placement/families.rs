//! Families of nodes and requests, generated from seeds.

use crate::generate::Random;

/// Amounts of CPU, GPU and RAM, in thousandths.
pub(crate) type Amounts = [i64; 3];

/// Nodes and requests.
#[derive(Clone)]
pub(crate) struct Family {
    pub(crate) nodes: Vec<Amounts>,
    /// Priority and request, oldest first.
    pub(crate) requests: Vec<(i64, Amounts)>,
}

/// The generator of a family.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    node: fn(&mut Random, usize) -> Amounts,
    request: fn(&mut Random) -> Amounts,
    /// Generate until requests exceed CPU or RAM by a third, or both?
    until: Until,
    /// Is the smallest request the oldest in each priority?
    is_sorted: bool,
    /// Divisor of the node size for the exact optimum.
    small: i64,
}

#[derive(Clone, Copy, PartialEq)]
enum Until {
    One,
    Both,
}

/// All families.
pub(crate) const KINDS: [Kind; 6] = [
    Kind {
        name: "uniform",
        node: |_, _| [32_000, 0, 128_000],
        request: |r| [r.range(500, 8000), 0, r.range(1000, 32_000)],
        until: Until::Both,
        is_sorted: false,
        small: 2,
    },
    Kind {
        name: "heavy-tail",
        node: |_, _| [64_000, 0, 256_000],
        request: |r| {
            let size = (1.0 - r.part()).powf(-0.7).min(40.0);
            [scale(size, 400.0), 0, scale(size * (0.5 + r.part()), 1600.0)]
        },
        until: Until::Both,
        is_sorted: false,
        small: 24,
    },
    Kind {
        name: "gpu-scarce",
        node: |_, i| if i % 10 == 0 { [64_000, 8000, 256_000] } else { [32_000, 0, 128_000] },
        request: |r| match r.range(0, 19) {
            0 => [r.range(1000, 8000), r.range(1, 4) * 1000, r.range(4000, 32_000)],
            _ => [r.range(500, 8000), 0, r.range(1000, 32_000)],
        },
        until: Until::Both,
        is_sorted: false,
        small: 4,
    },
    Kind {
        name: "correlated",
        node: |r, _| {
            let size = r.range(1, 4);
            [16_000 * size, 0, 64_000 * size]
        },
        request: |r| {
            let size = r.range(250, 6000);
            [size, 0, size * r.range(30, 50) / 10]
        },
        until: Until::Both,
        is_sorted: false,
        small: 4,
    },
    // The worst sizes for first fit (just over a half and a third, and just over the remainder),
    // and vectors that need their complement.
    Kind {
        name: "adversarial (as first designed)",
        node: |_, _| [32_000, 0, 66_000],
        request: |r| {
            let sizes = [
                [16_500, 0, 34_000],
                [10_900, 0, 22_500],
                [5000, 0, 10_400],
                [20_000, 0, 6000],
                [3000, 0, 60_000],
            ];
            sizes[usize::try_from(r.range(0, 4)).expect("one of five")]
        },
        until: Until::One,
        is_sorted: true,
        small: 1,
    },
    // Similar, but with packings that waste little.
    Kind {
        name: "adversarial (redesigned)",
        node: |_, _| [32_400, 0, 66_900],
        request: |r| {
            let sizes = [
                [16_500, 0, 34_000],
                [10_900, 0, 22_500],
                [5000, 0, 10_400],
                [20_000, 0, 6900],
                [12_400, 0, 60_000],
            ];
            sizes[usize::try_from(r.range(0, 4)).expect("one of five")]
        },
        until: Until::Both,
        is_sorted: true,
        small: 1,
    },
];

impl Kind {
    /// 300 nodes.
    pub(crate) fn large(&self, seed: u64) -> Family {
        self.generate(&mut Random(seed), 300, 1)
    }

    /// A few small nodes.
    pub(crate) fn small(&self, seed: u64) -> Family {
        self.generate(&mut Random(1000 + seed), 3, self.small)
    }

    /// Generates requests until they exceed the capacity by a third.
    fn generate(&self, random: &mut Random, count: usize, divisor: i64) -> Family {
        let nodes: Vec<Amounts> =
            (0..count).map(|i| (self.node)(random, i).map(|amount| amount / divisor)).collect();
        let total = sum(nodes.iter());
        let largest = nodes.iter().fold([0; 3], |a, b| [0, 1, 2].map(|k| a[k].max(b[k])));
        let mut requests: Vec<(i64, Amounts)> = Vec::new();
        let mut requested = [0; 3];
        let is_open = |requested: &Amounts, k: usize| requested[k] * 3 < total[k] * 4;
        while match self.until {
            Until::One => is_open(&requested, 0) && is_open(&requested, 2),
            Until::Both => is_open(&requested, 0) || is_open(&requested, 2),
        } {
            let amounts = (self.request)(random);
            let amounts = [0, 1, 2].map(|k| amounts[k].min(largest[k]));
            (0..3).for_each(|k| requested[k] += amounts[k]);
            requests.push((random.range(1, 10), amounts));
        }
        if self.is_sorted {
            requests.sort_by_key(|(_, amounts)| amounts[0]);
        }
        Family { nodes, requests }
    }
}

impl Family {
    /// Total capacity of the nodes.
    pub(crate) fn total(&self) -> Amounts {
        sum(self.nodes.iter())
    }

    /// The share of the total capacity that a request takes.
    pub(crate) fn shares(&self, i: usize) -> [f64; 3] {
        let (total, amounts) = (self.total(), self.requests[i].1);
        [0, 1, 2].map(|k| if total[k] > 0 { amounts[k] as f64 / total[k] as f64 } else { 0.0 })
    }

    /// The worth of each request: its priority times the sum of its shares.
    pub(crate) fn weights(&self) -> Vec<f64> {
        let shares = |i| self.shares(i).iter().sum::<f64>();
        (0..self.requests.len()).map(|i| self.requests[i].0 as f64 * shares(i)).collect()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "sizes are small")]
fn scale(size: f64, unit: f64) -> i64 {
    (size * unit) as i64
}

fn sum<'a>(rows: impl Iterator<Item = &'a Amounts>) -> Amounts {
    rows.fold([0; 3], |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]])
}
