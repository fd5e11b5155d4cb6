//! Passwords: argon2id, never more at once than there are cores.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use axum::http::StatusCode;
use base::Entropy;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Problem;

/// Hashes and verifies. Both are slow on purpose, so both wait for their turn.
#[derive(Clone)]
pub(crate) struct Passwords {
    turns: Arc<Semaphore>,
    /// What to verify against when there is no such user, so that time tells nothing.
    nobody: Arc<str>,
}

/// The right to use one core for one hash.
pub(crate) struct Turn(#[expect(dead_code, reason = "held, then dropped")] OwnedSemaphorePermit);

impl Passwords {
    pub(crate) fn new(entropy: &dyn Entropy) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let nobody = compute("nobody", &salt(entropy)).expect("fixed input");
        Self { turns: Arc::new(Semaphore::new(cores)), nobody: nobody.into() }
    }

    /// Waits until a core is free for it. What could make the hash needless is best checked after.
    pub(crate) async fn turn(&self) -> Turn {
        Turn(self.turns.clone().acquire_owned().await.expect("is never closed"))
    }

    /// The hash to keep.
    pub(crate) async fn hash(
        &self,
        turn: Turn,
        entropy: &dyn Entropy,
        password: &str,
    ) -> Result<String, Problem> {
        let (password, salt) = (password.to_owned(), salt(entropy));
        let hashed = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            compute(&password, &salt)
        });
        hashed.await.ok().flatten().ok_or_else(|| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "The password could not be hashed.")
        })
    }

    /// Is it the password of that hash? Without a hash: no, after the same time.
    pub(crate) async fn verify(&self, turn: Turn, password: &str, hash: Option<String>) -> bool {
        let is_somebody = hash.is_some();
        let (password, hash) =
            (password.to_owned(), hash.unwrap_or_else(|| self.nobody.to_string()));
        let verified = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let hash = PasswordHash::new(&hash).ok()?;
            Argon2::default().verify_password(password.as_bytes(), &hash).ok()
        });
        verified.await.ok().flatten().is_some() && is_somebody
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
