//! Values that nobody can guess: every character is as likely as every other.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;
use model::Secret;
use model::template::with::Generate;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::seal::local::Entropy;

/// Letters and digits.
const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// How often one character is thrown at most. Each throw counts with at least even odds, so that this
/// many in a row fail once in 2^128.
const MAX_THROWS: usize = 128;

/// Makes a value.
pub(super) fn value(one: &Generate, entropy: &Entropy) -> Secret {
    let alphabet: Vec<char> = alphabet(one).into_iter().collect();
    Secret::new((0..one.length).map(|_| pick(&alphabet, entropy)).collect::<String>())
}

/// What says whether two values are made in the same way.
pub(super) fn spec(one: &Generate) -> String {
    let alphabet: String = alphabet(one).into_iter().collect();
    let print = Sha256::digest(format!("{} of {alphabet}", one.length).as_bytes());
    HEXLOWER.encode(&print[..8])
}

/// Could a value have been made so?
pub(super) fn fits(one: &Generate, value: &Value) -> bool {
    let (alphabet, text) = (alphabet(one), value.as_str().unwrap_or_default());
    u32::try_from(text.chars().count()) == Ok(one.length)
        && text.chars().all(|c| alphabet.contains(&c))
}

/// Its characters, each once: one that is written twice is not likelier.
fn alphabet(one: &Generate) -> BTreeSet<char> {
    one.alphabet.as_deref().unwrap_or(ALPHABET).chars().collect()
}

fn pick(alphabet: &[char], entropy: &Entropy) -> char {
    let n = u32::try_from(alphabet.len()).expect("there are fewer characters than numbers");
    // What lies beyond the last whole alphabet would favour its first characters.
    let end = u32::MAX - u32::MAX % n;
    let throw = || {
        let mut bytes = [0; 4];
        entropy(&mut bytes);
        Some(u32::from_le_bytes(bytes)).filter(|&thrown| thrown < end)
    };
    let thrown = (0..MAX_THROWS).find_map(|_| throw()).expect("one of so many throws counts");
    alphabet[usize::try_from(thrown % n).expect("an index of the alphabet")]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn of(length: u32, alphabet: Option<&str>) -> Generate {
        Generate { length, alphabet: alphabet.map(str::to_owned) }
    }

    /// Gives these numbers, one after the other, and then begins again.
    fn throws(numbers: Vec<u32>) -> Entropy {
        let at = AtomicU32::new(0);
        Arc::new(move |buffer: &mut [u8]| {
            let at = usize::try_from(at.fetch_add(1, Ordering::Relaxed)).unwrap();
            buffer.copy_from_slice(&numbers[at % numbers.len()].to_le_bytes());
        })
    }

    #[test]
    fn every_character_is_as_likely_as_every_other() {
        // 2^32 has a rest of 1 by three: that one number must not count.
        let all = throws(vec![u32::MAX, 0, 1, 2, u32::MAX - 1, u32::MAX - 2, u32::MAX - 3]);
        let made = value(&of(6, Some("abcab")), &all);
        let mut counts = BTreeMap::new();
        made.reveal().chars().for_each(|c| *counts.entry(c).or_insert(0) += 1);
        assert_eq!(counts, BTreeMap::from([('a', 2), ('b', 2), ('c', 2)]));
    }

    #[test]
    fn the_length_counts_characters_of_the_alphabet() {
        let noise = throws((0..997_u32).map(|n| n.wrapping_mul(2_654_435_761)).collect());
        let made = value(&of(40, Some("äöü🦀")), &noise);
        assert_eq!(made.reveal().chars().count(), 40);
        assert!(made.reveal().chars().all(|c| "äöü🦀".contains(c)));
        assert!(fits(&of(40, Some("äöü🦀")), &made.reveal().into()));
        assert!(!fits(&of(39, Some("äöü🦀")), &made.reveal().into()));
        assert!(!fits(&of(40, Some("äöü")), &made.reveal().into()));
        let made = value(&of(32, None), &noise);
        assert!(
            made.reveal().len() == 32 && made.reveal().bytes().all(|b| b.is_ascii_alphanumeric())
        );
    }

    #[test]
    fn two_ways_to_make_a_value_are_the_same_if_length_and_characters_are() {
        assert_eq!(spec(&of(8, Some("abc"))), spec(&of(8, Some("cabba"))));
        assert_eq!(spec(&of(8, None)), spec(&of(8, Some(ALPHABET))));
        assert_ne!(spec(&of(8, None)), spec(&of(9, None)));
        assert_ne!(spec(&of(8, Some("ab"))), spec(&of(8, Some("abc"))));
    }
}
