//! Instances: creating, reading, changing and deleting them.
//!
//! Callers lock an instance's row ([`lock`]) before they read and change it. Lock order: the
//! instance, accounts ([`crate::quota_usage`]), then as in `store::cluster::lock`.

pub mod promotion;
pub mod search;

use std::collections::BTreeMap;

use model::instance::{Instance, NewInstance, Reason, Status, namespace};
use model::organization::quota::Subject as Counted;
use model::reason::{Requester, StatusReason as _};
use model::work::{Key, Lane};
use model::{ClusterId, DeploymentId, InstanceId, OrganizationId, Quantity, ReplicaId, Xid};

use serde::Serialize;

use crate::db::{Json, Param, Select, Value, json, params, sql};
use crate::deployment::hosting;
use crate::organization_quota::{self, Admission};
use crate::status::{self, Lifecycle, status_row};
use crate::subject::{self, Subject as _, by_id, row};
use crate::{Error, Read, Result, Scope, Tx, organization, quota_usage, work};

pub use crate::status::{explain, save, transition};
pub use crate::subject::{count, list};

by_id!(InstanceId: get(Read), lock(Tx));

/// The worker for the lifecycle of instances.
pub const WORKER: &str = "instance";
/// The worker for trials, denied owners and entitlements.
pub const GENERAL: &str = "general";

row! { Instance(InstanceId) in "instance":
    id, kind, organization_id, owner, name, cloud_provider, region, multi_az, instance_type, size,
    reauthentication, status, reason in "status_reason", status_since, pinned_to, cluster_id, deployment_id,
    host, expires_at, detail as json, generation, created_at, updated_at;
}
pub(crate) use columns;

impl Lifecycle for Instance {
    status_row!(Status, Reason);
    const WORKER: &'static str = WORKER;
    const RESTLESS: &'static str = "status NOT IN ('ready', 'failed', 'suspended')";
    const EXPLAINED: &'static str = "waiting";

    fn columns(&self) -> Vec<(&'static str, Value<'_>)> {
        vec![
            ("owner", self.owner.value()),
            ("reauthentication", self.reauthentication.value()),
            ("cluster_id", self.cluster_id.value()),
            ("deployment_id", self.deployment_id.value()),
            ("host", self.host.value()),
            ("expires_at", self.expires_at.value()),
            ("detail", json(&self.detail)),
            ("generation", self.generation.value()),
            ("size", self.size.value()),
        ]
    }

    fn event_data(&self) -> impl Serialize + Send + Sync {
        self
    }

    async fn entered(&mut self, tx: &mut Tx) -> Result<()> {
        if matches!(self.status, Status::Ready | Status::Suspended) {
            wake_general(tx, self.id);
        }
        Ok(())
    }
}

/// Filter for lists.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Id.
    pub id: Option<InstanceId>,
    /// Kind.
    pub kind: Option<String>,
    /// Name.
    pub name: Option<String>,
    /// Owner.
    pub owner: Option<String>,
    /// Cluster.
    pub cluster: Option<ClusterId>,
    /// Status.
    pub status: Option<Status>,
}

/// Creates an instance, and reserves its name, quota and place in the queue.
pub async fn create(
    tx: &mut Tx,
    organization: OrganizationId,
    new: &NewInstance,
) -> Result<Instance> {
    let (id, now) = (tx.id::<InstanceId>(), tx.now());
    let mut detail = new.detail.clone();
    detail.charges = new.charges.iter().map(|(charge, _)| charge.clone()).collect();
    detail.placement = Some(tx.id::<Xid>());
    let reason = Reason::AwaitingPlacement;
    let expires_at = new.lifespan.map(|life| now + life);
    let made = tx
        .first(
            sql!(
                "INSERT INTO instance (id, kind, organization_id, owner, name, cloud_provider, region, ",
                "multi_az, instance_type, size, reauthentication, status, status_reason, status_since, ",
                "pinned_to, expires_at, detail, created_at, updated_at, reason_code) VALUES ",
                "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'accepted', $12, $13, $14, $15, $16, $13, $13, $17) ",
                "ON CONFLICT (kind, organization_id, name) WHERE deleted_at IS NULL DO NOTHING RETURNING ",
                columns!()
            ),
            params![
                id,
                new.kind,
                organization,
                new.owner,
                new.name,
                new.cloud_provider,
                new.region,
                new.multi_az,
                new.instance_type,
                new.size,
                new.reauthentication,
                reason,
                now,
                new.pinned_to,
                expires_at,
                Json(&detail),
                reason.code()
            ],
        )
        .await?;
    let mut instance = Instance::from_row(made.ok_or(Error::AlreadyExists { field: "name" })?)?;
    organization::ensure_exists(tx, Some(instance.organization_id)).await?;
    for (charge, limit) in &new.charges {
        quota_usage::charge(tx, &new.kind, charge, *limit).await?;
    }
    let asked = hosting::required_resources(tx, &instance, &new.unit).await?;
    hosting::insert(tx, &mut instance, &asked, new.priority, Admission::Checked).await?;
    organization_quota::charge(tx, organization, Counted::Instances, Quantity::whole(1));
    status::record_event(tx, &instance, Status::Accepted.as_str()).await?;
    if let Some(end) = instance.expires_at {
        work::wake_at(tx, Lane::Background, Key::new(GENERAL, instance.id), end);
    }
    Ok(instance)
}

/// Number of instances by kind and status.
pub async fn count_by_status(read: &mut Read) -> Result<Vec<(String, Status, i64)>> {
    let sql = sql!(
        "SELECT kind, status, COUNT(*) FROM instance WHERE deleted_at IS NULL ",
        "GROUP BY kind, status ORDER BY kind, status"
    );
    let rows = read.all(sql, params![]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?, row.take()?))).collect()
}

