//! The version of the KV engine at each mount.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use port::Fault;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::session::{Action, Session};

/// A version of the KV engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// One value per path, without check-and-set.
    One,
    /// Versions of values, written with check-and-set.
    Two,
}

impl Version {
    pub(super) fn number(self) -> u8 {
        match self {
            Version::One => 1,
            Version::Two => 2,
        }
    }
}

/// The known versions, by mount.
#[derive(Default)]
pub(super) struct Mounts(Mutex<BTreeMap<String, Version>>);

#[derive(Deserialize)]
struct Described {
    data: Description,
}

/// A mount as Vault describes it to tokens with any permission there.
#[derive(Deserialize)]
struct Description {
    path: String,
    #[serde(rename = "type")]
    engine: String,
    #[serde(default)]
    options: Option<Map<String, Value>>,
}

impl Mounts {
    /// The version at a mount; looked up once.
    pub(super) async fn version(&self, session: &Session, mount: &str) -> Result<Version, Fault> {
        if let Some(&known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(mount) {
            return Ok(known);
        }
        let version = look_up(session, mount).await?;
        let Some(version) = version else { return Ok(Version::One) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(mount.to_owned(), version);
        Ok(version)
    }

    /// Removes a mount, so that it is looked up again.
    pub(super) fn evict(&self, mount: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(mount);
    }
}

/// The version, if it can be determined.
async fn look_up(session: &Session, mount: &str) -> Result<Option<Version>, Fault> {
    let path = format!("sys/internal/ui/mounts/{mount}");
    let reply = session.send(Action::Read, &path, None).await?;
    match reply.status {
        StatusCode::OK => {
            let found = reply.json::<Described>(session.peer())?;
            described(session, mount, &found.data).map(Some)
        }
        // The endpoint may be missing or not permitted.
        StatusCode::FORBIDDEN => configured(session, mount, true).await,
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
            configured(session, mount, false).await
        }
        _ => Err(session.fault(Action::Read, &path, &reply, &[])),
    }
}

fn described(session: &Session, mount: &str, found: &Description) -> Result<Version, Fault> {
    let name = session.peer().name();
    let at = found.path.trim_matches('/');
    if at != mount {
        let why = format!("{name} has no mount {mount}: the path is below the mount {at}");
        return Err(Fault::Refused(why));
    }
    if !matches!(&*found.engine, "kv" | "generic") {
        let engine = &found.engine;
        let why = format!("mount {mount} of {name} has the secrets engine {engine}; it must be kv");
        return Err(Fault::Refused(why));
    }
    let version = found.options.as_ref().and_then(|options| options.get("version"));
    let is_two = version.is_some_and(|version| version == "2" || version == 2);
    Ok(if is_two { Version::Two } else { Version::One })
}

/// Determines the version from `config`, which only version 2 has. In version 1 it is an ordinary
/// secret, so that all settings must exist with types that no text secret has.
async fn configured(
    session: &Session,
    mount: &str,
    is_hidden: bool,
) -> Result<Option<Version>, Fault> {
    let path = format!("{mount}/config");
    let reply = session.send(Action::Read, &path, None).await?;
    match reply.status {
        StatusCode::FORBIDDEN if is_hidden => Err(Fault::Refused(format!(
            "{} hides the mount {mount}: it does not exist, or the policy of Paddock's token or \
             role permits nothing below it",
            session.peer().name()
        ))),
        StatusCode::OK => {
            let found: Value = reply.json(session.peer())?;
            let settings = &found["data"];
            let is_two = settings["max_versions"].is_u64() && settings["cas_required"].is_boolean();
            Ok(Some(if is_two { Version::Two } else { Version::One }))
        }
        StatusCode::NOT_FOUND if reply.contains("no handler for route") => {
            let name = session.peer().name();
            Err(Fault::Refused(format!(
                "{name} has no mount {mount}. Create it, or name another one"
            )))
        }
        StatusCode::NOT_FOUND => Ok(Some(Version::One)),
        // Version 2 rejects calls for version 1 with 404, so assuming version 1 is safe.
        StatusCode::FORBIDDEN => Ok(None),
        _ => Err(session.fault(Action::Read, &path, &reply, &[])),
    }
}
