//! Keys and values in Consul, below prefixes that belong to one resource each.
//!
//! Whose a prefix is says a key in it, the mark, which also lists what was made. Every
//! change is a transaction that holds only if the mark is still what was seen: nobody gets between, a
//! server that was taken over from changes nothing more, and after a crash anywhere the next look shows
//! what is left to do. What others keep below the prefix is never touched.

mod api;
mod batch;
mod check;
mod drift;
mod mark;
mod place;
mod seen;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::resource::Difference;
use model::template::with::ConsulKv;
use model::{Invalid, Secret};
use port::{Answer, Fault, Files, Observed, Operation, Outcome, Progress, Task};
use serde_json::{Map, Value, json};

use crate::call::{LIMIT, Unusable};
use crate::places::{self, Noted};
use api::{Api, Op};
use batch::{Known, Values};
use place::Place;
use seen::Seen;

/// How often a step looks and writes: far more than the most keys take, so that others who write at the
/// same time don't keep it busy for ever.
const ROUNDS: usize = 200;

/// Under which name an adoption tells the apply that follows of itself.
const ADOPTED: &str = "adopted";

/// Which Consul.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address of an agent, without `/v1`.
    pub addr: String,
    /// What allows Paddock to write there, if anything has to.
    pub token: Option<Secret>,
    /// The datacenter of resources that name none; the agent's own if this is none, too.
    pub datacenter: Option<String>,
    /// How long one call may take.
    pub limit: Duration,
}

impl Options {
    /// An agent that needs no token, its own datacenter, and the usual limit.
    pub fn new(addr: &str) -> Self {
        Self { addr: addr.to_owned(), token: None, datacenter: None, limit: LIMIT }
    }
}

/// Carries out `consul-kv`.
pub struct Consul {
    api: Api,
    datacenter: Option<String>,
    noted: Noted<Place>,
}

impl Consul {
    /// Prepares; Consul need not be there yet.
    pub fn new(options: Options) -> Result<Self, Unusable> {
        let Options { addr, token, datacenter, limit } = options;
        let (api, noted) = (Api::new(&addr, token, limit)?, Noted::default());
        Ok(Self { api, datacenter, noted })
    }

    fn place(&self, wish: &ConsulKv) -> Place {
        place::of(wish, self.datacenter.as_deref())
    }

    /// All places where something was made or begun: a first try may have been told another one than
    /// the next, and was never finished.
    fn places(&self, task: &Task) -> BTreeSet<Place> {
        let applied = task.applied.as_ref().and_then(|with| check::told(with).ok());
        let applied = applied.map(|told| self.place(&told));
        places::kept(task).into_iter().chain(applied).collect()
    }

    /// What was last made at a place.
    fn made(&self, task: &Task, place: &Place) -> Values {
        let told = task.applied.as_ref().and_then(|with| check::told(with).ok());
        let told = told.filter(|told| self.place(told) == *place);
        told.map(|told| drift::all_bytes(&told.values)).unwrap_or_default()
    }

