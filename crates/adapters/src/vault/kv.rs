//! One secret of the KV engine, in either version.
//!
//! Version 2 is written with check-and-set: of two concurrent writers the second one fails. Version
//! 1 has no check-and-set. There a secret is read back after it was written, so that a concurrent
//! change is detected and repaired, but not prevented: best effort, and the reason to prefer
//! version 2.

use model::Secret;
use port::Fault;
use reqwest::StatusCode;
use serde_json::{Map, Value, json};

use super::mark::{FIELD, Mark, is_replaced};
use super::mount::{Mounts, Version};
use super::session::{Action, Session};
use crate::call::Reply;

/// The location of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) mount: String,
    pub(super) path: String,
    pub(super) version: Version,
}

impl Place {
    /// The reference to it: `vault:secret/shop/db`; `#key` is appended for one value.
    pub(super) fn reference(&self) -> String {
        format!("vault:{}/{}", self.mount, self.path)
    }

    /// The API path of its values, as in policies.
    fn data(&self) -> String {
        match self.version {
            Version::One => format!("{}/{}", self.mount, self.path),
            Version::Two => format!("{}/data/{}", self.mount, self.path),
        }
    }

    /// The API path of all of its versions.
    fn metadata(&self) -> String {
        match self.version {
            Version::One => self.data(),
            Version::Two => format!("{}/metadata/{}", self.mount, self.path),
        }
    }
}

/// The content of a place. No `Debug`: it contains secrets.
#[derive(Clone, Default)]
pub(super) struct Found {
    /// All fields except the mark.
    pub(super) fields: Map<String, Value>,
    pub(super) mark: Option<Mark>,
    /// Whether the mark is one of the fields.
    is_marked_inside: bool,
    /// The newest version, in KV version 2.
    version: u64,
    /// Custom metadata, in KV version 2.
    custom_metadata: Map<String, Value>,
}

/// A secret in Vault.
pub(super) struct Kv<'a> {
    pub(super) session: &'a Session,
    pub(super) mounts: &'a Mounts,
    pub(super) place: Place,
}

