//! Fixtures for tests: both databases, a clock to turn, a whole server in this process, and a client
//! that checks every answer against the OpenAPI documents.

pub mod apiserver;
mod books;
mod client;
mod clock;
mod contract;
mod database;
mod dice;
mod operation;
mod outside;
pub mod pools;
#[expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
pub mod programs;
pub mod rows;
mod server;
pub mod vault;

pub use crate::server::{Replica, TestPaddock, TestSettings, executors, providers};
pub use books::check_books;
pub use client::{Answer, Client};
pub use clock::TestClock;
pub use database::{Database, Engine, create_postgres};
pub use dice::Dice;
pub use operation::{FakeOperation, FakeProbe, Things};
pub use outside::{Fake, FakeDns, FakeSeal, FakeSso};

/// Makes two tests of each body: one on SQLite, one on PostgreSQL.
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
