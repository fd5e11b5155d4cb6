//! Looks whether addresses answer, against servers inside the test.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use adapters::probe::HttpProbe;
use adapters::web::Options;
use port::Probe;
use serde_json::Value;

use crate::fake::{Fake, Mood, prepare};
use crate::kv::{refused, unavailable};
use crate::patience::ANSWER_WITHIN;

fn probe() -> HttpProbe {
    within(ANSWER_WITHIN)
}

fn within(limit: Duration) -> HttpProbe {
    prepare();
    HttpProbe::within(Options::default(), limit).unwrap()
}

#[tokio::test]
async fn the_status_is_given_as_it_is_and_no_redirect_is_followed() {
    let fake = Fake::start(|_| (200, Value::Null)).await;
    let probe = probe();
    assert_eq!(probe.get(&fake.address).await, Ok(200));
    for status in [204, 301, 302, 307, 401, 404, 500, 503] {
        fake.be(Mood::Status(status));
        assert_eq!(probe.get(&format!("{}/up", fake.address)).await, Ok(status));
    }
    assert!(fake.asked()[1..].iter().all(|asked| asked == "GET /up"), "{:?}", fake.asked());
}

#[tokio::test]
async fn the_body_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut visitor = listener.accept().unwrap().0;
        let _ = visitor.read(&mut [0; 4096]);
        visitor.write_all(b"HTTP/1.1 200 x\r\ncontent-length: 999999999\r\n\r\n").unwrap();
        let _ = visitor.read(&mut [0; 4096]);
    });
    assert_eq!(probe().get(&url).await, Ok(200));
}

#[tokio::test]
async fn what_is_down_slow_or_garbage_is_unavailable() {
    let fake = Fake::start(|_| (200, Value::Null)).await;
    fake.be(Mood::Slow);
    let hasty = within(Duration::from_millis(300));
    let why = unavailable(hasty.get(&format!("{}/?secret=1", fake.address)).await);
    assert_eq!(why, format!("{}/ did not answer within 300ms", fake.address));
    let nobody = format!("http://127.0.0.1:{}/", testing::programs::free_port());
    let why = unavailable(probe().get(&nobody).await);
    assert!(why.starts_with(&format!("{nobody} can't be reached: ")), "{why}");
    let why = unavailable(probe().get("http://no-such-host.invalid/").await);
    assert!(why.starts_with("http://no-such-host.invalid/ can't be reached: "), "{why}");
}

#[tokio::test]
async fn only_addresses_that_may_be_asked_are() {
    let fake = Fake::start(|_| (200, Value::Null)).await;
    for url in ["", "shop", "ftp://host/", "file:///etc/passwd", "http://u:p@host/"] {
        let why = refused(probe().get(url).await);
        assert!(why.contains("can't be looked at: it must"), "{why}");
    }
    assert!(refused(probe().get("http://169.254.169.254/").await).contains("must not be asked"));
    let strict = HttpProbe::new(Options { allow_private: false }).unwrap();
    assert!(refused(strict.get(&fake.address).await).contains("public ones only"));
    assert_eq!(fake.asked(), Vec::<String>::new());
}
