//! What the cluster worker asks of whoever makes clusters.

use std::collections::BTreeMap;

use model::cluster::Settings;
use model::{ClusterId, Resources, Secret};

use super::Answer;

/// A cluster that somebody has asked for.
#[derive(Debug, Clone)]
pub struct Order {
    /// Its id: what is made for it is named after it, so that a repeated call finds its own work.
    pub id: ClusterId,
    /// Its name.
    pub name: String,
    /// Whose machines it shall stand on.
    pub cloud_provider: String,
    /// Where there.
    pub region: String,
    /// What it shall have; nothing if its agent says so.
    pub capacity: Resources,
    /// What this provider is told.
    pub settings: Settings,
    /// What it is told that must not be seen, and what it had us keep, by name.
    pub secrets: BTreeMap<String, Secret>,
}

/// What the agent of a cluster needs to know to speak with us.
#[derive(Debug, Clone)]
pub struct Access {
    /// Where this server is reached from the cluster.
    pub server: String,
    /// What the agent signs in with.
    pub token: Secret,
    /// The image that holds the agent.
    pub image: String,
}

/// How far a cluster is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It goes on by itself; what it waits for, as a sentence. It is asked again soon.
    Going(String),
    /// Done.
    Done(Made),
}

/// What there is to know of what was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Made {
    /// What it is called where it was made.
    pub foreign_id: Option<String>,
    /// The name under which what it hosts is reached.
    pub dns: Option<String>,
    /// What shall be kept for the next calls, encrypted, by name. What is not named here stays.
    pub keep: BTreeMap<String, Secret>,
}

/// Makes clusters, and has them be able to host. Every call can be repeated: it finds its own work.
///
/// A call that takes long says [`Progress::Going`] and goes on in the background.
/// [`Fault::Refused`](super::Fault::Refused) means that the cluster failed, until somebody has it be
/// tried again.
pub trait Provider: Send + Sync {
    /// Has it be made.
    fn create<'a>(&'a self, order: &'a Order) -> Answer<'a, Progress>;

    /// Is it there?
    fn status<'a>(&'a self, order: &'a Order) -> Answer<'a, Progress>;

    /// Installs what hosting needs, its agent above all. Also asked for when all is well, so that what
    /// somebody has changed is mended.
    fn prepare<'a>(&'a self, order: &'a Order, agent: &'a Access) -> Answer<'a, Progress>;

    /// Takes away all that was made and installed. Done means that nothing is left.
    fn remove<'a>(&'a self, order: &'a Order) -> Answer<'a, Progress>;

    /// What shall be kept by now and is not among the order's secrets yet, however the last call ended:
    /// what was made half-way must not be forgotten. To be asked for after every other call, also
    /// after one that failed. Nothing to keep is the usual answer.
    fn keep<'a>(&'a self, order: &'a Order) -> Answer<'a, BTreeMap<String, Secret>> {
        let _ = order;
        Box::pin(std::future::ready(Ok(BTreeMap::new())))
    }
}
