//! Tenancy: in the scope of one organization, subjects of others don't exist.

use model::cluster::Cluster;
use model::deployment::Deployment;
use model::event::Actor;
use model::invite::{DEFAULT_LIFETIME, Invite};
use model::user::{Role, User};
use model::{OrganizationId, Resources};
use store::{Db, Error, Page, Scope, cluster, deployment, event, invite, organization, user};
use testing::{on_both_engines, rows};

use crate::support::database;

/// The subjects of one organization.
struct Tenant {
    owner: User,
    cluster: Cluster,
    deployment: Deployment,
    invite: Invite,
}

impl Tenant {
    async fn new(db: &Db, name: &str) -> Self {
        let owner = rows::tenant(db, name).await;
        let organization = owner.organization_id;
        let cluster = rows::cluster(db, Some(organization), Resources::from([("cpu", 1)])).await;
        let new = rows::new_deployment(Some(cluster.id), None, Resources::default(), 0);
        let deployment = rows::deployment(db, organization, &new).await;
        let mut tx = db.begin(Actor::User(owner.id)).await.unwrap();
        let invite =
            invite::create(&mut tx, organization, owner.id, name, Role::Member, DEFAULT_LIFETIME)
                .await;
        tx.commit().await.unwrap();
        Self { owner, cluster, deployment, invite: invite.unwrap() }
    }

    fn organization(&self) -> OrganizationId {
        self.owner.organization_id
    }

    fn scope(&self) -> Scope {
        Scope::Organization(self.organization())
    }
}

async fn tenants(db: &Db) -> [Tenant; 2] {
    [Tenant::new(db, "acme").await, Tenant::new(db, "globex").await]
}

fn is_not_found<T>(outcome: &store::Result<T>) -> bool {
    matches!(outcome, Err(Error::NotFound { .. }))
}