    fn known<'a>(&self, task: &'a Task, place: &Place) -> Known<'a> {
        let adopts = task.outputs.get(ADOPTED) == Some(&Value::Bool(true));
        Known { task, made: self.made(task, place), adopts }
    }

    async fn make(&self, task: &Task) -> Result<Progress<Outcome>, Fault> {
        let told = told(&task.with)?;
        let place = self.place(&told);
        // A try before this one may have begun elsewhere.
        for other in self.places(task).iter().filter(|other| **other != place) {
            self.clear(task, other).await?;
        }
        let (wish, known) = (drift::all_bytes(&told.values), self.known(task, &place));
        for _ in 0..ROUNDS {
            let seen = self.api.look(&place).await?;
            self.noted.add(task, place.clone());
            let next = seen.may_make(task).and_then(|()| batch::make(&seen, &wish, &known));
            match next {
                Ok(Some(next)) => self.commit(task, &place, next).await?,
                Ok(None) => return Ok(Progress::Done(applied(&place, &wish))),
                Err(fault) => {
                    self.step_back(task, &seen).await?;
                    return Err(fault);
                }
            }
        }
        Err(restless(&place))
    }

    async fn commit(&self, task: &Task, place: &Place, next: batch::Batch) -> Result<(), Fault> {
        // After a conflict the next look shows what has changed.
        if self.api.commit(place, &next.ops).await? == api::Outcome::Done {
            next.words.iter().for_each(|words| task.log.say(words));
        }
        Ok(())
    }

    /// Gives back a prefix below which nothing was ever made.
    async fn step_back(&self, task: &Task, seen: &Seen) -> Result<(), Fault> {
        let own = seen.own(task).filter(|(mark, _)| mark.fence <= task.fence);
        if let Some((mark, index)) = own
            && mark.keys.is_empty()
            && task.applied.is_none()
        {
            let gone = Op::Delete { key: seen.place.mark(), index };
            self.api.commit(&seen.place, &[gone]).await?;
        }
        Ok(())
    }

    /// Takes away what was made at a place.
    async fn clear(&self, task: &Task, place: &Place) -> Result<(), Fault> {
        let known = self.known(task, place);
        for _ in 0..ROUNDS {
            let seen = self.api.look(place).await?;
            match batch::clear(&seen, &known)? {
                Some(next) => self.commit(task, place, next).await?,
                None => {
                    seen.say_what_stays(task);
                    return Ok(());
                }
            }
        }
        Err(restless(place))
    }

    async fn clear_all(&self, task: &Task) -> Result<Progress<()>, Fault> {
        let places = self.places(task);
        let told = place::told(task, self.datacenter.as_deref());
        if let Some(told) = told.filter(|told| !places.contains(told)) {
            self.clear_if_seen(task, &told).await?;
        }
        for place in places {
            self.clear(task, &place).await?;
        }
        Ok(Progress::Done(()))
    }

    /// Takes away what a first try may have made, whose server died before it could be noted. Where
    /// Paddock may not even look, it has made nothing.
    async fn clear_if_seen(&self, task: &Task, place: &Place) -> Result<(), Fault> {
        match self.api.look(place).await {
            Ok(_) => self.clear(task, place).await,
            Err(Fault::Refused(why)) => {
                task.log.say(format!("Nothing was made below {}: {why}", place.prefix));
                Ok(())
            }
            Err(fault) => Err(fault),
        }
    }

    async fn find_out(&self, task: &Task) -> Result<Vec<Difference>, Fault> {
        let told = told(&task.with)?;
        let place = self.place(&told);
        let seen = self.api.look(&place).await?;
        seen.may_make(task)?;
        let differences = drift::planned(&seen, &self.known(task, &place), &told.values);
        // The next step writes there.
        self.noted.add(task, place);
        Ok(differences)
    }

    async fn look(&self, task: &Task) -> Result<Observed, Fault> {
        let told = told(task.applied.as_ref().unwrap_or(&task.with))?;
        let seen = self.api.look(&self.place(&told)).await?;
        Ok(drift::observed(&seen, task, &told.values))
    }

    async fn take_over(&self, task: &Task, what: &str) -> Result<Outcome, Fault> {
        let told = told(&task.with)?;
        let prefix = &told.prefix;
        if what.trim_end_matches('/') != prefix.trim_end_matches('/') {
            let why =
                format!("“{what}” can't be taken over: what can be is the prefix, “{prefix}”");
            return Err(Fault::Refused(why));
        }
        let place = self.place(&told);
        let seen = self.api.look(&place).await?;
        seen.may_make(task)?;
        if seen.entries.is_empty() {
            let why = format!("“{prefix}” can't be taken over: nothing is below it");
            return Err(Fault::Refused(why));
        }
        let mut found = applied(&place, &Values::new());
        let keys = seen.entries.values().map(|entry| entry.key.clone());
        found.outputs.insert("keys".into(), keys.collect());
        found.outputs.insert(ADOPTED.into(), true.into());
        Ok(found)
    }
}

fn told(with: &Map<String, Value>) -> Result<ConsulKv, Fault> {
    check::told(with).map_err(|invalid| Fault::Refused(invalid.to_string()))
}

fn applied(place: &Place, wish: &Values) -> Outcome {
    let keys: Vec<String> = wish.keys().map(|name| place.key(name)).collect();
    let outputs = json!({"prefix": place.prefix, "keys": keys, "datacenter": place.datacenter});
    Outcome { outputs: outputs.as_object().cloned().unwrap_or_default(), link: None }
}

fn restless(place: &Place) -> Fault {
    Fault::Unavailable(format!(
        "others change what is below {} faster than Paddock can write it",
        place.prefix
    ))
}

impl Operation for Consul {
    fn validate(&self, with: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
        check::told(with).map(drop)
    }

    fn plan<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Vec<Difference>>> {
        Box::pin(async { Ok(Progress::Done(self.find_out(task).await?)) })
    }

    fn apply<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Outcome>> {
        Box::pin(self.make(task))
    }

    fn observe<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Observed>> {
        Box::pin(async { self.look(task).await.map(Progress::Done) })
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<()>> {
        Box::pin(self.clear_all(task))
    }

    fn keep<'a>(&'a self, task: &'a Task) -> Answer<'a, BTreeMap<String, Secret>> {
        let places = self.noted.to_keep(task).into_iter().collect();
        port::ready(Ok(places))
    }

    fn adopt<'a>(&'a self, task: &'a Task, what: &'a str) -> Answer<'a, Outcome> {
        Box::pin(self.take_over(task, what))
    }
}
