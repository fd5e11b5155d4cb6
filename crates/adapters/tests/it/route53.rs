//! Route 53 as moto implements it, and responses that moto never returns.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adapters::dns::route53::{Options, Route53};
use port::{Dns, Fault};
use testing::programs::{Moto, ZONE};

use crate::canned;
use crate::moto::{adapter, options};

const NAME: &str = "one.fleet.example.test";

#[tokio::test]
async fn alias_is_created_changed_found_and_deleted_idempotently() {
    let moto = Moto::prepare();
    let _running = moto.start();
    let zone = moto.create_zone().await;
    let dns = adapter(moto.address());
    assert_eq!(dns.get_cname(NAME).await, Ok(None));
    // Lists begin at a name and continue with others, which must be ignored.
    dns.set_cname("zzz.fleet.example.test", "other.example.org").await.unwrap();
    for target in ["a.example.org", "a.example.org", "b.example.org"] {
        dns.set_cname(NAME, target).await.unwrap();
        assert_eq!(dns.get_cname(NAME).await, Ok(Some(target.to_owned())));
        let records = moto.records(&zone).await;
        assert_eq!(records.matches(&format!("<Name>{NAME}.</Name>")).count(), 1, "{records}");
        assert!(records.contains(&format!("<Value>{target}.</Value>")), "{records}");
        assert!(records.contains("<TTL>300</TTL>"), "{records}");
    }
    for _ in 0..2 {
        dns.delete_cname(NAME).await.unwrap();
        assert_eq!(dns.get_cname(NAME).await, Ok(None));
    }
    let records = moto.records(&zone).await;
    assert!(!records.contains(NAME) && records.contains("zzz.fleet"), "{records}");
}

#[tokio::test]
async fn missing_or_ambiguous_zone_is_refused() {
    let moto = Moto::prepare();
    let _running = moto.start();
    let dns = adapter(moto.address());
    let missing = dns.set_cname(NAME, "a.example.org").await;
    let why =
        format!("Route 53 has no zone {ZONE}. Check the zone and the account of the access key");
    assert_eq!(missing, Err(Fault::Refused(why)));
    let first = moto.create_zone().await;
    dns.set_cname(NAME, "a.example.org").await.unwrap();
    moto.create_zone().await;
    let dns = adapter(moto.address());
    let ambiguous = dns.get_cname(NAME).await;
    assert!(
        matches!(&ambiguous, Err(Fault::Refused(why)) if why.contains("Configure the zone id")),
        "{ambiguous:?}"
    );
    let id = first.split_once("/hostedzone/").unwrap().1.split('<').next().unwrap().to_owned();
    let options = Options { zone_id: Some(id), ..options(&format!("http://{}", moto.address())) };
    let found = Route53::new(options).unwrap().get_cname(NAME).await;
    assert_eq!(found, Ok(Some("a.example.org".into())));
    let outside = dns.set_cname("one.example.org", "a.example.org").await;
    assert!(matches!(&outside, Err(Fault::Refused(why)) if why.contains("one.example.org")));
}

/// The response with a change in this status.
fn change(request: &str, status: &str) -> (u16, String) {
    let call =
        if request.contains("/change/C1") { "GetChange" } else { "ChangeResourceRecordSets" };
    let body = format!(
        "<{call}Response><ChangeInfo><Id>/change/C1</Id><Status>{status}</Status>\
         <SubmittedAt>2030-01-01T00:00:00Z</SubmittedAt></ChangeInfo></{call}Response>"
    );
    (200, body)
}

fn canned_options(reply: impl Fn(&str) -> (u16, String) + Send + Sync + 'static) -> Options {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let sync_for = Duration::from_secs(1);
    Options { zone_id: Some("Z1".into()), sync_timeout: sync_for, ..options(&canned::serve(reply)) }
}

#[tokio::test]
async fn change_is_done_when_all_servers_have_it() {
    let requests = AtomicUsize::new(0);
    let options = canned_options(move |request| match requests.fetch_add(1, Ordering::Relaxed) {
        0..=2 => change(request, "PENDING"),
        3 if request.contains("/change/C1") => change(request, "INSYNC"),
        _ => panic!("{request}"),
    });
    let options = Options { sync_timeout: Duration::from_mins(1), ..options };
    Route53::new(options).unwrap().set_cname(NAME, "a.example.org").await.unwrap();
}

#[tokio::test]
async fn waiting_for_all_servers_times_out() {
    let options = canned_options(|request| change(request, "PENDING"));
    let result = Route53::new(options).unwrap().set_cname(NAME, "a.example.org").await;
    assert!(
        matches!(&result, Err(Fault::Unavailable(why)) if why.contains("after 1s")),
        "{result:?}"
    );
}

#[tokio::test]
async fn failures_are_classified() {
    let error = |code: &str, message: &str| {
        format!(
            "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
        )
    };
    let refused = [
        (403, error("InvalidClientTokenId", "x"), "access key AKIATEST"),
        (403, error("SignatureDoesNotMatch", "x"), "Check the key and its permissions"),
        (403, error("AccessDenied", "x"), "AccessDenied"),
        (404, error("NoSuchHostedZone", "x"), "has no zone"),
        (400, error("InvalidChangeBatch", "conflicts with an A record"), "conflicts with an A"),
    ];
    let temporary = [
        (400, error("Throttling", "Rate exceeded"), "Rate exceeded"),
        (500, error("InternalFailure", "oops"), "oops"),
        (503, "<html>down</html>".into(), "invalid response"),
        (404, "not found".into(), "invalid response"),
        (302, String::new(), "invalid response"),
        (200, "<html>It works!</html>".into(), "invalid response"),
        (200, "\u{0}\u{1}".into(), "invalid response"),
    ];
    for (status, body, expected) in refused {
        let options = canned_options(move |_| (status, body.clone()));
        let result = Route53::new(options).unwrap().set_cname(NAME, "a.example.org").await;
        let Err(Fault::Refused(why)) = result else { panic!("{expected}: {result:?}") };
        assert!(why.contains(expected) && !why.contains("hidden"), "{why}");
    }
    for (status, body, expected) in temporary {
        let options = canned_options(move |_| (status, body.clone()));
        let result = Route53::new(options).unwrap().set_cname(NAME, "a.example.org").await;
        let Err(Fault::Unavailable(why)) = result else { panic!("{expected}: {result:?}") };
        assert!(why.contains(expected), "{why}");
    }
}
