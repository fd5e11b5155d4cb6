//! Dynamic updates on a real BIND.

use adapters::dns::rfc2136::{Algorithm, Key, Options, Rfc2136};
use model::{Secret, Time};
use port::{Dns, Fault};
use testing::programs::{Bind, ZONE};

use crate::bind::{adapter, key};
use crate::patience;

const NAME: &str = "one.fleet.example.test";

/// The message of a refusal.
fn refusal<T: std::fmt::Debug>(result: Result<T, Fault>) -> String {
    match result {
        Err(Fault::Refused(reason)) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn alias_is_created_changed_found_and_deleted_idempotently() {
    let bind = Bind::prepare();
    let _named = bind.start();
    let dns = adapter(bind.address(), &bind.writer);
    assert_eq!(dns.get_cname(NAME).await, Ok(None));
    for target in ["a.example.org", "a.example.org", "b.example.org"] {
        dns.set_cname(NAME, target).await.unwrap();
        assert_eq!(dns.get_cname(NAME).await, Ok(Some(target.to_owned())));
        assert_eq!(bind.dig(NAME, "CNAME"), format!("{NAME}. 300 IN CNAME {target}.\n"));
    }
    for _ in 0..2 {
        dns.delete_cname(NAME).await.unwrap();
        assert_eq!(dns.get_cname(NAME).await, Ok(None));
        assert_eq!(bind.dig(NAME, "ANY"), "");
    }
}

#[tokio::test]
async fn other_records_are_untouched() {
    let bind = Bind::prepare();
    let _named = bind.start();
    let dns = adapter(bind.address(), &bind.writer);
    let host = format!("host.{ZONE}");
    let why = refusal(dns.set_cname(&host, "a.example.org").await);
    assert!(why.contains("records of other types"), "{why}");
    assert_eq!(dns.get_cname(&host).await, Ok(None));
    dns.delete_cname(&host).await.unwrap();
    assert_eq!(bind.dig(&host, "A"), format!("{host}. 60 IN A 127.0.0.1\n"));
    for outside in [ZONE, "www.example.org", "onefleet.example.test", "a..b"] {
        assert!(refusal(dns.set_cname(outside, "a.example.org").await).contains(outside));
        assert!(refusal(dns.delete_cname(outside).await).contains(outside));
        assert!(refusal(dns.get_cname(outside).await).contains(outside));
    }
    assert!(refusal(dns.set_cname(NAME, "no name").await).contains("“no name”"));
}

#[tokio::test]
async fn refusal_names_the_setting_to_check_and_changes_nothing() {
    let bind = Bind::prepare();
    let _named = bind.start();
    let writer = key(&bind.writer);
    let secret = Secret::new("bm90IHRoZSBzZWNyZXQgdGhhdCBpdCBoYXM=");
    let cases = [
        (key(&bind.reader), ZONE, "denied the key “reader” access to the zone"),
        (
            Key { name: "nobody".into(), ..writer.clone() },
            ZONE,
            "Check the name and algorithm of the key",
        ),
        (Key { algorithm: Algorithm::HmacSha512, ..writer.clone() }, ZONE, "name and algorithm"),
        (Key { secret, ..writer.clone() }, ZONE, "Check the secret of the key"),
        (writer.clone(), "example.test", "Check the server and the zone"),
    ];
    for (key, zone, expected) in cases {
        let options = Options { server: bind.address(), zone: zone.into(), key, ttl_s: 60 };
        let dns = Rfc2136::new(&options, patience::now, || 1).unwrap();
        let why = refusal(dns.set_cname(NAME, "a.example.org").await);
        assert!(why.contains(expected), "{why}");
        assert!(!why.contains(options.key.secret.reveal()), "{why}");
        assert!(refusal(dns.delete_cname(NAME).await).contains(expected));
    }
    assert_eq!(bind.dig(NAME, "ANY"), "");
    let reader = adapter(bind.address(), &bind.reader);
    assert_eq!(reader.get_cname(NAME).await, Ok(None), "queries are permitted");
}

#[tokio::test]
async fn clock_skew_is_reported_and_retried() {
    let bind = Bind::prepare();
    let _named = bind.start();
    let options =
        Options { server: bind.address(), zone: ZONE.into(), key: key(&bind.writer), ttl_s: 60 };
    let dns = Rfc2136::new(&options, || Time(1_000_000_000_000_000), || 1).unwrap();
    let result = dns.set_cname(NAME, "a.example.org").await;
    assert!(
        matches!(&result, Err(Fault::Unavailable(why)) if why.contains("clocks")),
        "{result:?}"
    );
}
