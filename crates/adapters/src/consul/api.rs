//! The two calls of Consul's API that are needed: one look, and one transaction.

use std::time::Duration;

use data_encoding::BASE64;
use model::Secret;
use port::Fault;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::place::Place;
use super::seen::{Entry, Seen};
use crate::call::{Peer, Reply, Unusable};

/// No look takes in more than so many bytes.
const MAX_LOOK_BYTES: usize = 16 << 20;

/// One operation of a transaction. Each holds only if the key is what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Op {
    /// The key gets this value. The index is that with which it was last written, 0 if it is not there.
    Set { key: String, value: Vec<u8>, index: u64 },
    /// The key goes.
    Delete { key: String, index: u64 },
    /// The key must not be there.
    Absent { key: String },
}

/// What came of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All of it holds.
    Done,
    /// None of it: somebody was faster.
    Conflict,
}

/// Consul's HTTP API.
pub(super) struct Api {
    peer: Peer,
    token: Option<Secret>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answered {
    results: Option<Vec<Found>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failed {
    errors: Vec<Why>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Why {
    what: String,
}

#[derive(Deserialize)]
struct Found {
    #[serde(rename = "KV")]
    kv: Pair,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Pair {
    key: String,
    value: Option<String>,
    create_index: u64,
    modify_index: u64,
}

impl Api {
    pub(super) fn new(
        address: &str,
        token: Option<Secret>,
        limit: Duration,
    ) -> Result<Self, Unusable> {
        Ok(Self { peer: Peer::new("Consul", address, limit)?, token })
    }

    /// All that is at a place, and whose the folders around it are: as of one moment.
    pub(super) async fn look(&self, place: &Place) -> Result<Seen, Fault> {
        let trees = place.marks_above().into_iter().chain([place.prefix.clone()]);
        let ops: Vec<Value> =
            trees.map(|key| json!({"KV": {"Verb": "get-tree", "Key": key}})).collect();
        let request = self.request(Method::PUT, &["v1", "txn"], place, &[("consistent", "")]);
        let reply = self.peer.send_within(request.json(&ops), MAX_LOOK_BYTES).await?;
        let reply = reply.ok_or_else(|| crowded(place))?;
        if reply.status != StatusCode::OK {
            return Err(self.fault("read", place, &reply));
        }
        let found = reply.json::<Answered>(&self.peer)?.results.unwrap_or_default();
        let found = found.into_iter().map(|found| self.entry(found.kv));
        let seen = Seen::new(place.clone(), found.collect::<Result<_, _>>()?);
        if seen.mark.is_none() {
            self.may_read(place).await?;
        }
        Ok(seen)
    }

    /// What a token may not see is left out of a tree as if it were not there; a single key is refused.
    async fn may_read(&self, place: &Place) -> Result<(), Fault> {
        let mark = place.mark();
        let path: Vec<&str> = ["v1", "kv"].into_iter().chain(mark.split('/')).collect();
        let request = self.request(Method::GET, &path, place, &[("consistent", "")]);
        let reply = self.peer.send(request).await?;
        match reply.status {
            StatusCode::OK | StatusCode::NOT_FOUND => Ok(()),
            _ => Err(self.fault("read", place, &reply)),
        }
    }

    /// All of these operations, or none.
    pub(super) async fn commit(&self, place: &Place, ops: &[Op]) -> Result<Outcome, Fault> {
        let ops: Vec<Value> = ops.iter().map(as_json).collect();
        let request = self.request(Method::PUT, &["v1", "txn"], place, &[]).json(&ops);
        let reply = self.peer.send(request).await?;
        match reply.status {
            StatusCode::OK => reply.json::<Answered>(&self.peer).map(|_| Outcome::Done),
            StatusCode::CONFLICT => {
                let why = reply.json::<Failed>(&self.peer)?.errors;
                if why.iter().any(|one| one.what.contains("Permission denied")) {
                    return Err(self.denied("write", place));
                }
                Ok(Outcome::Conflict)
            }
            _ => Err(self.fault("write", place, &reply)),
        }
    }

    fn request(
        &self,
        method: Method,
        path: &[&str],
        place: &Place,
        query: &[(&str, &str)],
    ) -> RequestBuilder {
        let datacenter = place.datacenter.as_deref().map(|name| ("dc", name));
        let query: Vec<_> = query.iter().copied().chain(datacenter).collect();
        let request = self.peer.request(method, self.peer.at(path)).query(&query);
        match &self.token {
            Some(token) => request.header("X-Consul-Token", token.reveal()),
            None => request,
        }
    }

    fn entry(&self, found: Pair) -> Result<Entry, Fault> {
        let value = BASE64.decode(found.value.unwrap_or_default().as_bytes());
        let value = value.map_err(|_| self.peer.confused("a value is not in base64"))?;
        let (created, changed) = (found.create_index, found.modify_index);
        Ok(Entry { key: found.key, value, created, changed })
    }

    fn fault(&self, doing: &str, place: &Place, reply: &Reply) -> Fault {
        let (name, prefix) = (self.peer.name(), &place.prefix);
        match (reply.status, &place.datacenter) {
            (StatusCode::FORBIDDEN, _) if !reply.says("ACL not found") => self.denied(doing, place),
            (StatusCode::NOT_FOUND, _) => Fault::Unavailable(format!(
                "{name} has no keys and values: it answered 404; check its address in the settings"
            )),
            (StatusCode::PAYLOAD_TOO_LARGE, _) => Fault::Refused(format!(
                "{name} takes only smaller transactions than the one for {prefix}: raise its \
                 limits.txn_max_req_len, or have smaller values"
            )),
            // Who names one that is not there must not have all others wait.
            (_, Some(datacenter)) if reply.says("No path to datacenter") => Fault::Refused(
                format!("{name} knows no way to the datacenter “{datacenter}”: check its name"),
            ),
            _ => {
                let secrets: Vec<&Secret> = self.token.iter().collect();
                self.peer.fault(&format!("{doing} below {prefix}"), reply, &secrets)
            }
        }
    }

    fn denied(&self, doing: &str, place: &Place) -> Fault {
        let (name, prefix) = (self.peer.name(), &place.prefix);
        Fault::Refused(format!(
            "{name} does not let Paddock {doing} below {prefix}: the policy of its token must have \
             key_prefix \"{prefix}\" {{ policy = \"write\" }}"
        ))
    }
}

fn crowded(place: &Place) -> Fault {
    let most = MAX_LOOK_BYTES >> 20;
    Fault::Refused(format!(
        "below {} are more than {most} MiB of keys and values: choose another prefix",
        place.prefix
    ))
}

fn as_json(op: &Op) -> Value {
    json!({"KV": match op {
        Op::Set { key, value, index } => {
            json!({"Verb": "cas", "Key": key, "Value": BASE64.encode(value), "Index": index})
        }
        Op::Delete { key, index } => json!({"Verb": "delete-cas", "Key": key, "Index": index}),
        Op::Absent { key } => json!({"Verb": "check-not-exists", "Key": key}),
    }})
}
