//! A server that is killed under load loses no acknowledged write.

use testing::on_both_engines;

use super::process::{Server, Setup};
use super::storm::Workload;

on_both_engines! {
    async fn crash_under_load_loses_nothing(engine: Engine) {
        let limit = "--max-deployments-per-organization";
        let mut server = Setup::on(engine).await.arg(limit, "100000").start();
        let mut workload = Workload::new(&server).await;
        for _ in 0..3 {
            workload.storm(&mut server, 400, Server::kill).await;
            assert!(workload.ledger.unanswered > 0, "the kill came too late");
            server.restart();
            workload.assert_persisted(&server).await;
        }
        workload.assert_settles(&server).await;
    }
}
