//! Encryption by Vault, and decryption of what a key file encrypted before.

use model::Secret;
use port::{Encryption, KeyRing, PortFuture};

use super::LocalKey;

/// Encrypts with `current`; decrypts with the key file what the key file encrypted.
pub struct Migrating<E> {
    /// Encrypts.
    pub current: E,
    /// Decrypts ciphertexts of the key file.
    pub before: LocalKey,
}

impl<E: Encryption> Encryption for Migrating<E> {
    fn encrypt<'a>(&'a self, purpose: &'a str, secret: &'a Secret) -> PortFuture<'a, String> {
        self.current.encrypt(purpose, secret)
    }

    fn decrypt<'a>(&'a self, purpose: &'a str, sealed: &'a str) -> PortFuture<'a, Secret> {
        if sealed.starts_with("v1:") {
            return Encryption::decrypt(&self.before, purpose, sealed);
        }
        self.current.decrypt(purpose, sealed)
    }

    fn current_key(&self) -> PortFuture<'_, String> {
        self.current.current_key()
    }

    fn key_ring(&self) -> Option<&dyn KeyRing> {
        None
    }
}
