//! Ports: the traits through which the engine uses external systems. `adapters` implements them;
//! the engine knows no protocol.
//!
//! Every call is idempotent: a repeated call finds the work of the previous one. Every call has a
//! timeout, and calls to a system that is down fail at once until the circuit breaker probes it
//! again.

mod operation;
mod probe;

use futures_util::future::BoxFuture;
use model::Secret;
use model::resource::Reason;

pub use operation::{
    Access, CLUSTER_DNS, CLUSTER_ID, Environment, Files, Log, Observed, Operation, Outcome,
    Progress, Task,
};
pub use probe::{Endpoints, Probe};

/// Why an external system did not perform a call, as a message that a user can act on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The request can't succeed as it is; retrying would not help.
    #[error("{0}")]
    Refused(String),
    /// The system is down, slow or returned an invalid response; the call is retried.
    #[error("{0}")]
    Unavailable(String),
    /// A Paddock subject on which the task depends failed or is not available.
    #[error("{reason}")]
    Subject {
        /// Why.
        reason: Box<Reason>,
        /// Whether the call is retried.
        is_retried: bool,
    },
}

/// The future that every port method returns.
pub type PortFuture<'a, T> = BoxFuture<'a, Result<T, Fault>>;

/// Returns an answer that needs no waiting.
pub fn ready<'a, T: Send + 'a>(answer: Result<T, Fault>) -> PortFuture<'a, T> {
    Box::pin(std::future::ready(answer))
}

/// DNS records.
pub trait Dns: Send + Sync {
    /// Makes `name` an alias (CNAME) of `target`, replacing any other target. Both without the
    /// final dot.
    fn set_cname<'a>(&'a self, name: &'a str, target: &'a str) -> PortFuture<'a, ()>;

    /// Deletes an alias and verifies that the server no longer returns it.
    fn delete_cname<'a>(&'a self, name: &'a str) -> PortFuture<'a, ()>;

    /// The current target of the alias `name`, read from the server.
    fn get_cname<'a>(&'a self, name: &'a str) -> PortFuture<'a, Option<String>>;
}

/// A client of an OpenID provider, with which an instance authenticates (SSO client).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SsoClient {
    /// Its client id at the provider.
    pub id: String,
    /// Its secret.
    pub secret: Secret,
    /// What the adapter needs to update or delete it later; may contain secrets.
    pub handle: Secret,
}

/// SSO clients at an OpenID provider.
pub trait Sso: Send + Sync {
    /// Creates the client of that name. Where names are the provider's ids, an existing client is
    /// returned.
    fn create<'a>(&'a self, name: &'a str) -> PortFuture<'a, SsoClient>;

    /// The current client; none if it was deleted at the provider.
    fn find<'a>(&'a self, client: &'a SsoClient) -> PortFuture<'a, Option<SsoClient>>;

    /// Replaces the client's secret.
    fn rotate<'a>(&'a self, client: &'a SsoClient) -> PortFuture<'a, SsoClient>;

    /// Deletes the client. Deleting a missing client succeeds.
    fn delete<'a>(&'a self, client: &'a SsoClient) -> PortFuture<'a, ()>;
}

/// Encryption of stored secrets.
pub trait Encryption: Send + Sync {
    /// Encrypts a secret for one purpose, for example `instance/ID/sso`; decryption needs the same
    /// purpose.
    fn encrypt<'a>(&'a self, purpose: &'a str, secret: &'a Secret) -> PortFuture<'a, String>;

    /// Decrypts a secret that was encrypted for that purpose.
    fn decrypt<'a>(&'a self, purpose: &'a str, sealed: &'a str) -> PortFuture<'a, Secret>;

    /// The id of the key that encrypts now. Every ciphertext of a key begins with its id and `:`.
    fn current_key(&self) -> PortFuture<'_, String>;

    /// The keys that this server holds; none if they are kept elsewhere.
    fn key_ring(&self) -> Option<&dyn KeyRing> {
        None
    }
}

/// The keys of an [`Encryption`] whose keys this server holds.
pub trait KeyRing: Send + Sync {
    /// The ids of all keys, oldest first.
    fn ids(&self) -> Vec<String>;

    /// Adds a key that decrypts only, so that other servers can get it before it is used.
    fn prepare(&self) -> Result<String, Fault>;

    /// Adds a key that encrypts from now on.
    fn add(&self) -> Result<String, Fault>;

    /// Makes a key that it has encrypt from now on.
    fn activate(&self, id: &str) -> Result<(), Fault>;
}

/// The health of an external system, for the health page and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// The last call succeeded, or none was made yet.
    Up,
    /// The last call failed; the next attempt follows after a delay.
    Down {
        /// The last error.
        reason: String,
    },
}

/// Call counters of an external system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of attempted calls.
    pub calls: u64,
    /// Number of failed calls: the system was down, slow or returned an invalid response.
    pub failures: u64,
}

/// An external system whose health is monitored.
pub trait Monitored: Send + Sync {
    /// Its display name.
    fn name(&self) -> &str;

    /// Its health.
    fn health(&self) -> Health;

    /// Its call counters.
    fn counts(&self) -> Counts;
}
