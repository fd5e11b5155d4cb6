//! The PKI engine: certificates are texts with a serial number and an expiry.

use std::time::Duration;

use serde_json::json;

use super::State;
use super::serve::{Answer, VaultRequest, error};

/// Default lifetime of a certificate.
const DEFAULT_SECONDS: u64 = 30 * 24 * 3600;

pub(super) fn act(state: &mut State, asked: &VaultRequest<'_>, rest: &str) -> Answer {
    match (asked.method, rest.split_once('/'), rest) {
        ("POST", Some(("issue", "web")), _) => issue(state, asked),
        ("POST", Some(("issue", role)), _) => error(400, &format!("unknown role: {role}")),
        ("POST", None, "revoke") => {
            let serial = asked.body["serial_number"].as_str().unwrap_or_default().to_owned();
            if !(1..=state.issued).any(|number| serial == serial_of(number)) {
                return error(400, &format!("certificate with serial {serial} not found"));
            }
            state.revoked.push(serial);
            (200, json!({"data": {"revocation_time": 1}}))
        }
        _ => error(405, "unsupported operation"),
    }
}

fn serial_of(number: usize) -> String {
    format!("0a:{number:02x}")
}

fn issue(state: &mut State, asked: &VaultRequest<'_>) -> Answer {
    let name = asked.body["common_name"].as_str().unwrap_or_default();
    if !name.ends_with(".example.test") {
        return error(400, &format!("common name {name} not allowed by this role"));
    }
    state.issued += 1;
    let seconds = asked.body["ttl"].as_str().and_then(|ttl| ttl.strip_suffix('s')?.parse().ok());
    let end = state.now() + Duration::from_secs(seconds.unwrap_or(DEFAULT_SECONDS));
    let number = state.issued;
    let data = json!({
        "certificate": format!("certificate {number} of {name}"),
        "private_key": format!("private key {number} that nobody may see"),
        "issuing_ca": "the authority",
        "ca_chain": ["the authority", "the root"],
        "serial_number": serial_of(number),
        "expiration": end.seconds(),
    });
    (200, json!({"data": data}))
}
