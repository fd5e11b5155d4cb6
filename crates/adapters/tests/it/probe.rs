//! HTTP health checks, against servers in the test.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use adapters::probe::HttpProbe;
use adapters::web::Options;
use model::OrganizationId;
use model::address::Policy;
use port::Probe;
use serde_json::Value;

use crate::fake::{Behavior, Fake, prepare};
use crate::http_calls::loopback;
use crate::kv::{refused, unavailable};
use crate::patience::ANSWER_WITHIN;

fn organization() -> OrganizationId {
    "00000000000000000020".parse().unwrap()
}

fn probe() -> HttpProbe {
    with_timeout(ANSWER_WITHIN)
}

fn with_timeout(timeout: Duration) -> HttpProbe {
    prepare();
    HttpProbe::with_timeout(Options::new(loopback()), timeout).unwrap()
}

#[tokio::test]
async fn status_is_returned_and_redirects_are_not_followed() {
    let fake = Fake::start(|_| (200, Value::Null)).await;
    let probe = probe();
    assert_eq!(probe.get(organization(), &fake.address).await, Ok(200));
    for status in [204, 301, 302, 307, 401, 404, 500, 503] {
        fake.set(Behavior::Status(status));
        assert_eq!(probe.get(organization(), &format!("{}/up", fake.address)).await, Ok(status));
    }
    assert!(
        fake.received()[1..].iter().all(|request| request == "GET /up"),
        "{:?}",
        fake.received()
    );
}

#[tokio::test]
async fn body_is_not_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut visitor = listener.accept().unwrap().0;
        let _ = visitor.read(&mut [0; 4096]);
        visitor.write_all(b"HTTP/1.1 200 x\r\ncontent-length: 999999999\r\n\r\n").unwrap();
        let _ = visitor.read(&mut [0; 4096]);
    });
    assert_eq!(probe().get(organization(), &url).await, Ok(200));
}

#[tokio::test]
async fn unreachable_or_slow_url_is_unavailable() {
    let fake = Fake::start(|_| (200, Value::Null)).await;
    fake.set(Behavior::Slow);
    let hasty = with_timeout(Duration::from_millis(300));
    let why = unavailable(hasty.get(organization(), &format!("{}/?secret=1", fake.address)).await);
    assert_eq!(why, format!("{}/ did not answer within 300ms", fake.address));
    let unreachable = format!("http://127.0.0.1:{}/", testing::programs::free_port());
    let why = unavailable(probe().get(organization(), &unreachable).await);
    assert!(why.starts_with(&format!("{unreachable} is unreachable: ")), "{why}");
    let why = unavailable(probe().get(organization(), "http://no-such-host.invalid/").await);
    assert!(why.starts_with("http://no-such-host.invalid/ is unreachable: "), "{why}");
}

#[tokio::test]
async fn only_permitted_urls_are_probed() {
    let fake = Fake::start(|_| (200, Value::Null)).await;
    for url in ["", "shop", "ftp://host/", "file:///etc/passwd", "http://u:p@host/"] {
        let why = refused(probe().get(organization(), url).await);
        assert!(why.contains("invalid health check URL") && why.contains(": must"), "{why}");
    }
    assert!(
        refused(probe().get(organization(), "http://169.254.169.254/").await)
            .contains("is not permitted")
    );
    let strict = HttpProbe::new(Options::new(Policy::default())).unwrap();
    assert!(
        refused(strict.get(organization(), &fake.address).await).contains("a loopback address")
    );
    assert_eq!(fake.received(), Vec::<String>::new());
}
