//! Tokens that a provider replaced before the caller could store them.
//!
//! When a step fails after a response that changed the token, the caller still has the old one,
//! with which the client would look deleted.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::handle::Key;

/// The maximum number of tokens per client.
const MAX_TOKENS: usize = 16;

/// The tokens by management URL, oldest first, beginning with the caller's.
#[derive(Default)]
pub(super) struct Newest(Mutex<HashMap<String, Vec<String>>>);

impl Newest {
    /// Replaces the caller's token with the newest one.
    pub(super) fn apply(&self, key: &mut Key) {
        let mut all = self.lock();
        let Some(tokens) = all.get_mut(&key.uri) else { return };
        if let Some(at) = tokens.iter().position(|token| *token == key.token) {
            tokens.drain(..at);
        } else {
            tokens.clear();
        }
        match tokens.last() {
            Some(token) if tokens.len() > 1 => key.token.clone_from(token),
            // The caller has the newest.
            _ => drop(all.remove(&key.uri)),
        }
    }

    /// Records that a newer token replaced the one in the key.
    pub(super) fn record(&self, key: &Key, token: &str) {
        if key.token != token {
            let mut all = self.lock();
            let tokens = all.entry(key.uri.clone()).or_insert_with(|| vec![key.token.clone()]);
            tokens.push(token.to_owned());
            let excess = tokens.len().saturating_sub(MAX_TOKENS);
            tokens.drain(..excess);
        }
    }

    /// Removes the tokens of a deleted client.
    pub(super) fn evict(&self, key: &Key) {
        self.lock().remove(&key.uri);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_token_is_replaced_until_the_newest_is_stored() {
        let newest = Newest::default();
        let key = |token: &str| Key { uri: "https://sso/reg/1".into(), token: token.into() };
        let applied = |token| {
            let mut key = key(token);
            newest.apply(&mut key);
            key.token
        };
        newest.record(&key("a"), "a");
        assert!(newest.lock().is_empty(), "nothing has changed");
        newest.record(&key("a"), "b");
        newest.record(&key("b"), "c");
        assert_eq!(["a", "b", "b"].map(applied), ["c", "c", "c"]);
        assert_eq!(applied("c"), "c");
        assert!(newest.lock().is_empty(), "the newest token is stored");
        newest.record(&key("c"), "d");
        assert_eq!(applied("other"), "other");
        assert_eq!(applied("c"), "c", "an unknown token clears the list");
        (0..99).map(|n| n.to_string()).fold("c".to_owned(), |old, new| {
            newest.record(&key(&old), &new);
            new
        });
        assert_eq!(newest.lock()["https://sso/reg/1"].len(), MAX_TOKENS);
        newest.evict(&key("c"));
        assert!(newest.lock().is_empty());
    }
}
