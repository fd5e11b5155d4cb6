//! Statuses change only along the lifecycle of their subject.

use model::cluster::{self, Reason};
use model::deployment::{Spec, Status};
use model::event::Actor;
use model::{DeploymentId, Resources};
use store::deployment::{self, hosting, placement, replica};
use store::{Db, Error, Scope};
use testing::{on_both_engines, rows};

use crate::support::database;

const ME: Actor = Actor::Server;

/// A placed deployment with a workload.
async fn scheduled(db: &Db) -> DeploymentId {
    let owner = rows::tenant(db, "acme").await.organization_id;
    let on = rows::ready_cluster(db, Some(owner), Resources::from([("cpu", 4)])).await;
    let new = rows::new_deployment(None, Some("web:1"), Resources::from([("cpu", 1)]), 0);
    let id = rows::deployment(db, owner, &new).await.id;
    let mut tx = db.begin(ME).await.unwrap();
    let places = [(0, rows::only_node(&on))];
    placement::place(&mut tx, id, &places, &["main".into()]).await.unwrap();
    tx.commit().await.unwrap();
    id
}

async fn replica_status(db: &Db, id: DeploymentId) -> Status {
    replica::list(&mut db.read().await.unwrap(), id).await.unwrap()[0].status
}

on_both_engines! {
    async fn replica_refuses_an_invalid_transition(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let id = scheduled(db).await;
        let mut tx = db.begin(ME).await.unwrap();
        deployment::request_delete(&mut tx, Scope::All, id).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(replica_status(db, id).await, Status::Deleting);

        let mut tx = db.begin(ME).await.unwrap();
        let program = Spec { image: Some("web:2".into()), ..Spec::default() };
        let refused = hosting::run(&mut tx, id, &program).await;
        assert!(matches!(refused, Err(Error::Database(_))), "{refused:?}");
        drop(tx);
        assert_eq!(replica_status(db, id).await, Status::Deleting);
    }

    async fn replica_is_scheduled_again_with_a_new_workload(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let id = scheduled(db).await;
        let before = replica::list(&mut db.read().await.unwrap(), id).await.unwrap().remove(0);
        let mut tx = db.begin(ME).await.unwrap();
        let program = Spec { image: Some("web:2".into()), ..Spec::default() };
        let now = hosting::run(&mut tx, id, &program).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(now.status, Status::Scheduled);
        let after = replica::list(&mut db.read().await.unwrap(), id).await.unwrap().remove(0);
        assert_eq!((after.status, after.desired), (Status::Scheduled, before.desired + 1));
        assert_eq!(after.place, before.place);
    }

    async fn cluster_refuses_invalid_and_outdated_transitions(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let made = rows::cluster(db, None, Resources::from([("cpu", 1)])).await;
        let mut tx = db.begin(ME).await.unwrap();
        let illegal = cluster::Status::Ready;
        let refused = store::transition(&mut tx, &mut made.clone(), illegal, Reason::AsExpected).await;
        assert!(matches!(refused, Err(Error::Database(_))), "{refused:?}");
        let to = cluster::Status::Provisioning;
        store::transition(&mut tx, &mut made.clone(), to, Reason::AsExpected).await.unwrap();
        let late = store::transition(&mut tx, &mut made.clone(), to, Reason::AsExpected).await;
        assert!(matches!(late, Err(Error::Conflict(_))), "{late:?}");
    }
}
