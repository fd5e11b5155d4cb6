//! A server that is killed in the middle of a storm of writes has lost nothing when it is back.

use testing::on_both_engines;

use super::process::{Server, Setup};
use super::storm::Arena;

on_both_engines! {
    async fn a_kill_in_a_storm_loses_nothing(engine: Engine) {
        let limit = "--max-deployments-per-organization";
        let mut server = Setup::on(engine).await.arg(limit, "100000").start();
        let mut arena = Arena::new(&server).await;
        for _ in 0..3 {
            arena.storm(&mut server, 400, Server::kill).await;
            assert!(arena.ledger.unanswered > 0, "the kill came too late");
            server.again();
            arena.is_remembered(&server).await;
        }
        arena.comes_to_rest(&server).await;
    }
}
