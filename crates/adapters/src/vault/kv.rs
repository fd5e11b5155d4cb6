//! One secret of the KV engine, read and written in either version.
//!
//! Version 2 is written with check-and-set: who comes second changes nothing. Version 1 can't do that.
//! There a secret is read again after it was written, so that a change at the same time is seen and
//! mended, but not prevented: best effort, and the reason to prefer version 2.

use model::Secret;
use port::Fault;
use reqwest::StatusCode;
use serde_json::{Map, Value, json};

use super::mark::{FIELD, Mark, is_replaced};
use super::mount::{Mounts, Version};
use super::session::{Deed, Session};
use crate::call::Reply;

/// Where a secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) mount: String,
    pub(super) path: String,
    pub(super) version: Version,
}

impl Place {
    /// How others name it: `vault:secret/shop/db`, and one value of it with `#key` behind.
    pub(super) fn reference(&self) -> String {
        format!("vault:{}/{}", self.mount, self.path)
    }

    /// Where its values are, as policies name it.
    fn data(&self) -> String {
        match self.version {
            Version::One => format!("{}/{}", self.mount, self.path),
            Version::Two => format!("{}/data/{}", self.mount, self.path),
        }
    }

    /// Where all of it is, with its versions.
    fn whole(&self) -> String {
        match self.version {
            Version::One => self.data(),
            Version::Two => format!("{}/metadata/{}", self.mount, self.path),
        }
    }
}

/// What is at a place. It has no `Debug`: there are secrets in it.
#[derive(Clone, Default)]
pub(super) struct Found {
    /// All but the mark.
    pub(super) fields: Map<String, Value>,
    pub(super) mark: Option<Mark>,
    /// Is the mark one of the fields?
    is_marked_inside: bool,
    /// The newest version, in version 2.
    version: u64,
    /// Custom metadata, in version 2.
    notes: Map<String, Value>,
}

/// A secret in Vault.
pub(super) struct Kv<'a> {
    pub(super) session: &'a Session,
    pub(super) mounts: &'a Mounts,
    pub(super) place: Place,
}

