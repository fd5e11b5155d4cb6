//! Keys in Consul's KV store, below prefixes that belong to one resource each.
//!
//! A key below the prefix, the mark, names the owner and lists the keys that Paddock created. Every
//! change is a transaction that succeeds only if the mark is unchanged since it was read:
//! concurrent writers can't interleave, a server that lost its fence can't write, and after a crash
//! the next read shows what is left to do. Keys of others below the prefix are never touched.

mod api;
mod batch;
mod check;
mod drift;
mod mark;
mod place;
mod snapshot;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::resource::Difference;
use model::template::configuration::ConsulKv;
use model::{Invalid, Secret};
use port::{Fault, Files, Observed, Operation, Outcome, PortFuture, Progress, Task};
use serde_json::{Map, Value, json};

use crate::call::{CALL_TIMEOUT, InvalidOptions};
use crate::places::{self, Pending};
use api::{Api, Op};
use batch::{Context, Values};
use place::Place;
use snapshot::Snapshot;

/// The maximum number of read-and-write rounds of a step: far more than the maximum number of keys
/// needs, but bounded while others write at the same time.
const ROUNDS: usize = 200;

/// The output that marks an adoption for the following apply.
const ADOPTED: &str = "adopted";

/// The Consul agent.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address of the agent, without `/v1`.
    pub addr: String,
    /// The ACL token, if needed.
    pub token: Option<Secret>,
    /// The default datacenter; none uses that of the agent.
    pub datacenter: Option<String>,
    /// The timeout of one call.
    pub timeout: Duration,
}

impl Options {
    /// An agent without a token, its datacenter, and the default timeout.
    pub fn new(addr: &str) -> Self {
        Self { addr: addr.to_owned(), token: None, datacenter: None, timeout: CALL_TIMEOUT }
    }
}

/// The executor `consul-kv`.
pub struct Consul {
    api: Api,
    datacenter: Option<String>,
    pending: Pending<Place>,
}

impl Consul {
    /// Prepares the client; Consul need not be reachable yet.
    pub fn new(options: Options) -> Result<Self, InvalidOptions> {
        let Options { addr, token, datacenter, timeout: limit } = options;
        let (api, pending) = (Api::new(&addr, token, limit)?, Pending::default());
        Ok(Self { api, datacenter, pending })
    }

    fn place(&self, spec: &ConsulKv) -> Place {
        place::of_spec(spec, self.datacenter.as_deref())
    }

    /// All places where something was created or begun: an unfinished attempt may have used another
    /// place.
    fn places(&self, task: &Task) -> BTreeSet<Place> {
        let applied = task.applied.as_ref().and_then(|with| check::parse(with).ok());
        let applied = applied.map(|spec| self.place(&spec));
        places::persisted(task).into_iter().chain(applied).collect()
    }

    /// The values that were last applied at a place.
    fn applied_values(&self, task: &Task, place: &Place) -> Values {
        let spec = task.applied.as_ref().and_then(|with| check::parse(with).ok());
        let spec = spec.filter(|spec| self.place(spec) == *place);
        spec.map(|spec| drift::all_bytes(&spec.values)).unwrap_or_default()
    }

