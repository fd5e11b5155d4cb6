//! A BIND that is down, crashes, is slow, or returns invalid responses, and its recovery.

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
async fn server_that_is_down_at_the_start_recovers() {
    let bind = Bind::prepare();
    let dns = guarded(&bind, LONG);
    let messages = until_open(async || dns.set_cname(NAME, TARGET).await).await;
    assert!(messages[0].contains(&format!("the DNS server {} is unreachable", bind.address())));
    assert!(matches!(dns.guard().health(), Health::Down { .. }));
    let _named = bind.start();
    eventually(async || dns.set_cname(NAME, TARGET).await).await;
    assert_eq!(dns.get_cname(NAME).await, Ok(Some(TARGET.into())));
    assert_eq!(dns.guard().health(), Health::Up);
}

#[tokio::test]
async fn crash_before_a_removal_loses_nothing() {
    let bind = Bind::prepare();
    let named = bind.start();
    let dns = guarded(&bind, LONG);
    dns.set_cname(NAME, TARGET).await.unwrap();
    named.kill();
    until_open(async || dns.delete_cname(NAME).await).await;
    let _named = bind.start();
    let found = eventually(async || dns.get_cname(NAME).await).await;
    assert_eq!(found.as_deref(), Some(TARGET), "a failed removal removes nothing");
    dns.delete_cname(NAME).await.unwrap();
    assert_eq!(bind.dig(NAME, "ANY"), "");
}

#[tokio::test]
async fn slow_server_times_out_and_recovers() {
    let bind = Bind::prepare();
    let _named = bind.start();
    let gate = Gate::before(bind.address());
    let again = || adapter(gate.address, &bind.writer);
    Guarded::new(again(), guard("DNS", LONG)).set_cname(NAME, TARGET).await.unwrap();
    gate.set(Mode::Stall);
    let hasty = Guarded::new(again(), guard("DNS", Duration::from_millis(100)));
    let messages = until_open(async || hasty.delete_cname(NAME).await).await;
    assert_eq!(messages[0], "DNS did not answer within 100ms");
    gate.set(Mode::Pass);
    let dns = Guarded::new(again(), guard("DNS", LONG));
    eventually(async || dns.delete_cname(NAME).await).await;
    assert_eq!(bind.dig(NAME, "ANY"), "");
}

#[tokio::test]
async fn invalid_responses_are_rejected() {
    let bind = Bind::prepare();
    let _named = bind.start();
    let gate = Gate::before(bind.address());
    let dns = Guarded::new(adapter(gate.address, &bind.writer), guard("DNS", LONG));
    let garbage: [&[u8]; 5] = [
        b"",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        &[0, 0],
        &[0, 3, 1, 2, 3],
        // The message id of the test's randomness, and the response flag, but no signature.
        &[0, 12, 0x12, 0x67, 0x84, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ];
    for bytes in garbage {
        gate.set(Mode::Garbage(bytes.to_vec()));
        until_open(async || dns.set_cname(NAME, TARGET).await).await;
        gate.set(Mode::Pass);
        let found = eventually(async || dns.get_cname(NAME).await).await;
        assert_eq!(found, None, "an invalid response is not an answer");
    }
    dns.set_cname(NAME, TARGET).await.unwrap();
    assert_eq!(bind.dig(NAME, "CNAME"), format!("{NAME}. 300 IN CNAME {TARGET}.\n"));
}
