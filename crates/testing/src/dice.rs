//! Randomness that can be repeated: a failed test prints the seed that makes it fail again.

/// A pair of dice. `PADDOCK_SEED` makes them fall as they did before.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// New ones, with their seed on standard error.
    pub fn roll() -> Self {
        let seed = std::env::var("PADDOCK_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| base::entropy::noise(&base::OsEntropy));
        eprintln!("to repeat this: PADDOCK_SEED={seed}");
        Self(seed)
    }

    /// Others that fall differently, for another task.
    pub fn split(&mut self) -> Self {
        Self(self.next())
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of them, if there is any.
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
