//! A Route53 that is down, dies, is slow, or answers garbage: all comes right when it is back.

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
    Guarded::new(adapter(server), guard("Route53", LONG))
}

#[tokio::test]
async fn down_at_the_start_and_dies_between_making_and_removing() {
    let moto = Moto::prepare();
    let dns = guarded(moto.address());
    let said = until_open(async || dns.point(NAME, TARGET).await).await;
    assert!(said[0].contains("Route53 can't be reached"), "{said:?}");
    assert!(matches!(dns.guard().health(), Health::Down { .. }));
    let running = moto.start();
    moto.make_zone().await;
    eventually(async || dns.point(NAME, TARGET).await).await;
    assert_eq!(dns.guard().health(), Health::Up);

    running.kill();
    until_open(async || dns.remove(NAME).await).await;
    // It has forgotten the zone: that is a setting to check, and its old id is forgotten, too.
    let _running = moto.start();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(
        matches!(dns.remove(NAME).await, Err(Fault::Refused(said)) if said.contains("no zone"))
    );
    let zone = moto.make_zone().await;
    eventually(async || dns.remove(NAME).await).await;
    eventually(async || dns.point(NAME, TARGET).await).await;
    assert_eq!(dns.find(NAME).await, Ok(Some(TARGET.into())));
    dns.remove(NAME).await.unwrap();
    assert!(!moto.records(&zone).await.contains(NAME));
}

#[tokio::test]
async fn slow_and_answering_garbage() {
    let moto = Moto::prepare();
    let _running = moto.start();
    let zone = moto.make_zone().await;
    let gate = Gate::before(moto.address());
    let dns = guarded(gate.address);
    dns.point(NAME, TARGET).await.unwrap();

    gate.set(Mode::Stall);
    let timeout = Duration::from_millis(100);
    let hasty = Guarded::new(adapter(gate.address), guard("Route53", timeout));
    let said = until_open(async || hasty.remove(NAME).await).await;
    assert_eq!(said[0], "Route53 did not answer within 100ms");

    for garbage in ["", "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"]
    {
        gate.set(Mode::Garbage(garbage.as_bytes().to_vec()));
        until_open(async || dns.remove(NAME).await).await;
        gate.set(Mode::Pass);
        let found = eventually(async || dns.find(NAME).await).await;
        assert_eq!(found.as_deref(), Some(TARGET), "nothing is lost");
    }
    dns.remove(NAME).await.unwrap();
    assert!(!moto.records(&zone).await.contains(NAME));
}
