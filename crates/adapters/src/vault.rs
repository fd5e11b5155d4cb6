//! Secrets and certificates in Vault: the executor `vault-secret`.
//!
//! Values are generated here, written to Vault and not retained. Outputs contain only references of
//! the form `vault:<mount>/<path>#<key>`, the same for both versions of the KV engine. Values must
//! not get into outputs, differences, log lines or faults.
//!
//! Paddock's policy must permit, with version 2 of KV: `create`, `read` and `update` on
//! `<mount>/data/<path>`, and `create`, `update`, `delete`, preferably also `patch`, on
//! `<mount>/metadata/<path>`; with version 1: `create`, `read`, `update` and `delete` on
//! `<mount>/<path>`; for certificates `create` and `update` on `pki/issue/<role>` and `pki/revoke`.

mod apply;
mod certificate;
mod check;
mod comparison;
mod destroy;
mod fingerprint;
mod generate;
mod kv;
mod mark;
mod mount;
mod observe;
mod outputs;
mod place;
mod renewal;
mod session;
mod tokens;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::operation::Subject;
use model::resource::Difference;
use model::template::configuration;
use model::{Invalid, Secret, Time};
use port::{Fault, Files, Observed, Operation, Outcome, PortFuture, Progress, Task};
use serde_json::{Map, Value};

use self::fingerprint::Fingerprints;
use self::kv::{Kv, Place};
use self::mount::Mounts;
use self::place::At;
use self::session::Session;
use crate::call::{CALL_TIMEOUT, InvalidOptions};
use crate::encryption::local::Entropy;
use crate::places::{self, Pending};

pub use renewal::Renewal;

/// Returns the current time.
pub type Now = Arc<dyn Fn() -> Time + Send + Sync>;

/// The output of `adopt` that the following apply reads.
const ADOPTED: &str = "adopted";
/// The name under which the fingerprint key is persisted.
const FINGERPRINT_KEY: &str = "print-key";

/// How Paddock authenticates to Vault.
#[derive(Debug, Clone)]
pub enum Auth {
    /// With a token, preferably a periodic one. It is renewed if possible.
    Token(Secret),
    /// With an AppRole.
    AppRole {
        /// The role's id.
        role_id: String,
        /// A secret id without a use limit.
        secret_id: Secret,
        /// The mount of AppRole below `auth`, usually `approle`.
        mount: String,
    },
}

/// The Vault server, and Paddock's credentials there.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its address, without `/v1`.
    pub address: String,
    /// How Paddock authenticates.
    pub auth: Auth,
    /// The namespace, if Vault has namespaces.
    pub namespace: Option<String>,
    /// The timeout of one call.
    pub timeout: Duration,
}

impl Options {
    /// A Vault without namespaces, with the default timeout.
    pub fn new(address: &str, sign_in: Auth) -> Self {
        Self { address: address.to_owned(), auth: sign_in, namespace: None, timeout: CALL_TIMEOUT }
    }
}

/// The executor `vault-secret`.
pub struct VaultSecrets {
    session: Arc<Session>,
    mounts: Mounts,
    entropy: Entropy,
    now: Now,
    /// Fingerprint keys that are not persisted yet.
    new_keys: Mutex<HashMap<Subject, Secret>>,
    pending: Pending<At>,
}

impl VaultSecrets {
    /// Prepares the client; Vault need not be reachable yet.
    pub fn new(options: Options, entropy: Entropy, now: Now) -> Result<Self, InvalidOptions> {
        let session = Arc::new(Session::new(options, now.clone())?);
        let (mounts, new_keys, pending) = Default::default();
        Ok(Self { session, mounts, entropy, now, new_keys, pending })
    }

    /// The task that renews the token, so that it does not expire while Vault is not used.
    pub fn renewal(&self) -> Renewal {
        Renewal(self.session.clone())
    }

    /// The secret at a place, in the KV version of its mount.
    async fn kv(&self, at: &At) -> Result<Kv<'_>, Fault> {
        let version = self.mounts.version(&self.session, &at.mount).await?;
        let place = Place { mount: at.mount.clone(), path: at.path.clone(), version };
        Ok(Kv { session: &self.session, mounts: &self.mounts, place })
    }

    /// All places where something was created or begun: an unfinished attempt may have used another
    /// place.
    fn places(task: &Task) -> BTreeSet<At> {
        let applied = task.applied.as_ref().and_then(place::desired);
        places::persisted(task).into_iter().chain(applied).collect()
    }

    /// The fingerprints of this resource's values.
    fn fingerprints(&self, task: &Task) -> Fingerprints {
        if let Some(key) = task.persisted.get(FINGERPRINT_KEY) {
            return Fingerprints::new(key);
        }
        let mut keys = self.new_keys.lock().unwrap_or_else(PoisonError::into_inner);
        Fingerprints::new(
            keys.entry(task.id).or_insert_with(|| fingerprint::new_key(&self.entropy)),
        )
    }

    /// The resource's fingerprint key, until it is persisted.
    fn new_key(&self, task: &Task) -> Option<Secret> {
        let mut keys = self.new_keys.lock().unwrap_or_else(PoisonError::into_inner);
        if task.persisted.contains_key(FINGERPRINT_KEY) {
            keys.remove(&task.id);
        }
        keys.get(&task.id).cloned()
    }
}

/// Parses the spec.
fn parse(with: &Map<String, Value>) -> Result<configuration::VaultSecret, Fault> {
    configuration::read(with).map_err(|invalid| Fault::Refused(invalid.to_string()))
}

impl Operation for VaultSecrets {
    fn validate(&self, with: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
        check::validate(with)
    }

    fn plan<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>> {
        Box::pin(async { Ok(Progress::Done(self.differences(task).await?)) })
    }

    fn apply<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Outcome>> {
        Box::pin(async { self.apply_spec(task).await.map(Progress::Done) })
    }

    fn observe<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Observed>> {
        Box::pin(async { self.observe_spec(task).await.map(Progress::Done) })
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<()>> {
        Box::pin(async { self.destroy_all(task).await.map(Progress::Done) })
    }

    fn persist<'a>(&'a self, task: &'a Task) -> PortFuture<'a, BTreeMap<String, Secret>> {
        let new = self.new_key(task).map(|key| (FINGERPRINT_KEY.to_owned(), key));
        let all = new.into_iter().chain(self.pending.to_persist(task)).collect();
        port::ready(Ok(all))
    }

    fn adopt<'a>(&'a self, task: &'a Task, what: &'a str) -> PortFuture<'a, Outcome> {
        Box::pin(self.adopt_existing(task, what))
    }
}
