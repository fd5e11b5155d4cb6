//! Tokens that a provider gave out anew before the caller could keep them.
//!
//! When a step fails after an answer that changed the token, the caller still has the old one; with
//! it the client would look as if it were gone.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::handle::Key;

/// The most tokens that are remembered of one client.
const MAX_TOKENS: usize = 16;

/// The tokens of each client's address, oldest first, from the one that the caller has.
#[derive(Default)]
pub(super) struct Newest(Mutex<HashMap<String, Vec<String>>>);

impl Newest {
    /// Takes the newest token in place of the one that the caller has.
    pub(super) fn apply(&self, key: &mut Key) {
        let mut known = self.known();
        let Some(tokens) = known.get_mut(&key.uri) else { return };
        if let Some(at) = tokens.iter().position(|token| *token == key.token) {
            tokens.drain(..at);
        } else {
            tokens.clear();
        }
        match tokens.last() {
            Some(token) if tokens.len() > 1 => key.token.clone_from(token),
            // The caller has the newest.
            _ => drop(known.remove(&key.uri)),
        }
    }

    /// Remembers that a newer token has taken the place of the one in the key.
    pub(super) fn remember(&self, key: &Key, token: &str) {
        if key.token != token {
            let mut known = self.known();
            let tokens = known.entry(key.uri.clone()).or_insert_with(|| vec![key.token.clone()]);
            tokens.push(token.to_owned());
            let excess = tokens.len().saturating_sub(MAX_TOKENS);
            tokens.drain(..excess);
        }
    }

    /// The client is gone.
    pub(super) fn forget(&self, key: &Key) {
        self.known().remove(&key.uri);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Vec<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_kept_an_older_token_gets_the_newest_until_it_is_kept() {
        let newest = Newest::default();
        let key = |token: &str| Key { uri: "https://sso/reg/1".into(), token: token.into() };
        let applied = |token| {
            let mut key = key(token);
            newest.apply(&mut key);
            key.token
        };
        newest.remember(&key("a"), "a");
        assert!(newest.known().is_empty(), "nothing has changed");
        newest.remember(&key("a"), "b");
        newest.remember(&key("b"), "c");
        assert_eq!(["a", "b", "b"].map(applied), ["c", "c", "c"]);
        assert_eq!(applied("c"), "c");
        assert!(newest.known().is_empty(), "it was kept");
        newest.remember(&key("c"), "d");
        assert_eq!(applied("other"), "other");
        assert_eq!(applied("c"), "c", "a stranger's token has made it forget");
        (0..99).map(|n| n.to_string()).fold("c".to_owned(), |old, new| {
            newest.remember(&key(&old), &new);
            new
        });
        assert_eq!(newest.known()["https://sso/reg/1"].len(), MAX_TOKENS);
        newest.forget(&key("c"));
        assert!(newest.known().is_empty());
    }
}
