//! Test fixtures: both databases, a clock, a complete server in this process, and a client that
//! checks every response against the OpenAPI documents.

pub mod apiserver;
mod client;
mod clock;
mod contract;
mod database;
mod images;
mod leaks;
mod ledgers;
mod operation;
mod outside;
pub mod pools;
#[expect(clippy::unwrap_used, reason = "a test may panic")]
pub mod programs;
mod rng;
pub mod rows;
mod server;
mod snapshot;
pub mod vault;

pub use crate::server::{Replica, TestPaddock, TestSettings, executors, providers};
pub use client::{Answer, Client};
pub use clock::TestClock;
pub use database::{Database, Engine, create_postgres, stored_text};
pub use images::FakeImages;
pub use ledgers::check_ledgers;
pub use operation::{ExternalState, FakeOperation, FakeProbe};
pub use outside::{Fake, FakeDns, FakeSeal, FakeSso};
pub use rng::Rng;
pub use snapshot::assert_snapshot;

/// Generates two tests of each body: one on SQLite, one on PostgreSQL.
#[macro_export]
macro_rules! on_both_engines {
    ($($(#[$meta:meta])* async fn $name:ident($engine:ident: Engine) $body:block)*) => {$(
        $(#[$meta])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                run($crate::Engine::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                run($crate::Engine::Postgres).await;
            }

            async fn run($engine: $crate::Engine) $body
        }
    )*};
}

/// Lists examples of every variant of an enum. A variant without an example does not compile.
#[macro_export]
macro_rules! every_variant {
    ($enum:ty { $($pattern:pat => [$($example:expr),+ $(,)?]),+ $(,)? }) => {{
        let examples: Vec<$enum> = vec![$($($example),+),+];
        for example in &examples {
            match example {
                $($pattern => (),)+
            }
        }
        examples
    }};
}
