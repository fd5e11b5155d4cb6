//! Randomness: ids, tokens, codes, jitter.

use std::sync::atomic::{AtomicU32, Ordering};

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use model::{Time, Xid};
use sha2::{Digest, Sha256};

/// A source of random bytes. Injected, so that a simulation can be repeated.
pub trait Entropy: Send + Sync + 'static {
    /// Fills the buffer with unpredictable bytes.
    fn fill(&self, buffer: &mut [u8]);
}

/// The operating system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads random bytes")]
    fn fill(&self, buffer: &mut [u8]) {
        getrandom::fill(buffer).expect("the operating system provides random bytes");
    }
}

/// Generates ids that sort by time and order of generation.
pub struct Ids {
    generator: [u8; 5],
    counter: AtomicU32,
}

impl Ids {
    /// Creates a generator whose ids differ from those of every other.
    pub fn new(entropy: &dyn Entropy) -> Self {
        let mut generator = [0; 5];
        entropy.fill(&mut generator);
        Self { generator, counter: AtomicU32::new(0) }
    }

    /// The next id.
    pub fn next(&self, now: Time) -> Xid {
        Xid::new(now.seconds(), self.generator, self.counter.fetch_add(1, Ordering::Relaxed))
    }
}

/// A new secret of 256 bits, as text.
pub fn secret(entropy: &dyn Entropy) -> String {
    let mut bytes = [0; 32];
    entropy.fill(&mut bytes);
    BASE32_NOPAD.encode(&bytes).to_ascii_lowercase()
}

/// Random bits, for jitter and test names.
pub fn random_u64(entropy: &dyn Entropy) -> u64 {
    let mut bytes = [0; 8];
    entropy.fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// The stored hash of a secret. Secrets have 256 random bits, so a fast hash is enough.
pub fn hash(secret: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(secret.as_bytes()))
}

/// A new UUID (version 4), as text.
pub fn uuid(entropy: &dyn Entropy) -> String {
    let mut bytes = [0; 16];
    entropy.fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = HEXLOWER.encode(&bytes);
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}
