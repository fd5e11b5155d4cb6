//! Encryption of stored secrets: with a key in a file, or by Vault.

pub mod local;
mod migrating;
pub mod vault;

pub use local::LocalKey;
pub use migrating::Migrating;
pub use vault::Vault;