impl Kv<'_> {
    /// Reads the secret; in version 2 also one whose newest version is deleted.
    pub(super) async fn read(&self) -> Result<Option<Found>, Fault> {
        let path = self.place.data();
        let reply = self.session.send(Action::Read, &path, None).await?;
        match (reply.status, self.place.version) {
            (StatusCode::OK, _) => self.found(&reply).map(Some),
            (StatusCode::NOT_FOUND, Version::Two) => {
                Ok(self.found(&reply).ok().filter(|found| found.version > 0))
            }
            (StatusCode::NOT_FOUND, Version::One) if reply.contains("versioned K/V") => {
                Err(self.wrong_version())
            }
            (StatusCode::NOT_FOUND, Version::One) => Ok(None),
            _ => Err(self.session.fault(Action::Read, &path, &reply, &[])),
        }
    }

    fn found(&self, reply: &Reply) -> Result<Found, Fault> {
        let mut answer: Value = reply.json(self.session.peer())?;
        let mut data = answer["data"].take();
        let mut found = Found::default();
        if self.place.version == Version::Two {
            found.version = data["metadata"]["version"].as_u64().unwrap_or_default();
            found.custom_metadata =
                object(data["metadata"]["custom_metadata"].take()).unwrap_or_default();
            data = data["data"].take();
        }
        let is_empty = data.is_null() && found.version > 0;
        let fields = if is_empty { Some(Map::new()) } else { object(data) };
        let invalid = || self.session.peer().invalid_response("a secret is not a JSON object");
        found.fields = fields.ok_or_else(invalid)?;
        let inside = found.fields.remove(FIELD);
        found.is_marked_inside = inside.is_some();
        let inside = inside.as_ref().and_then(Value::as_str).and_then(Mark::read);
        found.mark = Mark::from_metadata(&found.custom_metadata).or(inside);
        Ok(found)
    }

    /// Claims an empty place: of two concurrent claims one succeeds. In version 1 the first write
    /// claims it.
    pub(super) async fn claim(&self, mark: &Mark) -> Result<Option<Found>, Fault> {
        if self.place.version == Version::One {
            return Ok(None);
        }
        let version = self.write_data(&marked(Map::new(), mark), 0, &[]).await?;
        let mark = Some(mark.clone());
        Ok(Some(Found { mark, is_marked_inside: true, version, ..Found::default() }))
    }

    /// Writes the content, if the place is unchanged since it was read. The mark is written first:
    /// a value never exists without its fingerprint.
    pub(super) async fn write(
        &self,
        found: &Found,
        fields: &Map<String, Value>,
        mark: &Mark,
    ) -> Result<Found, Fault> {
        let hidden = secrets(fields);
        let hidden: Vec<&Secret> = hidden.iter().collect();
        let mut next = Found { mark: Some(mark.clone()), ..found.clone() };
        next.fields.clone_from(fields);
        let is_same = found.fields == *fields;
        match self.place.version {
            Version::One if is_same && found.mark.as_ref() == Some(mark) => {}
            Version::One => self.write_all(&next, mark, &hidden).await?,
            Version::Two => {
                if Mark::from_metadata(&found.custom_metadata).as_ref() != Some(mark) {
                    next.custom_metadata = self.write_mark(found, mark).await?;
                }
                if !is_same || found.is_marked_inside {
                    next.version = self.write_data(fields, found.version, &hidden).await?;
                }
                next.is_marked_inside = false;
            }
        }
        Ok(next)
    }

    /// Writes a secret of version 1, and reads it back.
    async fn write_all(&self, next: &Found, mark: &Mark, hidden: &[&Secret]) -> Result<(), Fault> {
        let (path, body) = (self.place.data(), Value::Object(marked(next.fields.clone(), mark)));
        let reply = self.session.send(Action::Write, &path, Some(&body)).await?;
        if !reply.status.is_success() {
            return Err(self.session.fault(Action::Write, &path, &reply, hidden));
        }
        let is_written = |now: Found| now.fields == next.fields && now.mark.as_ref() == Some(mark);
        if self.read().await?.is_some_and(is_written) { Ok(()) } else { Err(self.conflict()) }
    }

    /// Writes a version; returns its number.
    async fn write_data(
        &self,
        fields: &Map<String, Value>,
        after: u64,
        hidden: &[&Secret],
    ) -> Result<u64, Fault> {
        let (path, body) = (self.place.data(), json!({"data": fields, "options": {"cas": after}}));
        let reply = self.session.send(Action::Write, &path, Some(&body)).await?;
        let message = reply.message();
        match reply.status {
            StatusCode::OK => {
                let written: Value = reply.json(self.session.peer())?;
                let version = written["data"]["version"].as_u64();
                version.ok_or_else(|| {
                    self.session.peer().invalid_response("a new version has no number")
                })
            }
            StatusCode::BAD_REQUEST if message.contains("check-and-set") => Err(self.conflict()),
            _ => Err(self.session.fault(Action::Write, &path, &reply, hidden)),
        }
    }

    /// Writes the mark as custom metadata, without changing entries of others; returns all entries.
    async fn write_mark(&self, found: &Found, mark: &Mark) -> Result<Map<String, Value>, Fault> {
        let path = self.place.metadata();
        let mut entries = found.custom_metadata.clone();
        entries.retain(|key, _| !is_replaced(key, mark.fence));
        entries.extend(mark.to_metadata());
        let is_deleted =
            |key: &&String| is_replaced(key, mark.fence) && !entries.contains_key(*key);
        let deleted = found.custom_metadata.keys().filter(is_deleted);
        let deleted = deleted.map(|key| (key.clone(), Value::Null));
        let change: Map<_, _> = mark.to_metadata().into_iter().chain(deleted).collect();
        let body = json!({"custom_metadata": change});
        let reply = self.session.send(Action::Patch, &path, Some(&body)).await?;
        if reply.status.is_success() {
            return Ok(entries);
        }
        if reply.status.is_server_error() || reply.status == StatusCode::TOO_MANY_REQUESTS {
            return Err(self.session.fault(Action::Patch, &path, &reply, &[]));
        }
        // An older Vault, or a policy without `patch`: all entries are replaced.
        let body = json!({"custom_metadata": entries});
        let reply = self.session.send(Action::Write, &path, Some(&body)).await?;
        if reply.status.is_success() {
            return Ok(entries);
        }
        Err(self.session.fault(Action::Write, &path, &reply, &[]))
    }

    /// Deletes all versions.
    pub(super) async fn delete(&self) -> Result<(), Fault> {
        let path = self.place.metadata();
        let reply = self.session.send(Action::Delete, &path, None).await?;
        if reply.status.is_success() || reply.status == StatusCode::NOT_FOUND {
            return Ok(());
        }
        Err(self.session.fault(Action::Delete, &path, &reply, &[]))
    }

    /// The mount was assumed to have version 1, but has version 2.
    fn wrong_version(&self) -> Fault {
        let (mount, name) = (&self.place.mount, self.session.peer().name());
        self.mounts.evict(mount);
        Fault::Unavailable(format!(
            "mount {mount} of {name} has KV version 2, which Paddock may not read. Permit read on \
             {mount}/config in the policy of Paddock's token or role"
        ))
    }

    fn conflict(&self) -> Fault {
        let (place, name) = (self.place.reference(), self.session.peer().name());
        Fault::Unavailable(format!("{place} in {name} was changed concurrently"))
    }
}

fn marked(mut fields: Map<String, Value>, mark: &Mark) -> Map<String, Value> {
    fields.insert(FIELD.to_owned(), mark.text().into());
    fields
}

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

/// The secret texts, for redaction.
fn secrets(fields: &Map<String, Value>) -> Vec<Secret> {
    fields.values().filter_map(Value::as_str).map(Secret::new).collect()
}
