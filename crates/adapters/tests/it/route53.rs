//! Route53 as moto has it, and answers that moto never gives.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adapters::dns::route53::{Options, Route53};
use port::{Dns, Fault};
use testing::programs::{Moto, ZONE};

use crate::canned;
use crate::moto::{adapter, options};

const NAME: &str = "one.fleet.example.test";

#[tokio::test]
async fn a_name_is_made_changed_found_and_removed_as_often_as_one_likes() {
    let moto = Moto::prepare();
    let _running = moto.start();
    let zone = moto.make_zone().await;
    let dns = adapter(moto.address());
    assert_eq!(dns.find(NAME).await, Ok(None));
    // Lists begin at a name and go on with others: those are not this one.
    dns.point("zzz.fleet.example.test", "other.example.org").await.unwrap();
    for target in ["a.example.org", "a.example.org", "b.example.org"] {
        dns.point(NAME, target).await.unwrap();
        assert_eq!(dns.find(NAME).await, Ok(Some(target.to_owned())));
        let records = moto.records(&zone).await;
        assert_eq!(records.matches(&format!("<Name>{NAME}.</Name>")).count(), 1, "{records}");
        assert!(records.contains(&format!("<Value>{target}.</Value>")), "{records}");
        assert!(records.contains("<TTL>300</TTL>"), "{records}");
    }
    for _ in 0..2 {
        dns.remove(NAME).await.unwrap();
        assert_eq!(dns.find(NAME).await, Ok(None));
    }
    let records = moto.records(&zone).await;
    assert!(!records.contains(NAME) && records.contains("zzz.fleet"), "{records}");
}

#[tokio::test]
async fn a_zone_that_is_missing_or_doubtful_is_a_setting_to_check() {
    let moto = Moto::prepare();
    let _running = moto.start();
    let dns = adapter(moto.address());
    let missing = dns.point(NAME, "a.example.org").await;
    let said = format!("Route53 has no zone {ZONE}: check the zone, and whose access key it is");
    assert_eq!(missing, Err(Fault::Refused(said)));
    let first = moto.make_zone().await;
    dns.point(NAME, "a.example.org").await.unwrap();
    moto.make_zone().await;
    let dns = adapter(moto.address());
    let doubtful = dns.find(NAME).await;
    assert!(
        matches!(&doubtful, Err(Fault::Refused(said)) if said.contains("by its id")),
        "{doubtful:?}"
    );
    let id = first.split_once("/hostedzone/").unwrap().1.split('<').next().unwrap().to_owned();
    let options = Options { zone_id: Some(id), ..options(&format!("http://{}", moto.address())) };
    let found = Route53::new(options).unwrap().find(NAME).await;
    assert_eq!(found, Ok(Some("a.example.org".into())));
    let outside = dns.point("one.example.org", "a.example.org").await;
    assert!(matches!(&outside, Err(Fault::Refused(said)) if said.contains("one.example.org")));
}

/// A change in some status, as Route53 answers to this request.
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
    Options { zone_id: Some("Z1".into()), sync_for, ..options(&canned::serve(reply)) }
}

#[tokio::test]
async fn a_change_counts_when_all_servers_have_it() {
    let asked = AtomicUsize::new(0);
    let options = canned_options(move |request| match asked.fetch_add(1, Ordering::Relaxed) {
        0..=2 => change(request, "PENDING"),
        3 if request.contains("/change/C1") => change(request, "INSYNC"),
        _ => panic!("{request}"),
    });
    let options = Options { sync_for: Duration::from_mins(1), ..options };
    Route53::new(options).unwrap().point(NAME, "a.example.org").await.unwrap();
}

#[tokio::test]
async fn waiting_for_all_servers_has_an_end() {
    let options = canned_options(|request| change(request, "PENDING"));
    let result = Route53::new(options).unwrap().point(NAME, "a.example.org").await;
    assert!(
        matches!(&result, Err(Fault::Unavailable(said)) if said.contains("after 1s")),
        "{result:?}"
    );
}

#[tokio::test]
async fn what_goes_wrong_is_told_apart() {
    let error = |code: &str, message: &str| {
        format!(
            "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
        )
    };
    let refused = [
        (403, error("InvalidClientTokenId", "x"), "access key AKIATEST"),
        (403, error("SignatureDoesNotMatch", "x"), "check the key and its rights"),
        (403, error("AccessDenied", "x"), "AccessDenied"),
        (404, error("NoSuchHostedZone", "x"), "has no zone"),
        (400, error("InvalidChangeBatch", "conflicts with an A record"), "conflicts with an A"),
    ];
    let passing = [
        (400, error("Throttling", "Rate exceeded"), "Rate exceeded"),
        (500, error("InternalFailure", "oops"), "oops"),
        (503, "<html>down</html>".into(), "makes no sense"),
        (404, "not found".into(), "makes no sense"),
        (302, String::new(), "makes no sense"),
        (200, "<html>It works!</html>".into(), "makes no sense"),
        (200, "\u{0}\u{1}".into(), "makes no sense"),
    ];
    for (status, body, expected) in refused {
        let options = canned_options(move |_| (status, body.clone()));
        let result = Route53::new(options).unwrap().point(NAME, "a.example.org").await;
        let Err(Fault::Refused(said)) = result else { panic!("{expected}: {result:?}") };
        assert!(said.contains(expected) && !said.contains("hidden"), "{said}");
    }
    for (status, body, expected) in passing {
        let options = canned_options(move |_| (status, body.clone()));
        let result = Route53::new(options).unwrap().point(NAME, "a.example.org").await;
        let Err(Fault::Unavailable(said)) = result else { panic!("{expected}: {result:?}") };
        assert!(said.contains(expected), "{said}");
    }
}
