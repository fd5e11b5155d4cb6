//! Random values with a uniform distribution of characters.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;
use model::Secret;
use model::template::configuration::Generate;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::encryption::local::Entropy;

/// Letters and digits.
const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The maximum number of draws per character. Each is accepted with a probability of at least one
/// half, so that all fail once in 2^128.
const MAX_DRAWS: usize = 128;

/// Generates a value.
pub(super) fn value(one: &Generate, entropy: &Entropy) -> Secret {
    let alphabet: Vec<char> = alphabet(one).into_iter().collect();
    Secret::new((0..one.length).map(|_| pick(&alphabet, entropy)).collect::<String>())
}

/// A hash of the rule, which changes when a value must be regenerated.
pub(super) fn spec_hash(one: &Generate) -> String {
    let alphabet: String = alphabet(one).into_iter().collect();
    let hash = Sha256::digest(format!("{} of {alphabet}", one.length).as_bytes());
    HEXLOWER.encode(&hash[..8])
}

/// Whether the rule could have generated a value.
pub(super) fn fits(one: &Generate, value: &Value) -> bool {
    let (alphabet, text) = (alphabet(one), value.as_str().unwrap_or_default());
    u32::try_from(text.chars().count()) == Ok(one.length)
        && text.chars().all(|c| alphabet.contains(&c))
}

/// The distinct characters: a repeated one is not more likely.
fn alphabet(one: &Generate) -> BTreeSet<char> {
    one.alphabet.as_deref().unwrap_or(ALPHABET).chars().collect()
}

fn pick(alphabet: &[char], entropy: &Entropy) -> char {
    let n = u32::try_from(alphabet.len()).expect("there are fewer characters than numbers");
    // Numbers beyond the last whole alphabet would favour its first characters.
    let end = u32::MAX - u32::MAX % n;
    let draw = || {
        let mut bytes = [0; 4];
        entropy(&mut bytes);
        Some(u32::from_le_bytes(bytes)).filter(|&drawn| drawn < end)
    };
    let drawn = (0..MAX_DRAWS).find_map(|_| draw()).expect("one of so many draws is accepted");
    alphabet[usize::try_from(drawn % n).expect("an index of the alphabet")]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn rule(length: u32, alphabet: Option<&str>) -> Generate {
        Generate { length, alphabet: alphabet.map(str::to_owned) }
    }

    /// Returns these numbers in turn, repeatedly.
    fn draws(numbers: Vec<u32>) -> Entropy {
        let at = AtomicU32::new(0);
        Arc::new(move |buffer: &mut [u8]| {
            let at = usize::try_from(at.fetch_add(1, Ordering::Relaxed)).unwrap();
            buffer.copy_from_slice(&numbers[at % numbers.len()].to_le_bytes());
        })
    }

    #[test]
    fn characters_are_uniformly_distributed() {
        // 2^32 modulo 3 is 1: that one number must not count.
        let all = draws(vec![u32::MAX, 0, 1, 2, u32::MAX - 1, u32::MAX - 2, u32::MAX - 3]);
        let generated = value(&rule(6, Some("abcab")), &all);
        let mut counts = BTreeMap::new();
        generated.reveal().chars().for_each(|c| *counts.entry(c).or_insert(0) += 1);
        assert_eq!(counts, BTreeMap::from([('a', 2), ('b', 2), ('c', 2)]));
    }

    #[test]
    fn length_counts_characters_of_the_alphabet() {
        let noise = draws((0..997_u32).map(|n| n.wrapping_mul(2_654_435_761)).collect());
        let generated = value(&rule(40, Some("äöü🦀")), &noise);
        assert_eq!(generated.reveal().chars().count(), 40);
        assert!(generated.reveal().chars().all(|c| "äöü🦀".contains(c)));
        assert!(fits(&rule(40, Some("äöü🦀")), &generated.reveal().into()));
        assert!(!fits(&rule(39, Some("äöü🦀")), &generated.reveal().into()));
        assert!(!fits(&rule(40, Some("äöü")), &generated.reveal().into()));
        let generated = value(&rule(32, None), &noise);
        assert_eq!(generated.reveal().len(), 32);
        assert!(generated.reveal().bytes().all(|b| b.is_ascii_alphanumeric()));
    }

    #[test]
    fn rules_with_the_same_length_and_characters_have_the_same_hash() {
        assert_eq!(spec_hash(&rule(8, Some("abc"))), spec_hash(&rule(8, Some("cabba"))));
        assert_eq!(spec_hash(&rule(8, None)), spec_hash(&rule(8, Some(ALPHABET))));
        assert_ne!(spec_hash(&rule(8, None)), spec_hash(&rule(9, None)));
        assert_ne!(spec_hash(&rule(8, Some("ab"))), spec_hash(&rule(8, Some("abc"))));
    }
}
