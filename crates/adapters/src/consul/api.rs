//! The two calls of Consul's API that are needed: a consistent read and a transaction.

use std::time::Duration;

use data_encoding::BASE64;
use model::Secret;
use port::Fault;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::place::Place;
use super::snapshot::{Entry, Snapshot};
use crate::call::{InvalidOptions, Peer, Reply};

/// The maximum size of a read.
const MAX_READ_BYTES: usize = 16 << 20;

/// One operation of a transaction. Each succeeds only if the key is unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Op {
    /// Sets a key. The index is that of its last write, 0 if the key is missing.
    Set { key: String, value: Vec<u8>, index: u64 },
    /// Deletes a key.
    Delete { key: String, index: u64 },
    /// Checks that a key is missing.
    Absent { key: String },
}

/// The result of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Committed.
    Done,
    /// Rolled back: a concurrent write was faster.
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
    ) -> Result<Self, InvalidOptions> {
        Ok(Self { peer: Peer::new("Consul", address, limit)?, token })
    }

    /// Reads all keys of a place, and the marks of the folders around it, in one consistent
    /// snapshot.
    pub(super) async fn read(&self, place: &Place) -> Result<Snapshot, Fault> {
        let trees = place.marks_above().into_iter().chain([place.prefix.clone()]);
        let ops: Vec<Value> =
            trees.map(|key| json!({"KV": {"Verb": "get-tree", "Key": key}})).collect();
        let request = self.request(Method::PUT, &["v1", "txn"], place, &[("consistent", "")]);
        let reply = self.peer.send_within(request.json(&ops), MAX_READ_BYTES).await?;
        let reply = reply.ok_or_else(|| too_large(place))?;
        if reply.status != StatusCode::OK {
            return Err(self.fault("read", place, &reply));
        }
        let found = reply.json::<Answered>(&self.peer)?.results.unwrap_or_default();
        let found = found.into_iter().map(|found| self.entry(found.kv));
        let snapshot = Snapshot::new(place.clone(), found.collect::<Result<_, _>>()?);
        if snapshot.mark.is_none() {
            self.check_read_permission(place).await?;
        }
        Ok(snapshot)
    }

    /// A tree silently omits keys that the token may not read; a single key is refused.
    async fn check_read_permission(&self, place: &Place) -> Result<(), Fault> {
        let mark = place.mark();
        let path: Vec<&str> = ["v1", "kv"].into_iter().chain(mark.split('/')).collect();
        let request = self.request(Method::GET, &path, place, &[("consistent", "")]);
        let reply = self.peer.send(request).await?;
        match reply.status {
            StatusCode::OK | StatusCode::NOT_FOUND => Ok(()),
            _ => Err(self.fault("read", place, &reply)),
        }
    }

    /// Commits all of these operations, or none.
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
        let value = value.map_err(|_| self.peer.invalid_response("a value is not base64"))?;
        let (created, changed) = (found.create_index, found.modify_index);
        Ok(Entry { key: found.key, value, created, changed })
    }

    fn fault(&self, doing: &str, place: &Place, reply: &Reply) -> Fault {
        let (name, prefix) = (self.peer.name(), &place.prefix);
        match (reply.status, &place.datacenter) {
            (StatusCode::FORBIDDEN, _) if !reply.contains("ACL not found") => {
                self.denied(doing, place)
            }
            (StatusCode::NOT_FOUND, _) => Fault::Unavailable(format!(
                "{name} has no KV store: status 404. Check its address in the settings"
            )),
            (StatusCode::PAYLOAD_TOO_LARGE, _) => Fault::Refused(format!(
                "the transaction for {prefix} is too large for {name}. Raise its \
                 limits.txn_max_req_len, or shorten the values"
            )),
            // An unknown datacenter must not open the circuit breaker for the others.
            (_, Some(datacenter)) if reply.contains("No path to datacenter") => Fault::Refused(
                format!("{name} has no path to the datacenter “{datacenter}”. Check its name"),
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
            "{name} denied permission to {doing} below {prefix}. Add key_prefix \"{prefix}\" {{ \
             policy = \"write\" }} to the policy of its token"
        ))
    }
}

fn too_large(place: &Place) -> Fault {
    let most = MAX_READ_BYTES >> 20;
    Fault::Refused(format!(
        "keys and values of more than {most} MiB exist below {}. Choose another prefix",
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