impl Kv<'_> {
    /// What is there; in version 2 also where the newest version is deleted.
    pub(super) async fn read(&self) -> Result<Option<Found>, Fault> {
        let path = self.place.data();
        let reply = self.session.send(Deed::Read, &path, None).await?;
        match (reply.status, self.place.version) {
            (StatusCode::OK, _) => self.found(&reply).map(Some),
            (StatusCode::NOT_FOUND, Version::Two) => {
                Ok(self.found(&reply).ok().filter(|found| found.version > 0))
            }
            (StatusCode::NOT_FOUND, Version::One) if reply.says("versioned K/V") => {
                Err(self.changed())
            }
            (StatusCode::NOT_FOUND, Version::One) => Ok(None),
            _ => Err(self.session.fault(Deed::Read, &path, &reply, &[])),
        }
    }

    fn found(&self, reply: &Reply) -> Result<Found, Fault> {
        let mut answer: Value = reply.json(self.session.peer())?;
        let mut data = answer["data"].take();
        let mut found = Found::default();
        if self.place.version == Version::Two {
            found.version = data["metadata"]["version"].as_u64().unwrap_or_default();
            found.notes = object(data["metadata"]["custom_metadata"].take()).unwrap_or_default();
            data = data["data"].take();
        }
        let is_empty = data.is_null() && found.version > 0;
        let fields = if is_empty { Some(Map::new()) } else { object(data) };
        let odd = || self.session.peer().confused("a secret is no JSON object");
        found.fields = fields.ok_or_else(odd)?;
        let inside = found.fields.remove(FIELD);
        found.is_marked_inside = inside.is_some();
        let inside = inside.as_ref().and_then(Value::as_str).and_then(Mark::read);
        found.mark = Mark::among(&found.notes).or(inside);
        Ok(found)
    }

    /// Takes a place where nothing is: of two who try, one does. In version 1 the first write is the
    /// one that takes it.
    pub(super) async fn claim(&self, mark: &Mark) -> Result<Option<Found>, Fault> {
        if self.place.version == Version::One {
            return Ok(None);
        }
        let version = self.write_data(&marked(Map::new(), mark), 0, &[]).await?;
        let mark = Some(mark.clone());
        Ok(Some(Found { mark, is_marked_inside: true, version, ..Found::default() }))
    }

    /// Has the place hold this, if it still is as it was found. The mark comes first: a value is
    /// never there without its print.
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
                if Mark::among(&found.notes).as_ref() != Some(mark) {
                    next.notes = self.note(found, mark).await?;
                }
                if !is_same || found.is_marked_inside {
                    next.version = self.write_data(fields, found.version, &hidden).await?;
                }
                next.is_marked_inside = false;
            }
        }
        Ok(next)
    }

    /// Writes a secret of version 1, and looks whether it is what stays.
    async fn write_all(&self, next: &Found, mark: &Mark, hidden: &[&Secret]) -> Result<(), Fault> {
        let (path, body) = (self.place.data(), Value::Object(marked(next.fields.clone(), mark)));
        let reply = self.session.send(Deed::Write, &path, Some(&body)).await?;
        if !reply.status.is_success() {
            return Err(self.session.fault(Deed::Write, &path, &reply, hidden));
        }
        let stays = |now: Found| now.fields == next.fields && now.mark.as_ref() == Some(mark);
        if self.read().await?.is_some_and(stays) { Ok(()) } else { Err(self.overtaken()) }
    }

    /// Writes a version; its number.
    async fn write_data(
        &self,
        fields: &Map<String, Value>,
        after: u64,
        hidden: &[&Secret],
    ) -> Result<u64, Fault> {
        let (path, body) = (self.place.data(), json!({"data": fields, "options": {"cas": after}}));
        let reply = self.session.send(Deed::Write, &path, Some(&body)).await?;
        let said = reply.said();
        match reply.status {
            StatusCode::OK => {
                let made: Value = reply.json(self.session.peer())?;
                let version = made["data"]["version"].as_u64();
                version.ok_or_else(|| self.session.peer().confused("a version has no number"))
            }
            StatusCode::BAD_REQUEST if said.contains("check-and-set") => Err(self.overtaken()),
            _ => Err(self.session.fault(Deed::Write, &path, &reply, hidden)),
        }
    }

    /// Writes the mark as custom metadata, and leaves those of others alone; what is there then.
    async fn note(&self, found: &Found, mark: &Mark) -> Result<Map<String, Value>, Fault> {
        let path = self.place.whole();
        let mut notes = found.notes.clone();
        notes.retain(|key, _| !is_replaced(key, mark.fence));
        notes.extend(mark.notes());
        let is_gone = |key: &&String| is_replaced(key, mark.fence) && !notes.contains_key(*key);
        let gone = found.notes.keys().filter(is_gone).map(|key| (key.clone(), Value::Null));
        let change: Map<_, _> = mark.notes().into_iter().chain(gone).collect();
        let body = json!({"custom_metadata": change});
        let reply = self.session.send(Deed::Patch, &path, Some(&body)).await?;
        if reply.status.is_success() {
            return Ok(notes);
        }
        if reply.status.is_server_error() || reply.status == StatusCode::TOO_MANY_REQUESTS {
            return Err(self.session.fault(Deed::Patch, &path, &reply, &[]));
        }
        // An older Vault, or a policy without `patch`: all of it is replaced.
        let body = json!({"custom_metadata": notes});
        let reply = self.session.send(Deed::Write, &path, Some(&body)).await?;
        if reply.status.is_success() {
            return Ok(notes);
        }
        Err(self.session.fault(Deed::Write, &path, &reply, &[]))
    }

    /// Removes all of it.
    pub(super) async fn remove(&self) -> Result<(), Fault> {
        let path = self.place.whole();
        let reply = self.session.send(Deed::Delete, &path, None).await?;
        if reply.status.is_success() || reply.status == StatusCode::NOT_FOUND {
            return Ok(());
        }
        Err(self.session.fault(Deed::Delete, &path, &reply, &[]))
    }

    /// What was taken for version 1 is version 2: it was upgraded, or not told before.
    fn changed(&self) -> Fault {
        let (mount, name) = (&self.place.mount, self.session.peer().name());
        self.mounts.forget(mount);
        Fault::Unavailable(format!(
            "the mount {mount} of {name} has version 2 of KV, which Paddock could not find out: allow \
             read on {mount}/config in the policy of Paddock's token or role"
        ))
    }

    fn overtaken(&self) -> Fault {
        let (place, name) = (self.place.reference(), self.session.peer().name());
        Fault::Unavailable(format!("somebody else has changed {place} in {name} meanwhile"))
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

/// The texts of a secret, which must not be seen.
fn secrets(fields: &Map<String, Value>) -> Vec<Secret> {
    fields.values().filter_map(Value::as_str).map(Secret::new).collect()
}
