//! Certificates that Vault's PKI engine issues, and revokes.
//!
//! One that was issued while the answer or the server was lost is nobody's: its key was never kept
//! anywhere, and it ends by itself.

use std::net::IpAddr;
use std::time::Duration;

use data_encoding::HEXLOWER;
use model::Time;
use model::template::with::Certificate;
use port::{Fault, Log};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::mark::{Former, Issued};
use super::prints::Prints;
use super::session::{Deed, Session};

/// What its print is made under.
pub(super) const NAME: &str = "certificate";
/// The field of its number.
pub(super) const SERIAL: &str = "serial_number";
/// The fields that it is kept in.
pub(super) const FIELDS: [&str; 5] =
    ["certificate", "private_key", "issuing_ca", "ca_chain", SERIAL];
/// The mount of the PKI engine for which none is named.
const MOUNT: &str = "pki";

impl Issued {
    /// When it is issued again: when less than a third of its life is left.
    pub(super) fn renew_at(&self) -> Time {
        self.until - self.until.since(self.since) / 3
    }

    pub(super) fn former(&self) -> Former {
        Former { mount: self.mount.clone(), serial: self.serial.clone() }
    }
}

#[derive(Deserialize)]
struct Enveloped {
    data: Made,
}

#[derive(Deserialize)]
struct Made {
    certificate: String,
    private_key: String,
    #[serde(default)]
    issuing_ca: String,
    #[serde(default)]
    ca_chain: Value,
    serial_number: String,
    expiration: u64,
}

impl Made {
    /// The chain as one text: some servers give a list.
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

/// What says whether two certificates are issued in the same way.
pub(super) fn spec(one: &Certificate) -> String {
    let all = json!([mount(one), one.role, one.common_name, one.alt_names, one.ttl_seconds]);
    HEXLOWER.encode(&Sha256::digest(all.to_string().as_bytes())[..8])
}

/// The fields of a secret that are a certificate's.
pub(super) fn of(fields: &Map<String, Value>) -> Map<String, Value> {
    let is_ours = |(key, _): &(&String, &Value)| FIELDS.contains(&key.as_str());
    fields.iter().filter(is_ours).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn mount(one: &Certificate) -> &str {
    one.mount.as_deref().unwrap_or(MOUNT)
}

/// Has a certificate issued: what is noted of it, and the fields to keep.
pub(super) async fn issue(
    session: &Session,
    one: &Certificate,
    prints: &Prints,
    now: Time,
) -> Result<(Issued, Map<String, Value>), Fault> {
    let path = format!("{}/issue/{}", mount(one), one.role);
    let reply = session.send(Deed::Write, &path, Some(&request(one))).await?;
    if !reply.status.is_success() {
        return Err(session.fault(Deed::Write, &path, &reply, &[]));
    }
    let made = reply.json::<Enveloped>(session.peer())?.data;
    let issued = Issued {
        spec: spec(one),
        print: String::new(),
        mount: mount(one).to_owned(),
        serial: made.serial_number.clone(),
        common_name: one.common_name.clone(),
        since: now,
        until: Time(0) + Duration::from_secs(made.expiration),
    };
    let fields = made.fields();
    let print = prints.of(NAME, &Value::Object(of(&fields)));
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

/// Revokes certificates, as far as Vault does it: one that it does not know ends by itself.
pub(super) async fn revoke(session: &Session, all: &[Former], log: &Log) -> Result<(), Fault> {
    for one in all {
        let (path, body) = (format!("{}/revoke", one.mount), json!({"serial_number": one.serial}));
        let reply = session.send(Deed::Write, &path, Some(&body)).await?;
        if reply.status.is_success() {
            log.say(format!("The certificate {} is revoked.", one.serial));
            continue;
        }
        match session.fault(Deed::Write, &path, &reply, &[]) {
            Fault::Refused(why) => {
                log.say(format!("The certificate {} is not revoked: {why}", one.serial));
            }
            other => return Err(other),
        }
    }
    Ok(())
}