    fn context<'a>(&self, task: &'a Task, place: &Place) -> Context<'a> {
        let adopts = task.outputs.get(ADOPTED) == Some(&Value::Bool(true));
        Context { task, applied: self.applied_values(task, place), adopts }
    }

    async fn apply_spec(&self, task: &Task) -> Result<Progress<Outcome>, Fault> {
        let spec = parse(&task.with)?;
        let place = self.place(&spec);
        // An earlier attempt may have used another place.
        for other in self.places(task).iter().filter(|other| **other != place) {
            self.clear(task, other).await?;
        }
        let (desired, context) = (drift::all_bytes(&spec.values), self.context(task, &place));
        for _ in 0..ROUNDS {
            let snapshot = self.api.read(&place).await?;
            self.pending.add(task, place.clone());
            let next = snapshot
                .check_owner(task)
                .and_then(|()| batch::apply(&snapshot, &desired, &context));
            match next {
                Ok(Some(next)) => self.commit(task, &place, next).await?,
                Ok(None) => return Ok(Progress::Done(outcome(&place, &desired))),
                Err(fault) => {
                    self.release(task, &snapshot).await?;
                    return Err(fault);
                }
            }
        }
        Err(contention(&place))
    }

    async fn commit(&self, task: &Task, place: &Place, next: batch::Batch) -> Result<(), Fault> {
        // After a conflict the next read shows the changes.
        if self.api.commit(place, &next.ops).await? == api::Outcome::Done {
            next.log.iter().for_each(|line| task.log.append(line));
        }
        Ok(())
    }

    /// Releases a prefix below which nothing was created.
    async fn release(&self, task: &Task, snapshot: &Snapshot) -> Result<(), Fault> {
        let own = snapshot.own(task).filter(|(mark, _)| mark.fence <= task.fence);
        if let Some((mark, index)) = own
            && mark.keys.is_empty()
            && task.applied.is_none()
        {
            let delete = Op::Delete { key: snapshot.place.mark(), index };
            self.api.commit(&snapshot.place, &[delete]).await?;
        }
        Ok(())
    }

    /// Deletes what was created at a place.
    async fn clear(&self, task: &Task, place: &Place) -> Result<(), Fault> {
        let context = self.context(task, place);
        for _ in 0..ROUNDS {
            let snapshot = self.api.read(place).await?;
            match batch::clear(&snapshot, &context)? {
                Some(next) => self.commit(task, place, next).await?,
                None => {
                    snapshot.log_remaining(task);
                    return Ok(());
                }
            }
        }
        Err(contention(place))
    }

    async fn clear_all(&self, task: &Task) -> Result<Progress<()>, Fault> {
        let places = self.places(task);
        let desired = place::desired(task, self.datacenter.as_deref());
        if let Some(desired) = desired.filter(|desired| !places.contains(desired)) {
            self.clear_unrecorded(task, &desired).await?;
        }
        for place in places {
            self.clear(task, &place).await?;
        }
        Ok(Progress::Done(()))
    }

    /// Deletes what a first attempt may have created whose server crashed before it was recorded.
    /// Without permission to read, Paddock created nothing.
    async fn clear_unrecorded(&self, task: &Task, place: &Place) -> Result<(), Fault> {
        match self.api.read(place).await {
            Ok(_) => self.clear(task, place).await,
            Err(Fault::Refused(why)) => {
                task.log.append(format!("Nothing was created below {}: {why}", place.prefix));
                Ok(())
            }
            Err(fault) => Err(fault),
        }
    }

    async fn plan_spec(&self, task: &Task) -> Result<Vec<Difference>, Fault> {
        let spec = parse(&task.with)?;
        let place = self.place(&spec);
        let snapshot = self.api.read(&place).await?;
        snapshot.check_owner(task)?;
        let differences = drift::planned(&snapshot, &self.context(task, &place), &spec.values);
        // The next step writes there.
        self.pending.add(task, place);
        Ok(differences)
    }

    async fn observe_spec(&self, task: &Task) -> Result<Observed, Fault> {
        let spec = parse(task.applied.as_ref().unwrap_or(&task.with))?;
        let snapshot = self.api.read(&self.place(&spec)).await?;
        Ok(drift::observed(&snapshot, task, &spec.values))
    }

    async fn adopt_prefix(&self, task: &Task, what: &str) -> Result<Outcome, Fault> {
        let spec = parse(&task.with)?;
        let prefix = &spec.prefix;
        if what.trim_end_matches('/') != prefix.trim_end_matches('/') {
            let why = format!("cannot adopt “{what}”: it must be the prefix “{prefix}”");
            return Err(Fault::Refused(why));
        }
        let place = self.place(&spec);
        let snapshot = self.api.read(&place).await?;
        snapshot.check_owner(task)?;
        if snapshot.entries.is_empty() {
            let why = format!("cannot adopt “{prefix}”: it has no keys");
            return Err(Fault::Refused(why));
        }
        let mut found = outcome(&place, &Values::new());
        let keys = snapshot.entries.values().map(|entry| entry.key.clone());
        found.outputs.insert("keys".into(), keys.collect());
        found.outputs.insert(ADOPTED.into(), true.into());
        Ok(found)
    }
}

fn parse(with: &Map<String, Value>) -> Result<ConsulKv, Fault> {
    check::parse(with).map_err(|invalid| Fault::Refused(invalid.to_string()))
}

fn outcome(place: &Place, values: &Values) -> Outcome {
    let keys: Vec<String> = values.keys().map(|name| place.key(name)).collect();
    let outputs = json!({"prefix": place.prefix, "keys": keys, "datacenter": place.datacenter});
    Outcome { outputs: outputs.as_object().cloned().unwrap_or_default(), link: None }
}

fn contention(place: &Place) -> Fault {
    Fault::Unavailable(format!("too many concurrent changes by others below {}", place.prefix))
}

impl Operation for Consul {
    fn validate(&self, with: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
        check::parse(with).map(drop)
    }

    fn plan<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>> {
        Box::pin(async { Ok(Progress::Done(self.plan_spec(task).await?)) })
    }

    fn apply<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Outcome>> {
        Box::pin(self.apply_spec(task))
    }

    fn observe<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Observed>> {
        Box::pin(async { self.observe_spec(task).await.map(Progress::Done) })
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<()>> {
        Box::pin(self.clear_all(task))
    }

    fn persist<'a>(&'a self, task: &'a Task) -> PortFuture<'a, BTreeMap<String, Secret>> {
        let places = self.pending.to_persist(task).into_iter().collect();
        port::ready(Ok(places))
    }

    fn adopt<'a>(&'a self, task: &'a Task, what: &'a str) -> PortFuture<'a, Outcome> {
        Box::pin(self.adopt_prefix(task, what))
    }
}
