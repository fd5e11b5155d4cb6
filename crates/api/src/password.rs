//! Password hashing with argon2id, limited to one hash per core.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use axum::http::StatusCode;
use base::Entropy;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Problem;

/// Hashes and verifies passwords. Both are slow on purpose and need a permit.
#[derive(Clone)]
pub(crate) struct Passwords {
    permits: Arc<Semaphore>,
    /// Hash to verify against when the user does not exist, for a constant response time.
    dummy_hash: Arc<str>,
}

/// Permit to compute one hash on one core.
pub(crate) struct Permit(#[expect(dead_code, reason = "held, then dropped")] OwnedSemaphorePermit);

impl Passwords {
    pub(crate) fn new(entropy: &dyn Entropy) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let dummy_hash = compute("nobody", &salt(entropy)).expect("fixed input");
        Self { permits: Arc::new(Semaphore::new(cores)), dummy_hash: dummy_hash.into() }
    }

    /// Waits for a free core. Checks that could make the hash unnecessary belong after this.
    pub(crate) async fn permit(&self) -> Permit {
        Permit(self.permits.clone().acquire_owned().await.expect("semaphore is never closed"))
    }

    /// Hashes a password.
    pub(crate) async fn hash(
        &self,
        permit: Permit,
        entropy: &dyn Entropy,
        password: &str,
    ) -> Result<String, Problem> {
        let (password, salt) = (password.to_owned(), salt(entropy));
        let hashed = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            compute(&password, &salt)
        });
        hashed.await.ok().flatten().ok_or_else(|| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "The password could not be hashed.")
        })
    }

    /// Whether the password matches the hash. Without a hash: false, after the same time.
    pub(crate) async fn verify(
        &self,
        permit: Permit,
        password: &str,
        hash: Option<String>,
    ) -> bool {
        let user_exists = hash.is_some();
        let (password, hash) =
            (password.to_owned(), hash.unwrap_or_else(|| self.dummy_hash.to_string()));
        let verified = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let hash = PasswordHash::new(&hash).ok()?;
            Argon2::default().verify_password(password.as_bytes(), &hash).ok()
        });
        verified.await.ok().flatten().is_some() && user_exists
    }
}

fn salt(entropy: &dyn Entropy) -> [u8; 16] {
    let mut salt = [0; 16];
    entropy.fill(&mut salt);
    salt
}

fn compute(password: &str, salt: &[u8]) -> Option<String> {
    let hash: PasswordHash =
        Argon2::default().hash_password_with_salt(password.as_bytes(), salt).ok()?;
    Some(hash.to_string())
}
