//! Answers that a real server does not give when it is asked to: each is refused or put off, none
//! is believed, and none makes us panic.

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

fn asked(dns: &Rfc2136) -> Signed {
    Signed::new(message::question(7, &name()), dns.key.clone(), Time48::from_u64(NOW))
}

/// Answers as the holder of a key would.
fn answered(asked: &Signed, key: &Key, rcode: Rcode, when: u64) -> Vec<u8> {
    let key = Arc::new(key.checked().unwrap());
    let mut request = Message::from_octets(asked.bytes().to_vec()).unwrap();
    let now = Time48::from_u64(NOW);
    let transaction = ServerTransaction::request(&key, &mut request, now).unwrap().unwrap();
    let mut answer = MessageBuilder::new_vec().start_answer(&request, rcode).unwrap();
    answer.header_mut().set_aa(true);
    answer.push((name(), Class::IN, 60, Cname::new(name()))).unwrap();
    let mut answer = answer.additional();
    transaction.answer(&mut answer, Time48::from_u64(when)).unwrap();
    answer.finish()
}

fn hear(heard: Vec<u8>) -> Result<Message<Vec<u8>>, Fault> {
    let dns = dns();
    check(&dns, &asked(&dns), heard, Time48::from_u64(NOW))
}

#[test]
fn a_signed_answer_is_believed() {
    let dns = dns();
    let said = hear(answered(&asked(&dns), &key("one"), Rcode::NOERROR, NOW)).unwrap();
    assert_eq!(target(&dns, &said, &name()), Ok(Some(name())));
    let other = FullName::vec_from_str("b.example.test").unwrap();
    assert_eq!(target(&dns, &said, &other), Ok(None));
}

#[test]
fn one_changed_bit_makes_an_answer_unbelievable_or_changes_nothing() {
    let dns = dns();
    let good = answered(&asked(&dns), &key("one"), Rcode::NOERROR, NOW);
    let mut believed = 0;
    for bit in 0..good.len() * 8 {
        let mut changed = good.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        // The signature's own record has fields that mean nothing, and names in any case.
        let Ok(said) = hear(changed) else { continue };
        believed += 1;
        assert_eq!(said.header().rcode(), Rcode::NOERROR, "bit {bit}");
        assert_eq!(target(&dns, &said, &name()), Ok(Some(name())), "bit {bit}");
    }
    assert!(believed < 100, "{believed} changes were not noticed");
}

#[test]
fn an_unsigned_answer_counts_only_if_it_says_no() {
    let request = Message::from_octets(message::question(7, &name()).finish()).unwrap();
    let unsigned = |rcode| {
        let answer = MessageBuilder::new_vec().start_answer(&request, rcode).unwrap();
        hear(answer.additional().finish()).unwrap_err()
    };
    assert!(
        matches!(unsigned(Rcode::NOERROR), Fault::Unavailable(said) if said.contains("not signed"))
    );
    assert!(matches!(unsigned(Rcode::NXDOMAIN), Fault::Unavailable(_)));
    assert!(
        matches!(unsigned(Rcode::SERVFAIL), Fault::Unavailable(said) if said.contains("SERVFAIL"))
    );
    assert!(matches!(unsigned(Rcode::REFUSED), Fault::Refused(said) if said.contains("paddock")));
    assert!(matches!(unsigned(Rcode::NOTIMP), Fault::Refused(_)));
    assert!(
        matches!(unsigned(Rcode::NOTAUTH), Fault::Refused(said) if said.contains("example.test"))
    );
}

#[test]
fn an_old_answer_is_about_clocks() {
    let said = hear(answered(&asked(&dns()), &key("one"), Rcode::NOERROR, NOW - 301));
    assert!(matches!(said, Err(Fault::Unavailable(said)) if said.contains("clocks")));
}

#[test]
fn a_question_is_no_answer() {
    let dns = dns();
    let said = hear(asked(&dns).bytes().to_vec());
    assert!(matches!(said, Err(Fault::Unavailable(said)) if said.contains("not the answer")));
}

proptest! {
    #[test]
    fn any_bytes_are_heard_without_harm(mut heard: Vec<u8>, is_like: bool) {
        // Half of them look like an answer, so that more than the first check is seen.
        if is_like && heard.len() > 3 {
            heard[..3].copy_from_slice(&[0, 7, 0x84]);
        }
        prop_assert!(hear(heard.clone()).is_err());
        if let Ok(message) = Message::from_octets(heard) {
            let _ = target(&dns(), &message, &name());
        }
    }
}
