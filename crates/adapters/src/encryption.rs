//! Encryption of stored secrets: with a key in a file, or by Vault.

pub mod local;
pub mod vault;

pub use local::LocalKey;
pub use vault::Vault;
