//! Statuses change along the lifecycle of their subject, and nowhere else.

use model::cluster::{self, Reason};
use model::deployment::{Spec, Status};
use model::event::Actor;
use model::{DeploymentId, Resources};
use store::deployment::{self, hosting, placing, replica};
use store::{Db, Error, Scope};
use testing::{on_both_engines, rows};

use crate::support::database;

const ME: Actor = Actor::Server;

/// A deployment with a program, which has its place.
async fn scheduled(db: &Db) -> DeploymentId {
    let owner = rows::tenant(db, "acme").await.organization_id;
    let on = rows::ready_cluster(db, Some(owner), Resources::from([("cpu", 4)])).await;
    let new = rows::new_deployment(None, Some("web:1"), Resources::from([("cpu", 1)]), 0);
    let id = rows::deployment(db, owner, &new).await.id;
    let mut tx = db.begin(ME).await.unwrap();
    let places = [(0, rows::only_node(&on))];
    placing::place(&mut tx, id, &places, &["main".into()]).await.unwrap();
    tx.commit().await.unwrap();
    id
}

async fn replica_status(db: &Db, id: DeploymentId) -> Status {
    replica::of(&mut db.read().await.unwrap(), id).await.unwrap()[0].status
}

on_both_engines! {
    async fn replica_refuses_a_status_that_its_lifecycle_does_not_have(engine: Engine) {
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
        assert!(matches!(refused, Err(Error::Broken(_))), "{refused:?}");
        drop(tx);
        assert_eq!(replica_status(db, id).await, Status::Deleting);
    }

    async fn replica_is_scheduled_again_when_it_gets_another_program(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let id = scheduled(db).await;
        let before = replica::of(&mut db.read().await.unwrap(), id).await.unwrap().remove(0);
        let mut tx = db.begin(ME).await.unwrap();
        let program = Spec { image: Some("web:2".into()), ..Spec::default() };
        let now = hosting::run(&mut tx, id, &program).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(now.status, Status::Scheduled);
        let after = replica::of(&mut db.read().await.unwrap(), id).await.unwrap().remove(0);
        assert_eq!((after.status, after.desired), (Status::Scheduled, before.desired + 1));
        assert_eq!(after.place, before.place);
    }

    async fn cluster_refuses_a_step_of_nobodys_and_one_from_a_status_that_is_over(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let made = rows::cluster(db, None, Resources::from([("cpu", 1)])).await;
        let mut tx = db.begin(ME).await.unwrap();
        let illegal = cluster::Status::Ready;
        let refused = store::transition(&mut tx, &mut made.clone(), illegal, Reason::AsExpected).await;
        assert!(matches!(refused, Err(Error::Broken(_))), "{refused:?}");
        let to = cluster::Status::Provisioning;
        store::transition(&mut tx, &mut made.clone(), to, Reason::AsExpected).await.unwrap();
        let late = store::transition(&mut tx, &mut made.clone(), to, Reason::AsExpected).await;
        assert!(matches!(late, Err(Error::Conflict(_))), "{late:?}");
    }
}
