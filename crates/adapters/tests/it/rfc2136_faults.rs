//! A BIND that is down, dies, is slow, or answers garbage: all comes right when it is back.

use std::time::Duration;

use adapters::dns::rfc2136::Rfc2136;
use adapters::guard::Guarded;
use port::{Dns, Health};
use testing::programs::{Bind, Gate, Mode};

use crate::bind::adapter;
use crate::patience::{eventually, guard, until_open};

const NAME: &str = "one.fleet.example.test";
const TARGET: &str = "a.example.org";
const LONG: Duration = Duration::from_mins(1);

fn guarded(bind: &Bind, timeout: Duration) -> Guarded<Rfc2136> {
    Guarded::new(adapter(bind.address(), &bind.writer), guard("DNS", timeout))
}

#[tokio::test]
async fn down_at_the_start() {
    let bind = Bind::prepare();
    let dns = guarded(&bind, LONG);
    let said = until_open(async || dns.point(NAME, TARGET).await).await;
    assert!(said[0].contains(&format!("the DNS server {} can't be reached", bind.address())));
    assert!(matches!(dns.guard().health(), Health::Down { .. }));
    let _named = bind.start();
    eventually(async || dns.point(NAME, TARGET).await).await;
    assert_eq!(dns.find(NAME).await, Ok(Some(TARGET.into())));
    assert_eq!(dns.guard().health(), Health::Up);
}

#[tokio::test]
async fn dies_between_making_and_removing() {
    let bind = Bind::prepare();
    let named = bind.start();
    let dns = guarded(&bind, LONG);
    dns.point(NAME, TARGET).await.unwrap();
    named.kill();
    until_open(async || dns.remove(NAME).await).await;
    let _named = bind.start();
    let kept = eventually(async || dns.find(NAME).await).await;
    assert_eq!(kept.as_deref(), Some(TARGET), "a removal that failed has removed nothing");
    dns.remove(NAME).await.unwrap();
    assert_eq!(bind.dig(NAME, "ANY"), "");
}

#[tokio::test]
async fn slow() {
    let bind = Bind::prepare();
    let _named = bind.start();
    let gate = Gate::before(bind.address());
    let again = || adapter(gate.address, &bind.writer);
    Guarded::new(again(), guard("DNS", LONG)).point(NAME, TARGET).await.unwrap();
    gate.set(Mode::Stall);
    let hasty = Guarded::new(again(), guard("DNS", Duration::from_millis(100)));
    let said = until_open(async || hasty.remove(NAME).await).await;
    assert_eq!(said[0], "DNS did not answer within 100ms");
    gate.set(Mode::Pass);
    let dns = Guarded::new(again(), guard("DNS", LONG));
    eventually(async || dns.remove(NAME).await).await;
    assert_eq!(bind.dig(NAME, "ANY"), "");
}

#[tokio::test]
async fn answers_garbage() {
    let bind = Bind::prepare();
    let _named = bind.start();
    let gate = Gate::before(bind.address());
    let dns = Guarded::new(adapter(gate.address, &bind.writer), guard("DNS", LONG));
    let garbage: [&[u8]; 5] = [
        b"",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        &[0, 0],
        &[0, 3, 1, 2, 3],
        // The id that the test's randomness gives, and the mark of an answer: but no signature.
        &[0, 12, 0x12, 0x67, 0x84, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ];
    for bytes in garbage {
        gate.set(Mode::Garbage(bytes.to_vec()));
        until_open(async || dns.point(NAME, TARGET).await).await;
        gate.set(Mode::Pass);
        let found = eventually(async || dns.find(NAME).await).await;
        assert_eq!(found, None, "garbage is not an answer");
    }
    dns.point(NAME, TARGET).await.unwrap();
    assert_eq!(bind.dig(NAME, "CNAME"), format!("{NAME}. 300 IN CNAME {TARGET}.\n"));
}
