//! Secrets and certificates in Vault: the executor `vault-secret`.
//!
//! Values are made here, written to Vault and forgotten. What others get are references of the form
//! `vault:<mount>/<path>#<key>`, the same for both versions of the KV engine. No value may get into
//! outputs, differences, log lines or faults.
//!
//! Paddock's policy must allow, with version 2 of KV: `create`, `read` and `update` on
//! `<mount>/data/<path>`, and `create`, `update`, `delete`, best also `patch`, on
//! `<mount>/metadata/<path>`; with version 1: `create`, `read`, `update` and `delete` on
//! `<mount>/<path>`; for certificates `create` and `update` on `pki/issue/<role>` and `pki/revoke`.

mod apply;
mod certificate;
mod check;
mod destroy;
mod generate;
mod kv;
mod look;
mod mark;
mod mount;
mod observe;
mod outputs;
mod place;
mod prints;
mod renewal;
mod session;
mod sign_in;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::operation::Subject;
use model::resource::Difference;
use model::template::with;
use model::{Invalid, Secret, Time};
use port::{Answer, Fault, Files, Observed, Operation, Outcome, Progress, Task};
use serde_json::{Map, Value};

use self::kv::{Kv, Place};
use self::mount::Mounts;
use self::place::At;
use self::prints::Prints;
use self::session::Session;
use crate::call::{LIMIT, Unusable};
use crate::places::{self, Noted};
use crate::seal::local::Entropy;

pub use renewal::Renewal;

/// Tells the time.
pub type Now = Arc<dyn Fn() -> Time + Send + Sync>;

/// What `adopt` gives, so that the apply after it knows.
const ADOPTED: &str = "adopted";
/// What Paddock keeps the key of prints as.
const PRINT_KEY: &str = "print-key";

/// How Paddock signs in to Vault.
#[derive(Debug, Clone)]
pub enum SignIn {
    /// With a token. It is renewed, if it can be; best it is a periodic one.
    Token(Secret),
    /// With a role of AppRole.
    AppRole {
        /// The role's id.
        role_id: String,
        /// A secret id that may be used as often as is needed.
        secret_id: Secret,
        /// Where AppRole is mounted below `auth`, usually `approle`.
        mount: String,
    },
}

/// Which Vault, and who Paddock is there.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its address, without `/v1`.
    pub address: String,
    /// How Paddock signs in.
    pub sign_in: SignIn,
    /// The namespace, where Vault has such.
    pub namespace: Option<String>,
    /// How long one call may take.
    pub limit: Duration,
}

impl Options {
    /// A Vault without namespaces, with the usual limit.
    pub fn new(address: &str, sign_in: SignIn) -> Self {
        Self { address: address.to_owned(), sign_in, namespace: None, limit: LIMIT }
    }
}

/// Makes secrets in Vault.
pub struct Secrets {
    session: Arc<Session>,
    mounts: Mounts,
    entropy: Entropy,
    now: Now,
    /// Keys of prints that Paddock does not keep yet.
    new_keys: Mutex<HashMap<Subject, Secret>>,
    noted: Noted<At>,
}

impl Secrets {
    /// Prepares; Vault need not be there yet.
    pub fn new(options: Options, entropy: Entropy, now: Now) -> Result<Self, Unusable> {
        let session = Arc::new(Session::new(options, now.clone())?);
        let (mounts, new_keys, noted) = Default::default();
        Ok(Self { session, mounts, entropy, now, new_keys, noted })
    }

    /// Who keeps its token good, so that it does not end where nothing is made for long.
    pub fn renewal(&self) -> Renewal {
        Renewal(self.session.clone())
    }

    /// Where it is kept, as the mount has it.
    async fn kv(&self, at: &At) -> Result<Kv<'_>, Fault> {
        let version = self.mounts.version(&self.session, &at.mount).await?;
        let place = Place { mount: at.mount.clone(), path: at.path.clone(), version };
        Ok(Kv { session: &self.session, mounts: &self.mounts, place })
    }

    /// All places where something was made or begun: a first try may have been told another one than
    /// the next, and was never finished.
    fn places(task: &Task) -> BTreeSet<At> {
        let applied = task.applied.as_ref().and_then(place::told);
        places::kept(task).into_iter().chain(applied).collect()
    }

    /// What prints of this resource's values are made with.
    fn prints(&self, task: &Task) -> Prints {
        if let Some(key) = task.kept.get(PRINT_KEY) {
            return Prints::new(key);
        }
        let mut keys = self.new_keys.lock().unwrap_or_else(PoisonError::into_inner);
        Prints::new(keys.entry(task.id).or_insert_with(|| prints::new_key(&self.entropy)))
    }

    /// The key of prints that was made for it, until Paddock keeps it.
    fn new_key(&self, task: &Task) -> Option<Secret> {
        let mut keys = self.new_keys.lock().unwrap_or_else(PoisonError::into_inner);
        if task.kept.contains_key(PRINT_KEY) {
            keys.remove(&task.id);
        }
        keys.get(&task.id).cloned()
    }
}

/// What the executor was told, as its shape.
fn told(with: &Map<String, Value>) -> Result<with::VaultSecret, Fault> {
    with::read(with).map_err(|invalid| Fault::Refused(invalid.to_string()))
}

impl Operation for Secrets {
    fn validate(&self, with: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
        check::all(with)
    }

    fn plan<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Vec<Difference>>> {
        Box::pin(async { Ok(Progress::Done(self.differences(task).await?)) })
    }

    fn apply<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Outcome>> {
        Box::pin(async { self.bring(task).await.map(Progress::Done) })
    }

    fn observe<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Observed>> {
        Box::pin(async { self.look_at(task).await.map(Progress::Done) })
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<()>> {
        Box::pin(async { self.take_away(task).await.map(Progress::Done) })
    }

    fn keep<'a>(&'a self, task: &'a Task) -> Answer<'a, BTreeMap<String, Secret>> {
        let new = self.new_key(task).map(|key| (PRINT_KEY.to_owned(), key));
        let all = new.into_iter().chain(self.noted.to_keep(task)).collect();
        port::ready(Ok(all))
    }

    fn adopt<'a>(&'a self, task: &'a Task, what: &'a str) -> Answer<'a, Outcome> {
        Box::pin(self.take_over(task, what))
    }
}
