//! Password hashing with argon2id, in two lanes: new accounts cannot delay logins.
//!
//! A lane runs a number of hashes at once and has a bounded queue. Logins may use every core, new
//! accounts half of them.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use axum::http::StatusCode;
use base::Entropy;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Problem;

/// Maximum number of requests in each lane, running and pending.
const MAX_LOGINS: usize = 512;
const MAX_SIGN_UPS: usize = 128;

/// Purpose of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Verification and changes of passwords.
    Login,
    /// Passwords of new accounts, which anyone may request.
    SignUp,
}

/// Hashes and verifies passwords. Both are slow on purpose and need a permit.
#[derive(Clone)]
pub(crate) struct Passwords {
    logins: Queue,
    sign_ups: Queue,
    /// Hash to verify against when the user does not exist, for a constant response time.
    dummy_hash: Arc<str>,
}

/// A bounded queue for a number of cores.
#[derive(Clone)]
struct Queue {
    places: Arc<Semaphore>,
    cores: Arc<Semaphore>,
}

impl Queue {
    fn new(cores: usize, places: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(places)), cores: Arc::new(Semaphore::new(cores)) }
    }

    /// Waits for a core; `None` if too many wait already.
    async fn permit(&self) -> Option<Permit> {
        let place = self.places.clone().try_acquire_owned().ok()?;
        let core = self.cores.clone().acquire_owned().await;
        Some(Permit(core.expect("semaphore is never closed"), place))
    }
}

/// Permit to compute one hash on one core.
pub(crate) struct Permit(
    #[expect(dead_code, reason = "held, then dropped")] OwnedSemaphorePermit,
    #[expect(dead_code, reason = "held, then dropped")] OwnedSemaphorePermit,
);

impl Passwords {
    pub(crate) fn new(entropy: &dyn Entropy) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let dummy_hash = compute("nobody", &salt(entropy)).expect("fixed input");
        Self {
            logins: Queue::new(cores, MAX_LOGINS),
            sign_ups: Queue::new((cores / 2).max(1), MAX_SIGN_UPS),
            dummy_hash: dummy_hash.into(),
        }
    }

    /// Waits for a free core of the lane. Checks that could make the hash unnecessary belong after
    /// this.
    pub(crate) async fn permit(&self, lane: Lane) -> Result<Permit, Problem> {
        match lane {
            Lane::Login => self
                .logins
                .permit()
                .await
                .ok_or_else(|| Problem::unavailable("Too many logins are pending; try again.")),
            Lane::SignUp => self.sign_ups.permit().await.ok_or_else(|| {
                Problem::unavailable("Too many new accounts are pending; try again.")
            }),
        }
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

#[cfg(test)]
mod tests {
    use base::OsEntropy;

    use super::*;

    #[tokio::test]
    async fn pending_sign_ups_are_bounded_and_do_not_delay_logins() {
        let passwords = Passwords::new(&OsEntropy);
        let mut pending = Vec::new();
        // More sign-ups than fit: none of them finishes.
        for _ in 0..MAX_SIGN_UPS {
            let mut permit = Box::pin(async {
                let _permit = passwords.permit(Lane::SignUp).await;
                std::future::pending::<()>().await;
            });
            let is_pending = futures_util::poll!(&mut permit).is_pending();
            assert!(is_pending);
            pending.push(permit);
        }
        let refused = passwords.permit(Lane::SignUp).await.err().expect("the queue is full");
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        let login =
            tokio::time::timeout(std::time::Duration::from_secs(5), passwords.permit(Lane::Login));
        assert!(login.await.is_ok_and(|permit| permit.is_ok()), "a login waits for sign-ups");
        drop(pending);
        assert!(passwords.permit(Lane::SignUp).await.is_ok());
    }
}
