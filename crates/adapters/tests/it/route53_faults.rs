//! A Route 53 that is down, crashes, is slow, or returns invalid responses, and its recovery.

use std::time::Duration;

use adapters::dns::route53::Route53;
use adapters::guard::Guarded;
use port::{Dns, Fault, Health};
use testing::programs::{Gate, Mode, Moto};

use crate::moto::adapter;
use crate::patience::{eventually, guard, until_open};

const NAME: &str = "one.fleet.example.test";
const TARGET: &str = "a.example.org";
const LONG: Duration = Duration::from_mins(1);

fn guarded(server: std::net::SocketAddr) -> Guarded<Route53> {
    Guarded::new(adapter(server), guard("Route 53", LONG))
}

#[tokio::test]
async fn server_that_is_down_or_crashes_recovers() {
    let moto = Moto::prepare();
    let dns = guarded(moto.address());
    let messages = until_open(async || dns.set_cname(NAME, TARGET).await).await;
    assert!(messages[0].contains("Route 53 is unreachable"), "{messages:?}");
    assert!(matches!(dns.guard().health(), Health::Down { .. }));
    let running = moto.start();
    moto.create_zone().await;
    eventually(async || dns.set_cname(NAME, TARGET).await).await;
    assert_eq!(dns.guard().health(), Health::Up);

    running.kill();
    until_open(async || dns.delete_cname(NAME).await).await;
    // It has lost the zone, which is reported as a setting, and the cached id is evicted.
    let _running = moto.start();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(
        matches!(dns.delete_cname(NAME).await, Err(Fault::Refused(why)) if why.contains("no zone"))
    );
    let zone = moto.create_zone().await;
    eventually(async || dns.delete_cname(NAME).await).await;
    eventually(async || dns.set_cname(NAME, TARGET).await).await;
    assert_eq!(dns.get_cname(NAME).await, Ok(Some(TARGET.into())));
    dns.delete_cname(NAME).await.unwrap();
    assert!(!moto.records(&zone).await.contains(NAME));
}

#[tokio::test]
async fn slow_or_invalid_responses_lose_nothing() {
    let moto = Moto::prepare();
    let _running = moto.start();
    let zone = moto.create_zone().await;
    let gate = Gate::before(moto.address());
    let dns = guarded(gate.address);
    dns.set_cname(NAME, TARGET).await.unwrap();

    gate.set(Mode::Stall);
    let timeout = Duration::from_millis(100);
    let hasty = Guarded::new(adapter(gate.address), guard("Route 53", timeout));
    let messages = until_open(async || hasty.delete_cname(NAME).await).await;
    assert_eq!(messages[0], "Route 53 did not answer within 100ms");

    for garbage in ["", "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"]
    {
        gate.set(Mode::Garbage(garbage.as_bytes().to_vec()));
        until_open(async || dns.delete_cname(NAME).await).await;
        gate.set(Mode::Pass);
        let found = eventually(async || dns.get_cname(NAME).await).await;
        assert_eq!(found.as_deref(), Some(TARGET), "nothing is lost");
    }
    dns.delete_cname(NAME).await.unwrap();
    assert!(!moto.records(&zone).await.contains(NAME));
}