impl subject::Filter for Filter {
    type Subject = Instance;

    fn restrict<'a>(&'a self, select: Select<'a>, _: Option<&'a OrganizationId>) -> Select<'a> {
        select
            .and("id = ?", self.id.as_ref())
            .and("kind = ?", self.kind.as_ref())
            .and("name = ?", self.name.as_ref())
            .and("owner = ?", self.owner.as_ref())
            .and("cluster_id = ?", self.cluster.as_ref())
            .and("status = ?", self.status.as_ref())
    }
}

/// Records the deployment that reserves an instance's capacity. The event is the deployment's.
pub(crate) async fn set_deployment(
    tx: &mut Tx,
    id: InstanceId,
    deployment: Option<DeploymentId>,
) -> Result<()> {
    let sql = sql!("UPDATE instance SET deployment_id = $2 WHERE id = $1");
    tx.run(sql, params![id, deployment]).await.map(drop)
}

/// Whether a cluster that counts in these units could host the instance.
pub(crate) async fn is_counted_in_units(
    read: &mut Read,
    instance: &Instance,
    unit: &str,
) -> Result<bool> {
    let sql = sql!(
        "SELECT COUNT(*) FROM capacity p JOIN cluster c ON c.id = p.cluster_id ",
        "WHERE c.deleted_at IS NULL AND p.kind = $1 AND c.cloud_provider = $2 AND c.region = $3 ",
        "AND (c.organization_id IS NULL OR c.organization_id = $4) ",
        "AND c.id = COALESCE($5, c.id)"
    );
    let (cloud, region) = (&instance.cloud_provider, &instance.region);
    let owner = instance.organization_id;
    Ok(read.number(sql, params![unit, cloud, region, owner, instance.pinned_to]).await? > 0)
}

/// Requests the deletion of an instance.
pub async fn request_delete(
    tx: &mut Tx,
    scope: Scope,
    id: InstanceId,
    by: Requester,
) -> Result<Instance> {
    let reason = Reason::DeletionRequested { by: Some(by) };
    let mut instance = lock(tx, scope, id).await?;
    if !instance.status.is_deleting() {
        transition(tx, &mut instance, Status::Deprovision, reason).await?;
    }
    Ok(instance)
}

/// Deletes an instance and releases its name and quota; its history stays.
pub async fn delete(tx: &mut Tx, instance: &Instance) -> Result<()> {
    for charge in &instance.detail.charges {
        quota_usage::release(tx, &instance.kind, charge).await?;
    }
    let now = tx.now();
    let sql = sql!(
        "UPDATE instance SET deleted_at = $2, updated_at = $2, sealed = NULL, deployment_id = NULL ",
        "WHERE id = $1 AND deleted_at IS NULL"
    );
    if tx.run(sql, params![instance.id, now]).await? == 0 {
        return Err(Error::not_found("instance", instance.id));
    }
    let owner = instance.organization_id;
    organization_quota::release(tx, owner, Counted::Instances, Quantity::whole(1));
    status::append(tx, instance, "deleted").await
}

/// The encrypted SSO client of an instance.
pub async fn sso_client(read: &mut Read, id: InstanceId) -> Result<Option<String>> {
    let sql = sql!("SELECT sealed FROM instance WHERE id = $1 AND deleted_at IS NULL");
    read.first(sql, params![id]).await?.map_or(Ok(None), |mut row| row.take())
}

/// Stores the encrypted SSO client of an instance.
pub async fn set_sso_client(tx: &mut Tx, id: InstanceId, sealed: Option<&str>) -> Result<()> {
    let sql = sql!("UPDATE instance SET sealed = $2 WHERE id = $1");
    tx.run(sql, params![id, sealed]).await.map(drop)
}

/// Wakes the worker for entitlements and expiry for an instance.
pub fn wake_general(tx: &mut Tx, id: InstanceId) {
    work::wake(tx, Lane::Background, Key::new(GENERAL, id));
}

/// Wakes the worker for entitlements and expiry for an owner's instances, or for all.
pub async fn wake_owner(
    tx: &mut Tx,
    organization: Option<OrganizationId>,
    owner: Option<&str>,
) -> Result<()> {
    let select = Select::new("SELECT id FROM instance WHERE deleted_at IS NULL");
    let rows = select
        .and("organization_id = ?", organization.as_ref())
        .and("owner = ?", owner.as_ref())
        .text(" ORDER BY id")
        .all(tx)
        .await?;
    for mut row in rows {
        wake_general(tx, row.take()?);
    }
    Ok(())
}

/// The Kubernetes namespaces of the instances whose workload runs on a cluster, with their replicas.
pub async fn namespaces_on(
    read: &mut Read,
    cluster: ClusterId,
) -> Result<BTreeMap<String, ReplicaId>> {
    let sql = sql!(
        "SELECT i.kind, i.id, r.deployment_id, r.number FROM instance i ",
        "JOIN replica r ON r.deployment_id = i.deployment_id ",
        "JOIN deployment d ON d.id = r.deployment_id WHERE r.cluster_id = $1 ",
        "AND i.deleted_at IS NULL AND d.image IS NOT NULL ORDER BY i.id, r.number"
    );
    let rows = read.all(sql, params![cluster]).await?;
    rows.into_iter()
        .map(|mut row| {
            let (kind, id): (String, InstanceId) = (row.take()?, row.take()?);
            let (deployment, number): (_, i64) = (row.take()?, row.take()?);
            let number = u32::try_from(number)
                .map_err(|_| Error::Database("invalid replica number".into()))?;
            Ok((namespace(&kind, id), ReplicaId { deployment, number }))
        })
        .collect()
}