on_both_engines! {
    async fn own_subjects_are_found(engine: Engine) {
        let database = database(engine).await;
        let mut read = database.db.read().await.unwrap();
        for tenant in tenants(&database.db).await {
            let scope = tenant.scope();
            let own = tenant.organization();
            assert_eq!(organization::get(&mut read, scope, own).await.unwrap().id, own);
            assert_eq!(user::get(&mut read, scope, tenant.owner.id).await.unwrap(), tenant.owner);
            assert_eq!(
                invite::get(&mut read, scope, tenant.invite.id).await.unwrap(), tenant.invite
            );
            let found = cluster::get_own(&mut read, scope, tenant.cluster.id).await.unwrap();
            assert_eq!(found.id, tenant.cluster.id);
            let found = deployment::get(&mut read, scope, tenant.deployment.id).await.unwrap();
            assert_eq!(found, tenant.deployment);
        }
    }

    async fn subjects_of_others_are_not_found(engine: Engine) {
        let database = database(engine).await;
        let [one, other] = tenants(&database.db).await;
        let (scope, mut read) = (one.scope(), database.db.read().await.unwrap());
        assert!(is_not_found(&organization::get(&mut read, scope, other.organization()).await));
        assert!(is_not_found(&user::get(&mut read, scope, other.owner.id).await));
        assert!(is_not_found(&invite::get(&mut read, scope, other.invite.id).await));
        assert!(is_not_found(&cluster::get(&mut read, scope, other.cluster.id).await));
        assert!(is_not_found(&cluster::get_own(&mut read, scope, other.cluster.id).await));
        assert!(is_not_found(&deployment::get(&mut read, scope, other.deployment.id).await));
    }

    async fn subjects_of_others_are_not_listed_or_counted(engine: Engine) {
        let database = database(engine).await;
        let [one, _other] = tenants(&database.db).await;
        let shared = rows::cluster(&database.db, None, Resources::from([("cpu", 1)])).await;
        database.db.number_events().await.unwrap();
        let (scope, page) = (one.scope(), Page::first(100));
        let mut read = database.db.read().await.unwrap();
        let organizations = organization::list(&mut read, scope, &page).await.unwrap();
        assert!(organizations.iter().map(|o| o.id).eq([one.organization()]));
        assert_eq!(user::list(&mut read, scope, &page).await.unwrap(), std::slice::from_ref(&one.owner));
        assert_eq!(invite::list(&mut read, scope, &page).await.unwrap(), std::slice::from_ref(&one.invite));
        for only_own in [false, true] {
            let filter = cluster::Filter { only_own, ..Default::default() };
            let found = cluster::list(&mut read, scope, &filter, &page).await.unwrap();
            let ids: Vec<_> = found.iter().map(|cluster| cluster.id).collect();
            let mut expected = vec![one.cluster.id, shared.id];
            expected.truncate(if only_own { 1 } else { 2 });
            assert_eq!(ids, expected);
            let count = cluster::count(&mut read, scope, &filter).await.unwrap();
            assert_eq!(usize::try_from(count).unwrap(), expected.len());
        }
        let filter = deployment::Filter::default();
        let found = deployment::list(&mut read, scope, &filter, &page).await.unwrap();
        assert_eq!(found, std::slice::from_ref(&one.deployment));
        assert_eq!(deployment::count(&mut read, scope, &filter).await.unwrap(), 1);
        let log = event::list(&mut read, scope, &event::Filter::default(), 0, 100).await.unwrap();
        assert!(log.len() >= 5, "{log:?}");
        assert!(log.iter().all(|event| event.organization_id == Some(one.organization())));
    }

    async fn filter_by_an_id_of_others_finds_nothing(engine: Engine) {
        let database = database(engine).await;
        let [one, other] = tenants(&database.db).await;
        database.db.number_events().await.unwrap();
        let (scope, page) = (one.scope(), Page::first(100));
        let mut read = database.db.read().await.unwrap();
        for filter in [
            deployment::Filter { id: Some(other.deployment.id), ..Default::default() },
            deployment::Filter { cluster: Some(other.cluster.id), ..Default::default() },
        ] {
            assert_eq!(deployment::list(&mut read, scope, &filter, &page).await.unwrap(), []);
            assert_eq!(deployment::count(&mut read, scope, &filter).await.unwrap(), 0);
        }
        let subject = Some(other.deployment.id.to_string());
        let filter = event::Filter { subject, ..Default::default() };
        assert_eq!(event::list(&mut read, scope, &filter, 0, 100).await.unwrap(), []);
    }

    async fn subjects_of_others_can_not_be_changed(engine: Engine) {
        let database = database(engine).await;
        let [one, other] = tenants(&database.db).await;
        let scope = one.scope();
        let mut tx = database.db.begin(Actor::User(one.owner.id)).await.unwrap();
        let change = user::Change::default();
        assert!(is_not_found(&user::set(&mut tx, scope, other.owner.id, &change).await));
        assert!(is_not_found(&user::delete(&mut tx, scope, other.owner.id).await));
        assert!(is_not_found(&invite::reopen(&mut tx, scope, other.invite.id, DEFAULT_LIFETIME).await));
        assert!(is_not_found(&invite::revoke(&mut tx, scope, other.invite.id).await));
        assert!(is_not_found(&deployment::request_delete(&mut tx, scope, other.deployment.id).await));
        let on = Some(other.cluster.id);
        let new = rows::new_deployment(on, None, Resources::default(), 0);
        let made = deployment::create(&mut tx, one.organization(), &new, rows::LIMITS).await;
        assert!(is_not_found(&made), "deployment on the cluster of another organization");
    }

    async fn shared_cluster_is_visible_to_all_and_read_only(engine: Engine) {
        let database = database(engine).await;
        let shared = rows::cluster(&database.db, None, Resources::from([("cpu", 1)])).await;
        for tenant in tenants(&database.db).await {
            let mut read = database.db.read().await.unwrap();
            let seen = cluster::get(&mut read, tenant.scope(), shared.id).await.unwrap();
            assert_eq!(seen.id, shared.id);
            let own = cluster::get_own(&mut read, tenant.scope(), shared.id).await;
            assert!(matches!(own, Err(Error::Conflict(_))), "{own:?}");
        }
    }
}
