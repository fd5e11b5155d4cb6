//! Rows for tests, created through the store.

use std::collections::BTreeMap;

use model::cluster::{Cluster, Heartbeat, NewCluster, Provider, Settings, Step, next_step};
use model::deployment::{Deployment, NewDeployment, Spec};
use model::event::Actor;
use model::user::{Access, NewUser, Role, User};
use model::{ClusterId, OrganizationId, Place, Resources};
use store::Db;
use store::deployment::Limits;

/// Limits that no test reaches.
pub const LIMITS: Limits =
    Limits { per_organization: 1_000_000, per_cluster: 1_000_000, max_priority: 1_000_000 };

/// Creates an organization and its owner of the same name.
pub async fn tenant(db: &Db, name: &str) -> User {
    let mut tx = db.begin(Actor::Anonymous).await.expect("a transaction");
    let organization = store::organization::create(&mut tx, name).await.expect("an organization");
    let new = NewUser { username: name.into(), display_name: name.into() };
    let (role, access) = (Role::Owner, Access::Tenant);
    let owner = store::user::create(&mut tx, organization.id, &new, "hash", role, access).await;
    tx.commit().await.expect("committed");
    owner.expect("a user")
}

/// Creates the platform's organization with its administrator.
pub async fn platform(db: &Db) -> User {
    let mut tx = db.begin(Actor::Server).await.expect("a transaction");
    let own = store::organization::create(&mut tx, "platform").await.expect("an organization");
    let new = NewUser { username: "admin".into(), display_name: "admin".into() };
    let (role, access) = (Role::Owner, Access::Platform);
    let admin = store::user::create(&mut tx, own.id, &new, "hash", role, access).await;
    tx.commit().await.expect("committed");
    admin.expect("a user")
}

/// A request for a cluster.
pub fn new_cluster(name: &str, capacity: Resources) -> NewCluster {
    NewCluster {
        name: name.into(),
        provider: Provider::Local,
        settings: Settings::None,
        cloud_provider: "local".into(),
        region: "local".into(),
        labels: BTreeMap::new(),
        capacity,
        nodes: Vec::new(),
    }
}

/// Creates a cluster; shared without an owner.
pub async fn cluster(db: &Db, owner: Option<OrganizationId>, capacity: Resources) -> Cluster {
    let mut tx = db.begin(Actor::Server).await.expect("a transaction");
    let created = store::cluster::create(&mut tx, owner, &new_cluster("main", capacity)).await;
    tx.commit().await.expect("committed");
    created.expect("a cluster")
}

/// Creates a ready cluster, before any worker reconciles it.
pub async fn ready_cluster(db: &Db, owner: Option<OrganizationId>, capacity: Resources) -> Cluster {
    let mut tx = db.begin(Actor::Server).await.expect("a transaction");
    let created = store::cluster::create(&mut tx, owner, &new_cluster("main", capacity)).await;
    let mut cluster = created.expect("a cluster");
    let next = |now: &Cluster| next_step(now.provider, now.status, Heartbeat::Alive(None));
    while let Step::Transition(to, reason) = next(&cluster) {
        let moved = store::cluster::transition(&mut tx, &mut cluster, to, reason).await;
        moved.expect("a step of its lifecycle");
    }
    tx.commit().await.expect("committed");
    cluster
}

/// The single node of a cluster.
pub fn only_node(cluster: &Cluster) -> Place {
    Place { cluster: cluster.id, node: cluster.nodes[0].name.as_str().into() }
}

/// A request for a deployment. Without an image it only reserves capacity.
pub fn new_deployment(
    pinned_to: Option<ClusterId>,
    image: Option<&str>,
    resources: Resources,
    priority: i64,
) -> NewDeployment {
    let spec = Spec {
        image: image.map(Into::into),
        resources,
        replicas: 1,
        ports: vec![80],
        ..Spec::default()
    };
    NewDeployment { name: "web".into(), pinned_to, spec, priority, labels: BTreeMap::new() }
}

/// Creates a pending deployment.
pub async fn deployment(db: &Db, owner: OrganizationId, new: &NewDeployment) -> Deployment {
    let mut tx = db.begin(Actor::Anonymous).await.expect("a transaction");
    let created = store::deployment::create(&mut tx, owner, new, LIMITS).await;
    tx.commit().await.expect("committed");
    created.expect("a deployment")
}
