//! Reproducible randomness: a failed test prints its seed.

/// A seeded random number generator; `PADDOCK_SEED` sets the seed.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator and prints its seed to standard error.
    pub fn from_env() -> Self {
        let seed = std::env::var("PADDOCK_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| base::entropy::random_u64(&base::OsEntropy));
        eprintln!("to repeat this: PADDOCK_SEED={seed}");
        Self(seed)
    }

    /// Derives another generator, for another task.
    pub fn split(&mut self) -> Self {
        Self(self.next())
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// True with probability 1/n.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A random element, if there is any.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let n = u64::try_from(of.len()).expect("a test's list");
        if n == 0 { None } else { of.get(usize::try_from(self.below(n)).expect("an index")) }
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
