//! Responses of the server, mapped to faults: a setting to correct, or a temporary failure.

use domain::base::iana::{Rcode, TsigRcode};
use domain::base::wire::ParseError;
use domain::base::{Message, ToName};
use domain::rdata::Cname;
use domain::rdata::tsig::{Time48, Tsig};
use domain::tsig::ValidationError;
use port::Fault;

use super::message::Signed;
use super::{FullName, Rfc2136};

/// Accepts a response only if it matches the query and is signed with the key.
pub(super) fn check(
    dns: &Rfc2136,
    query: &Signed,
    response: Vec<u8>,
    now: Time48,
) -> Result<Message<Vec<u8>>, Fault> {
    let mut message =
        Message::from_octets(response).map_err(|_| invalid_response(dns, "too short"))?;
    let header = message.header();
    if header.id() != query.id || !header.qr() {
        return Err(invalid_response(dns, "it does not match the query"));
    }
    match query.transaction.answer(&mut message, now) {
        Ok(()) => Ok(message),
        // A server that refuses before it looks at the key does not sign.
        Err(ValidationError::ServerUnsigned) => {
            accept(dns, header.rcode(), &[Rcode::NOERROR, Rcode::NXDOMAIN])?;
            Err(invalid_response(dns, "not signed"))
        }
        Err(_) if has_bad_time(&message) => Err(bad_signature(dns, ValidationError::BadTime)),
        Err(error) => Err(bad_signature(dns, error)),
    }
}

/// Whether the error is BADTIME. Servers sign it in different ways, so its signature can't always
/// be checked.
fn has_bad_time(message: &Message<Vec<u8>>) -> bool {
    let record = message.get_last_additional::<Tsig<_, _>>();
    message.header().rcode() == Rcode::NOTAUTH
        && record.is_some_and(|record| record.data().error() == TsigRcode::BADTIME)
}

fn bad_signature(dns: &Rfc2136, error: ValidationError) -> Fault {
    let (server, key) = (dns.server(), dns.key.name());
    match error {
        ValidationError::ServerBadKey => Fault::Refused(format!(
            "{server} does not know the key “{key}” with {}. Check the name and algorithm of the \
             key",
            dns.key.algorithm()
        )),
        ValidationError::ServerBadSig => Fault::Refused(format!(
            "{server} has another secret for the key “{key}”. Check the secret of the key"
        )),
        ValidationError::ServerBadTime { .. } | ValidationError::BadTime => Fault::Unavailable(
            format!("{server} and this machine disagree about the time. Check both clocks"),
        ),
        other => invalid_response(dns, &other.to_string()),
    }
}

/// Returns an error unless the response code is one of these.
pub(super) fn accept(dns: &Rfc2136, verdict: Rcode, good: &[Rcode]) -> Result<(), Fault> {
    if good.contains(&verdict) {
        return Ok(());
    }
    let (server, zone, key) = (dns.server(), dns.zone.name(), dns.key.name());
    Err(match verdict {
        Rcode::REFUSED => Fault::Refused(format!(
            "{server} denied the key “{key}” access to the zone {zone}. Check the permissions of \
             the key"
        )),
        Rcode::NOTAUTH | Rcode::NOTZONE => Fault::Refused(format!(
            "{server} is not the primary server of the zone {zone}. Check the server and the zone"
        )),
        Rcode::NOTIMP => {
            Fault::Refused(format!("{server} does not accept dynamic updates. Check the server"))
        }
        other => Fault::Unavailable(format!("{server} failed: {other}")),
    })
}

/// The target of the alias, from an authoritative response.
pub(super) fn target(
    dns: &Rfc2136,
    message: &Message<Vec<u8>>,
    name: &FullName,
) -> Result<Option<FullName>, Fault> {
    if !message.header().aa() {
        return Err(Fault::Refused(format!(
            "{} is not authoritative for the zone {}. Check the server and the zone",
            dns.server(),
            dns.zone.name()
        )));
    }
    alias(message, name).map_err(|error| invalid_response(dns, &error.to_string()))
}

fn alias(message: &Message<Vec<u8>>, name: &FullName) -> Result<Option<FullName>, ParseError> {
    for record in message.answer()?.limit_to_in::<Cname<_>>() {
        let record = record?;
        if record.owner() == name {
            return Ok(Some(record.data().cname().to_vec()));
        }
    }
    Ok(None)
}

fn invalid_response(dns: &Rfc2136, why: &str) -> Fault {
    Fault::Unavailable(format!("{} returned an invalid response: {why}", dns.server()))
}

#[cfg(test)]
mod tests;
