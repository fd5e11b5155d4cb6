//! What workers ask of foreign systems. `adapters` answers; the engine knows no protocol.
//!
//! Every call can be repeated and finds its own work of before. None waits for long: each has a limit
//! of its own, and what is down says so at once until it is tried again.

mod operation;
mod probe;

use futures_util::future::BoxFuture;
use model::Secret;
use model::resource::Reason;

pub use operation::{
    Access, CLUSTER_DNS, CLUSTER_ID, Environment, Files, Log, Observed, Operation, Outcome,
    Progress, Task,
};
pub use probe::Probe;

/// Why a foreign system did not do it, as a sentence that a user can act on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It can't be done like this; trying again would not help.
    #[error("{0}")]
    Refused(String),
    /// It is down, slow or confused: it will be tried again.
    #[error("{0}")]
    Unavailable(String),
    /// A subject of Paddock's own, on which it depends, failed or is not available.
    #[error("{reason}")]
    Subject {
        /// Why.
        reason: Box<Reason>,
        /// Will it be tried again?
        is_retried: bool,
    },
}

/// What a port answers with, later.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, Fault>>;

/// An answer that is known at once.
pub fn ready<'a, T: Send + 'a>(answer: Result<T, Fault>) -> Answer<'a, T> {
    Box::pin(std::future::ready(answer))
}

/// Names in the domain name system.
pub trait Dns: Send + Sync {
    /// Has `name` be an alias (CNAME) of `target`, whatever it was. Both without the final dot.
    fn point<'a>(&'a self, name: &'a str, target: &'a str) -> Answer<'a, ()>;

    /// Takes an alias away, and makes sure that the server does not know it any more.
    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()>;

    /// What a name is an alias of, as the server knows it now.
    fn find<'a>(&'a self, name: &'a str) -> Answer<'a, Option<String>>;
}

/// A client of an OpenID provider: what an instance signs in with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its id at the provider.
    pub id: String,
    /// Its secret.
    pub secret: Secret,
    /// What the adapter needs to change or remove it later; may hold secrets, too.
    pub handle: Secret,
}

/// Clients at an OpenID provider.
pub trait Sso: Send + Sync {
    /// Makes the client of that name; where names are the provider's ids, one that is there is found.
    fn create<'a>(&'a self, name: &'a str) -> Answer<'a, Client>;

    /// The client as it is now; none if somebody has removed it.
    fn find<'a>(&'a self, client: &'a Client) -> Answer<'a, Option<Client>>;

    /// Gives the client another secret.
    fn rotate<'a>(&'a self, client: &'a Client) -> Answer<'a, Client>;

    /// Takes the client away. One that is gone is fine.
    fn remove<'a>(&'a self, client: &'a Client) -> Answer<'a, ()>;
}

/// Encrypts what is kept.
pub trait Seal: Send + Sync {
    /// Encrypts for one purpose, for example `instance/ID/sso`: elsewhere it can't be opened.
    fn seal<'a>(&'a self, purpose: &'a str, secret: &'a Secret) -> Answer<'a, String>;

    /// Decrypts what was sealed for that purpose.
    fn open<'a>(&'a self, purpose: &'a str, sealed: &'a str) -> Answer<'a, Secret>;
}

/// How a foreign system is doing, for the page of health and for metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It answered last time, or was not asked yet.
    Up,
    /// It did not; it is asked again after a while.
    Down {
        /// What it said last.
        reason: String,
    },
}

/// What was counted of a foreign system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often it was really asked.
    pub asked: u64,
    /// How often it did not do its part: down, slow or confused.
    pub failed: u64,
}

/// A foreign system that is watched.
pub trait Watched: Send + Sync {
    /// What users know it by.
    fn name(&self) -> &str;

    /// How it is doing.
    fn health(&self) -> Health;

    /// What was counted so far.
    fn counts(&self) -> Counts;
}
