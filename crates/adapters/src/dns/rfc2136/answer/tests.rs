//! Responses that a real server does not produce on demand: each is refused or retried, none is
//! trusted, and none causes a panic.

use std::sync::Arc;

use domain::base::MessageBuilder;
use domain::base::iana::Class;
use domain::tsig::ServerTransaction;
use model::{Secret, Time};
use proptest::prelude::*;

use super::super::{Algorithm, Key, Options, message};
use super::*;

const NOW: u64 = 1_900_000_000;

fn key(secret: &str) -> Key {
    let secret = Secret::new(data_encoding::BASE64.encode(secret.as_bytes()));
    Key { name: "paddock".into(), algorithm: Algorithm::HmacSha512, secret }
}

fn dns() -> Rfc2136 {
    let (server, zone) = ("127.0.0.1:53".parse().unwrap(), "example.test".into());
    let options = Options { server, zone, key: key("one"), ttl_s: 60 };
    Rfc2136::new(&options, || Time(0), || 7).unwrap()
}

fn name() -> FullName {
    FullName::vec_from_str("a.example.test").unwrap()
}

fn query(dns: &Rfc2136) -> Signed {
    Signed::new(message::question(7, &name()), dns.key.clone(), Time48::from_u64(NOW))
}

/// A response as the holder of a key creates it.
fn signed_response(query: &Signed, key: &Key, rcode: Rcode, when: u64) -> Vec<u8> {
    let key = Arc::new(key.checked().unwrap());
    let mut request = Message::from_octets(query.bytes().to_vec()).unwrap();
    let now = Time48::from_u64(NOW);
    let transaction = ServerTransaction::request(&key, &mut request, now).unwrap().unwrap();
    let mut answer = MessageBuilder::new_vec().start_answer(&request, rcode).unwrap();
    answer.header_mut().set_aa(true);
    answer.push((name(), Class::IN, 60, Cname::new(name()))).unwrap();
    let mut answer = answer.additional();
    transaction.answer(&mut answer, Time48::from_u64(when)).unwrap();
    answer.finish()
}

fn receive(response: Vec<u8>) -> Result<Message<Vec<u8>>, Fault> {
    let dns = dns();
    check(&dns, &query(&dns), response, Time48::from_u64(NOW))
}

#[test]
fn signed_response_is_trusted() {
    let dns = dns();
    let message = receive(signed_response(&query(&dns), &key("one"), Rcode::NOERROR, NOW)).unwrap();
    assert_eq!(target(&dns, &message, &name()), Ok(Some(name())));
    let other = FullName::vec_from_str("b.example.test").unwrap();
    assert_eq!(target(&dns, &message, &other), Ok(None));
}

#[test]
fn flipped_bit_invalidates_a_response_or_changes_nothing() {
    let dns = dns();
    let good = signed_response(&query(&dns), &key("one"), Rcode::NOERROR, NOW);
    let mut accepted = 0;
    for bit in 0..good.len() * 8 {
        let mut changed = good.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        // The TSIG record has fields without a meaning, and names in any case.
        let Ok(message) = receive(changed) else { continue };
        accepted += 1;
        assert_eq!(message.header().rcode(), Rcode::NOERROR, "bit {bit}");
        assert_eq!(target(&dns, &message, &name()), Ok(Some(name())), "bit {bit}");
    }
    assert!(accepted < 100, "{accepted} changes were not noticed");
}

#[test]
fn unsigned_response_is_trusted_only_as_a_refusal() {
    let request = Message::from_octets(message::question(7, &name()).finish()).unwrap();
    let unsigned = |rcode| {
        let answer = MessageBuilder::new_vec().start_answer(&request, rcode).unwrap();
        receive(answer.additional().finish()).unwrap_err()
    };
    let is_unavailable =
        |fault: Fault, text: &str| matches!(fault, Fault::Unavailable(why) if why.contains(text));
    let is_refused =
        |fault: Fault, text: &str| matches!(fault, Fault::Refused(why) if why.contains(text));
    assert!(is_unavailable(unsigned(Rcode::NOERROR), "not signed"));
    assert!(is_unavailable(unsigned(Rcode::NXDOMAIN), ""));
    assert!(is_unavailable(unsigned(Rcode::SERVFAIL), "SERVFAIL"));
    assert!(is_refused(unsigned(Rcode::REFUSED), "paddock"));
    assert!(is_refused(unsigned(Rcode::NOTIMP), ""));
    assert!(is_refused(unsigned(Rcode::NOTAUTH), "example.test"));
}

#[test]
fn old_response_is_reported_as_a_clock_problem() {
    let result = receive(signed_response(&query(&dns()), &key("one"), Rcode::NOERROR, NOW - 301));
    assert!(matches!(result, Err(Fault::Unavailable(why)) if why.contains("clocks")));
}

#[test]
fn query_is_not_accepted_as_a_response() {
    let dns = dns();
    let result = receive(query(&dns).bytes().to_vec());
    assert!(matches!(result, Err(Fault::Unavailable(why)) if why.contains("not match the query")));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_rejected_without_a_panic(mut bytes: Vec<u8>, is_like: bool) {
    // Half of them look like a response, so that more than the first check runs.
    if is_like && bytes.len() > 3 {
    bytes[..3].copy_from_slice(&[0, 7, 0x84]);
    }
    prop_assert!(receive(bytes.clone()).is_err());
    if let Ok(message) = Message::from_octets(bytes) {
    let _ = target(&dns(), &message, &name());
        }
    }
}
