//! Certificates that Vault's PKI engine issues and revokes.
//!
//! A certificate whose response was lost has no owner: its private key was never stored, and it
//! expires.

use std::net::IpAddr;
use std::time::Duration;

use data_encoding::HEXLOWER;
use model::Time;
use model::template::configuration::Certificate;
use port::{Fault, Log};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::fingerprint::Fingerprints;
use super::mark::{Former, Issued};
use super::session::{Action, Session};

/// The name under which its fingerprint is computed.
pub(super) const NAME: &str = "certificate";
/// The field of its serial number.
pub(super) const SERIAL: &str = "serial_number";
/// The fields in which it is stored.
pub(super) const FIELDS: [&str; 5] =
    ["certificate", "private_key", "issuing_ca", "ca_chain", SERIAL];
/// The default mount of the PKI engine.
const MOUNT: &str = "pki";

impl Issued {
    /// When it is renewed: after two thirds of its lifetime.
    pub(super) fn renew_at(&self) -> Time {
        self.until - self.until.since(self.since) / 3
    }

    pub(super) fn former(&self) -> Former {
        Former { mount: self.mount.clone(), serial: self.serial.clone() }
    }
}

#[derive(Deserialize)]
struct Enveloped {
    data: Response,
}

#[derive(Deserialize)]
struct Response {
    certificate: String,
    private_key: String,
    #[serde(default)]
    issuing_ca: String,
    #[serde(default)]
    ca_chain: Value,
    serial_number: String,
    expiration: u64,
}

impl Response {
    /// The chain as one text: some servers return a list.
    fn chain(&self) -> String {
        match &self.ca_chain {
            Value::String(text) => text.clone(),
            Value::Array(list) => {
                list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
            }
            _ => String::new(),
        }
    }

    fn fields(self) -> Map<String, Value> {
        let chain = self.chain();
        let values =
            [self.certificate, self.private_key, self.issuing_ca, chain, self.serial_number];
        FIELDS.iter().map(|&name| name.to_owned()).zip(values.map(Value::from)).collect()
    }
}

/// A hash of the request, which changes when the certificate must be reissued.
pub(super) fn spec_hash(one: &Certificate) -> String {
    let all = json!([mount(one), one.role, one.common_name, one.alt_names, one.ttl_seconds]);
    HEXLOWER.encode(&Sha256::digest(all.to_string().as_bytes())[..8])
}

/// The fields of a secret that belong to its certificate.
pub(super) fn fields_of(fields: &Map<String, Value>) -> Map<String, Value> {
    let is_ours = |(key, _): &(&String, &Value)| FIELDS.contains(&key.as_str());
    fields.iter().filter(is_ours).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn mount(one: &Certificate) -> &str {
    one.mount.as_deref().unwrap_or(MOUNT)
}

/// Issues a certificate; returns its record and the fields to store.
pub(super) async fn issue(
    session: &Session,
    one: &Certificate,
    fingerprints: &Fingerprints,
    now: Time,
) -> Result<(Issued, Map<String, Value>), Fault> {
    let path = format!("{}/issue/{}", mount(one), one.role);
    let reply = session.send(Action::Write, &path, Some(&request(one))).await?;
    if !reply.status.is_success() {
        return Err(session.fault(Action::Write, &path, &reply, &[]));
    }
    let response = reply.json::<Enveloped>(session.peer())?.data;
    let issued = Issued {
        spec: spec_hash(one),
        print: String::new(),
        mount: mount(one).to_owned(),
        serial: response.serial_number.clone(),
        common_name: one.common_name.clone(),
        since: now,
        until: Time(0) + Duration::from_secs(response.expiration),
    };
    let fields = response.fields();
    let print = fingerprints.compute(NAME, &Value::Object(fields_of(&fields)));
    Ok((Issued { print, ..issued }, fields))
}

fn request(one: &Certificate) -> Value {
    let (addresses, names): (Vec<&str>, Vec<&str>) =
        one.alt_names.iter().map(String::as_str).partition(|name| name.parse::<IpAddr>().is_ok());
    let mut body = Map::from_iter([("common_name".to_owned(), json!(one.common_name))]);
    let ttl = one.ttl_seconds.map(|seconds| format!("{seconds}s")).unwrap_or_default();
    for (name, value) in
        [("alt_names", names.join(",")), ("ip_sans", addresses.join(",")), ("ttl", ttl)]
    {
        if !value.is_empty() {
            body.insert(name.to_owned(), value.into());
        }
    }
    Value::Object(body)
}

/// Revokes certificates. One that Vault does not know is skipped: it expires.
pub(super) async fn revoke(session: &Session, all: &[Former], log: &Log) -> Result<(), Fault> {
    for one in all {
        let (path, body) = (format!("{}/revoke", one.mount), json!({"serial_number": one.serial}));
        let reply = session.send(Action::Write, &path, Some(&body)).await?;
        if reply.status.is_success() {
            log.append(format!("Revoked certificate {}.", one.serial));
            continue;
        }
        match session.fault(Action::Write, &path, &reply, &[]) {
            Fault::Refused(why) => {
                log.append(format!("Certificate {} was not revoked: {why}", one.serial));
            }
            other => return Err(other),
        }
    }
    Ok(())
}
