//! Foreign systems that are down, die, hang, or answer garbage: instances wait with the reason, go on by
//! themselves, and leave nothing behind.

use testing::programs::Mode;

use super::system::{Aws, Registrations, System, Updates};
use crate::fleet::{Fleet, KAFKAS};
use crate::process::Setup;

const RETRIED: &str = "Retrying.";

async fn fleet(system: &impl System) -> Fleet {
    Fleet::start(system.settings(Setup::new())).await
}

/// All comes right: the instance is ready, is there once, and goes away without a trace.
async fn comes_right<S: System>(fleet: &Fleet, system: &S, id: &str) {
    fleet.until_ready(id).await;
    fleet.until_health(S::NAME, "healthy").await;
    assert_eq!(system.held().await, S::EACH, "what is outside is there once");
    fleet.delete(KAFKAS, id).await;
    fleet.until_gone(id).await;
    assert_eq!(system.held().await, 0, "nothing is left outside");
    fleet.assert_nothing_held().await;
}

async fn is_down_at_the_start<S: System>() {
    let mut system = S::prepare();
    let fleet = fleet(&system).await;
    let id = fleet.make(KAFKAS, "one").await;
    fleet.until(&id, "preparing", RETRIED).await;
    fleet.until_health(S::NAME, "unhealthy").await;
    system.start().await;
    comes_right(&fleet, &system, &id).await;
}

async fn dies_in_the_middle<S: System>() {
    let mut system = S::prepare();
    system.start().await;
    let fleet = fleet(&system).await;
    let old = fleet.make(KAFKAS, "old").await;
    fleet.until_ready(&old).await;
    system.lose();
    let new = fleet.make(KAFKAS, "new").await;
    fleet.delete(KAFKAS, &old).await;
    fleet.until(&new, "preparing", RETRIED).await;
    fleet.until(&old, "deleting", RETRIED).await;
    fleet.until_health(S::NAME, "unhealthy").await;
    system.start().await;
    fleet.until_gone(&old).await;
    comes_right(&fleet, &system, &new).await;
}

async fn hangs<S: System>() {
    let mut system = S::prepare();
    system.start().await;
    system.gate().set(Mode::Stall);
    let fleet = fleet(&system).await;
    let id = fleet.make(KAFKAS, "one").await;
    fleet.until(&id, "preparing", "did not answer within").await;
    fleet.until_health(S::NAME, "unhealthy").await;
    system.gate().set(Mode::Pass);
    comes_right(&fleet, &system, &id).await;
}

async fn answers_garbage<S: System>() {
    let mut system = S::prepare();
    system.start().await;
    system.gate().set(Mode::Garbage(S::GARBAGE.to_vec()));
    let fleet = fleet(&system).await;
    let id = fleet.make(KAFKAS, "one").await;
    fleet.until(&id, "preparing", RETRIED).await;
    fleet.until_health(S::NAME, "unhealthy").await;
    system.gate().set(Mode::Pass);
    comes_right(&fleet, &system, &id).await;
}

/// The same faults of each system.
macro_rules! faults {
    ($($name:ident: $system:ty),* $(,)?) => {$(
        mod $name {
            use super::*;

            #[tokio::test]
            async fn is_down_at_the_start() {
                super::is_down_at_the_start::<$system>().await;
            }

            #[tokio::test]
            async fn dies_in_the_middle() {
                super::dies_in_the_middle::<$system>().await;
            }

            #[tokio::test]
            async fn hangs() {
                super::hangs::<$system>().await;
            }

            #[tokio::test]
            async fn answers_garbage() {
                super::answers_garbage::<$system>().await;
            }
        }
    )*};
}

faults!(bind: Updates, moto: Aws, oidc_provider: Registrations);
