//! What the server says, and what it means: a setting to check, or something that passes.

use domain::base::iana::{Rcode, TsigRcode};
use domain::base::wire::ParseError;
use domain::base::{Message, ToName};
use domain::rdata::Cname;
use domain::rdata::tsig::{Time48, Tsig};
use domain::tsig::ValidationError;
use port::Fault;

use super::message::Signed;
use super::{FullName, Rfc2136};

/// Takes an answer only if it belongs to what was asked and is signed with the key.
pub(super) fn check(
    dns: &Rfc2136,
    asked: &Signed,
    heard: Vec<u8>,
    now: Time48,
) -> Result<Message<Vec<u8>>, Fault> {
    let mut message = Message::from_octets(heard).map_err(|_| confused(dns, "too short"))?;
    let header = message.header();
    if header.id() != asked.id || !header.qr() {
        return Err(confused(dns, "not the answer to what was asked"));
    }
    match asked.transaction.answer(&mut message, now) {
        Ok(()) => Ok(message),
        // Who refuses before looking at the key does not sign.
        Err(ValidationError::ServerUnsigned) => {
            accept(dns, header.rcode(), &[Rcode::NOERROR, Rcode::NXDOMAIN])?;
            Err(confused(dns, "not signed"))
        }
        Err(_) if says_bad_time(&message) => Err(bad_signature(dns, ValidationError::BadTime)),
        Err(error) => Err(bad_signature(dns, error)),
    }
}

/// Servers sign this one verdict in different ways, so that its signature can't always be checked.
fn says_bad_time(message: &Message<Vec<u8>>) -> bool {
    let record = message.get_last_additional::<Tsig<_, _>>();
    message.header().rcode() == Rcode::NOTAUTH
        && record.is_some_and(|record| record.data().error() == TsigRcode::BADTIME)
}

fn bad_signature(dns: &Rfc2136, error: ValidationError) -> Fault {
    let (server, key) = (dns.server(), dns.key.name());
    match error {
        ValidationError::ServerBadKey => Fault::Refused(format!(
            "{server} does not know the key “{key}” with {}: check the key's name and algorithm",
            dns.key.algorithm()
        )),
        ValidationError::ServerBadSig => Fault::Refused(format!(
            "{server} has another secret for the key “{key}”: check the key's secret"
        )),
        ValidationError::ServerBadTime { .. } | ValidationError::BadTime => Fault::Unavailable(
            format!("{server} has another time than this machine: check both clocks"),
        ),
        other => confused(dns, &other.to_string()),
    }
}

/// Goes on if the server's verdict is one of these, and says what is wrong if not.
pub(super) fn accept(dns: &Rfc2136, verdict: Rcode, good: &[Rcode]) -> Result<(), Fault> {
    if good.contains(&verdict) {
        return Ok(());
    }
    let (server, zone, key) = (dns.server(), dns.zone.name(), dns.key.name());
    Err(match verdict {
        Rcode::REFUSED => Fault::Refused(format!(
            "{server} does not let the key “{key}” change the zone {zone}: check what it allows this key"
        )),
        Rcode::NOTAUTH | Rcode::NOTZONE => Fault::Refused(format!(
            "{server} is not the primary of the zone {zone}: check the server and the zone"
        )),
        Rcode::NOTIMP => {
            Fault::Refused(format!("{server} does not take dynamic updates: check the server"))
        }
        other => Fault::Unavailable(format!("{server} could not do it: {other}")),
    })
}

/// What the name is an alias of, by the word of who must know.
pub(super) fn target(
    dns: &Rfc2136,
    message: &Message<Vec<u8>>,
    name: &FullName,
) -> Result<Option<FullName>, Fault> {
    if !message.header().aa() {
        return Err(Fault::Refused(format!(
            "{} does not answer for the zone {}: check the server and the zone",
            dns.server(),
            dns.zone.name()
        )));
    }
    alias(message, name).map_err(|error| confused(dns, &error.to_string()))
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

fn confused(dns: &Rfc2136, why: &str) -> Fault {
    Fault::Unavailable(format!("{} gave an answer that makes no sense: {why}", dns.server()))
}

#[cfg(test)]
mod tests;
