//! External systems that are down, crash, time out or return garbage: instances report the reason,
//! recover automatically and leave nothing behind.

use testing::programs::Mode;

use super::system::{Aws, Registrations, System, Updates};
use crate::fleet::{Fleet, KAFKAS};
use crate::process::Setup;

const RETRIED: &str = "Retrying.";

async fn fleet(system: &impl System) -> Fleet {
    Fleet::start(system.settings(Setup::new())).await
}

/// Asserts that the instance becomes ready, exists once, and is deleted completely.
async fn recovers<S: System>(fleet: &Fleet, system: &S, id: &str) {
    fleet.until_ready(id).await;
    fleet.until_health(S::NAME, "healthy").await;
    assert_eq!(system.object_count().await, S::EACH, "external objects exist once");
    fleet.delete(KAFKAS, id).await;
    fleet.until_deleted(id).await;
    assert_eq!(system.object_count().await, 0, "no external objects are left");
    fleet.assert_nothing_held().await;
}

async fn unavailable_at_start<S: System>() {
    let mut system = S::prepare();
    let fleet = fleet(&system).await;
    let id = fleet.create(KAFKAS, "one").await;
    fleet.until(&id, "preparing", RETRIED).await;
    fleet.until_health(S::NAME, "unhealthy").await;
    system.start().await;
    recovers(&fleet, &system, &id).await;
}

async fn crashes_during_operation<S: System>() {
    let mut system = S::prepare();
    system.start().await;
    let fleet = fleet(&system).await;
    let old = fleet.create(KAFKAS, "old").await;
    fleet.until_ready(&old).await;
    system.kill();
    let new = fleet.create(KAFKAS, "new").await;
    fleet.delete(KAFKAS, &old).await;
    fleet.until(&new, "preparing", RETRIED).await;
    fleet.until(&old, "deleting", RETRIED).await;
    fleet.until_health(S::NAME, "unhealthy").await;
    system.start().await;
    fleet.until_deleted(&old).await;
    recovers(&fleet, &system, &new).await;
}

async fn times_out<S: System>() {
    let mut system = S::prepare();
    system.start().await;
    system.gate().set(Mode::Stall);
    let fleet = fleet(&system).await;
    let id = fleet.create(KAFKAS, "one").await;
    fleet.until(&id, "preparing", "did not answer within").await;
    fleet.until_health(S::NAME, "unhealthy").await;
    system.gate().set(Mode::Pass);
    recovers(&fleet, &system, &id).await;
}

async fn returns_invalid_responses<S: System>() {
    let mut system = S::prepare();
    system.start().await;
    system.gate().set(Mode::Garbage(S::GARBAGE.to_vec()));
    let fleet = fleet(&system).await;
    let id = fleet.create(KAFKAS, "one").await;
    fleet.until(&id, "preparing", RETRIED).await;
    fleet.until_health(S::NAME, "unhealthy").await;
    system.gate().set(Mode::Pass);
    recovers(&fleet, &system, &id).await;
}

/// Runs all faults for each system.
macro_rules! faults {
    ($($name:ident: $system:ty),* $(,)?) => {$(
        mod $name {
            use super::*;

            #[tokio::test]
            async fn unavailable_at_start() {
                super::unavailable_at_start::<$system>().await;
            }

            #[tokio::test]
            async fn crashes_during_operation() {
                super::crashes_during_operation::<$system>().await;
            }

            #[tokio::test]
            async fn times_out() {
                super::times_out::<$system>().await;
            }

            #[tokio::test]
            async fn returns_invalid_responses() {
                super::returns_invalid_responses::<$system>().await;
            }
        }
    )*};
}

faults!(bind: Updates, moto: Aws, oidc_provider: Registrations);
