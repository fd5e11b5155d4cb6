//! Dynamic updates at a real BIND.

use adapters::dns::rfc2136::{Algorithm, Key, Options, Rfc2136};
use model::{Secret, Time};
use port::{Dns, Fault};
use testing::programs::{Bind, ZONE};

use crate::bind::{adapter, key};
use crate::patience;

const NAME: &str = "one.fleet.example.test";

/// What the refusal says.
fn refusal<T: std::fmt::Debug>(result: Result<T, Fault>) -> String {
    match result {
        Err(Fault::Refused(reason)) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_name_is_made_changed_found_and_removed_as_often_as_one_likes() {
    let bind = Bind::prepare();
    let _named = bind.start();
    let dns = adapter(bind.address(), &bind.writer);
    assert_eq!(dns.find(NAME).await, Ok(None));
    for target in ["a.example.org", "a.example.org", "b.example.org"] {
        dns.point(NAME, target).await.unwrap();
        assert_eq!(dns.find(NAME).await, Ok(Some(target.to_owned())));
        assert_eq!(bind.dig(NAME, "CNAME"), format!("{NAME}. 300 IN CNAME {target}.\n"));
    }
    for _ in 0..2 {
        dns.remove(NAME).await.unwrap();
        assert_eq!(dns.find(NAME).await, Ok(None));
        assert_eq!(bind.dig(NAME, "ANY"), "");
    }
}

#[tokio::test]
async fn what_is_not_an_alias_is_left_alone() {
    let bind = Bind::prepare();
    let _named = bind.start();
    let dns = adapter(bind.address(), &bind.writer);
    let host = format!("host.{ZONE}");
    let said = refusal(dns.point(&host, "a.example.org").await);
    assert!(said.contains("records of other types"), "{said}");
    assert_eq!(dns.find(&host).await, Ok(None));
    dns.remove(&host).await.unwrap();
    assert_eq!(bind.dig(&host, "A"), format!("{host}. 60 IN A 127.0.0.1\n"));
    for outside in [ZONE, "www.example.org", "onefleet.example.test", "a..b"] {
        assert!(refusal(dns.point(outside, "a.example.org").await).contains(outside));
        assert!(refusal(dns.remove(outside).await).contains(outside));
        assert!(refusal(dns.find(outside).await).contains(outside));
    }
    assert!(refusal(dns.point(NAME, "no name").await).contains("“no name”"));
}

#[tokio::test]
async fn a_refusal_names_the_setting_to_check_and_changes_nothing() {
    let bind = Bind::prepare();
    let _named = bind.start();
    let writer = key(&bind.writer);
    let secret = Secret::new("bm90IHRoZSBzZWNyZXQgdGhhdCBpdCBoYXM=");
    let cases = [
        (key(&bind.reader), ZONE, "does not let the key “reader” change the zone"),
        (
            Key { name: "nobody".into(), ..writer.clone() },
            ZONE,
            "check the key's name and algorithm",
        ),
        (Key { algorithm: Algorithm::HmacSha512, ..writer.clone() }, ZONE, "name and algorithm"),
        (Key { secret, ..writer.clone() }, ZONE, "check the key's secret"),
        (writer.clone(), "example.test", "check the server and the zone"),
    ];
    for (key, zone, expected) in cases {
        let options = Options { server: bind.address(), zone: zone.into(), key, ttl_s: 60 };
        let dns = Rfc2136::new(&options, patience::now, || 1).unwrap();
        let said = refusal(dns.point(NAME, "a.example.org").await);
        assert!(said.contains(expected), "{said}");
        assert!(!said.contains(options.key.secret.reveal()), "{said}");
        assert!(refusal(dns.remove(NAME).await).contains(expected));
    }
    assert_eq!(bind.dig(NAME, "ANY"), "");
    let reader = adapter(bind.address(), &bind.reader);
    assert_eq!(reader.find(NAME).await, Ok(None), "looking is allowed");
}

#[tokio::test]
async fn clocks_that_differ_are_told_and_not_refused_for_ever() {
    let bind = Bind::prepare();
    let _named = bind.start();
    let options =
        Options { server: bind.address(), zone: ZONE.into(), key: key(&bind.writer), ttl_s: 60 };
    let dns = Rfc2136::new(&options, || Time(1_000_000_000_000_000), || 1).unwrap();
    let result = dns.point(NAME, "a.example.org").await;
    assert!(
        matches!(&result, Err(Fault::Unavailable(said)) if said.contains("clocks")),
        "{result:?}"
    );
}
