//! Instances: asking for them, reading them, moving them on, taking them down.
//!
//! Whoever changes one holds its row from before it looks ([`take`]). Locks are taken in this order:
//! the instance, accounts ([`crate::account`]), and then as `store::cluster::lock` says.

pub mod promotion;
pub mod search;

use model::event::Kind;
use model::instance::{Instance, NewInstance, Status};
use model::work::{Key, Lane};
use model::{ClusterId, DeploymentId, InstanceId, OrganizationId, Xid};

use crate::db::{Json, Row, Select, params, readable, sql};
use crate::deployment::hosting;
use crate::{Error, Page, Read, Result, Scope, Tx, account, event, work};

/// The workers that take an instance from one status to the next.
pub const WORKER: &str = "instance";
/// The worker that ends trials, ends what belongs to denied owners, and looks after entitlements.
pub const GENERAL: &str = "general";

macro_rules! columns {
    () => {
        "id, kind, organization_id, owner, name, cloud_provider, region, multi_az, instance_type, size, \
         reauthentication, status, status_reason, status_since, pinned_to, cluster_id, deployment_id, \
         host, expires_at, detail, generation, created_at, updated_at"
    };
}

pub(crate) use columns;

/// Which instances are wanted.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// That one.
    pub id: Option<InstanceId>,
    /// Of that kind.
    pub kind: Option<String>,
    /// Of that name.
    pub name: Option<String>,
    /// Of that owner.
    pub owner: Option<String>,
    /// On that cluster.
    pub cluster: Option<ClusterId>,
    /// In that status.
    pub status: Option<Status>,
}

/// Asks for an instance. Its name, what is charged for it, and a place in the queue for capacity are
/// taken in the same transaction.
pub async fn create(
    tx: &mut Tx,
    organization: OrganizationId,
    new: &NewInstance,
) -> Result<Instance> {
    let (id, now) = (tx.id::<InstanceId>(), tx.now());
    let mut detail = new.detail.clone();
    detail.charges = new.charges.iter().map(|(charge, _)| charge.clone()).collect();
    detail.placement = Some(tx.id::<Xid>());
    let expires_at = new.lifespan.map(|life| now + life);
    let made = tx
        .first(
            sql!(
                "INSERT INTO instance (id, kind, organization_id, owner, name, cloud_provider, region, ",
                "multi_az, instance_type, size, reauthentication, status, status_reason, status_since, ",
                "pinned_to, expires_at, detail, created_at, updated_at) VALUES ",
                "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'accepted', $12, $13, $14, $15, $16, $13, $13) ",
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
                "Asked for; waits for a cluster.",
                now,
                new.pinned_to,
                expires_at,
                Json(&detail)
            ],
        )
        .await?;
    let mut instance = from_row(made.ok_or(Error::Taken { field: "name" })?)?;
    for (charge, limit) in &new.charges {
        account::charge(tx, &new.kind, charge, *limit).await?;
    }
    let asked = hosting::ask(tx, &instance, &new.unit).await?;
    hosting::hold(tx, &mut instance, &asked, new.priority).await?;
    note(tx, &instance, Status::Accepted.as_str()).await?;
    if let Some(end) = instance.expires_at {
        work::wake_at(tx, Lane::Background, Key::new(GENERAL, instance.id), end);
    }
    Ok(instance)
}

/// One instance.
pub async fn get(read: &mut Read, scope: Scope, id: InstanceId) -> Result<Instance> {
    let filter = Filter { id: Some(id), ..Filter::default() };
    let found = rows(read, scope, &filter, &Page::first(1)).await?.into_iter().next();
    from_row(found.ok_or_else(|| Error::not_found("instance", id))?)
}

/// A part of the instances in scope, by id.
pub async fn list(
    read: &mut Read,
    scope: Scope,
    filter: &Filter,
    page: &Page,
) -> Result<Vec<Instance>> {
    Ok(readable(rows(read, scope, filter, page).await?, from_row))
}

async fn rows(read: &mut Read, scope: Scope, filter: &Filter, page: &Page) -> Result<Vec<Row>> {
    let own = scope.organization();
    let select =
        Select::new(concat!("SELECT ", columns!(), " FROM instance WHERE deleted_at IS NULL"));
    restricted(select, own.as_ref(), filter)
        .and("id > ?", page.after.as_ref())
        .then("ORDER BY id LIMIT ?", &page.limit)
        .then("OFFSET ?", &page.skip)
        .all(read)
        .await
}

/// How many instances in scope there are.
pub async fn count(read: &mut Read, scope: Scope, filter: &Filter) -> Result<i64> {
    let own = scope.organization();
    let select = Select::new("SELECT COUNT(*) FROM instance WHERE deleted_at IS NULL");
    let rows = restricted(select, own.as_ref(), filter).all(read).await?;
    rows.into_iter().next().map_or(Ok(0), |mut row| row.take())
}

/// How many instances there are of each kind in each status.
pub async fn census(read: &mut Read) -> Result<Vec<(String, Status, i64)>> {
    let sql = sql!(
        "SELECT kind, status, COUNT(*) FROM instance WHERE deleted_at IS NULL ",
        "GROUP BY kind, status ORDER BY kind, status"
    );
    let rows = read.all(sql, params![]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?, row.take()?))).collect()
}

fn restricted<'a>(
    select: Select<'a>,
    own: Option<&'a OrganizationId>,
    filter: &'a Filter,
) -> Select<'a> {
    select
        .and("organization_id = ?", own)
        .and("id = ?", filter.id.as_ref())
        .and("kind = ?", filter.kind.as_ref())
        .and("name = ?", filter.name.as_ref())
        .and("owner = ?", filter.owner.as_ref())
        .and("cluster_id = ?", filter.cluster.as_ref())
        .and("status = ?", filter.status.as_ref())
}

/// The instance, which nobody else changes from here to the end of the transaction.
pub async fn take(tx: &mut Tx, scope: Scope, id: InstanceId) -> Result<Instance> {
    let own = scope.organization();
    let sql = sql!(
        "UPDATE instance SET updated_at = updated_at WHERE id = $1 AND deleted_at IS NULL AND ",
        "organization_id = COALESCE($2, organization_id) RETURNING ",
        columns!()
    );
    let row = tx.first(sql, params![id, own]).await?;
    from_row(row.ok_or_else(|| Error::not_found("instance", id))?)
}

/// Moves an instance on, with the reason. A step that its lifecycle does not have is a bug.
pub async fn advance(tx: &mut Tx, now: &mut Instance, to: Status, reason: &str) -> Result<()> {
    if !now.status.may_become(to) {
        return Err(Error::Broken(format!("an instance can't go from {} to {to}", now.status)));
    }
    (now.status, now.status_reason, now.status_since) = (to, reason.to_owned(), tx.now());
    save(tx, now, to.as_str()).await?;
    if matches!(to, Status::Ready | Status::Suspended) {
        wake_general(tx, now.id);
    }
    Ok(())
}

/// Says why an instance is where it is, if that is news. Nobody is woken by it.
pub async fn explain(tx: &mut Tx, now: &mut Instance, reason: &str) -> Result<()> {
    if now.status_reason == reason {
        return Ok(());
    }
    reason.clone_into(&mut now.status_reason);
    now.updated_at = tx.now();
    let sql = sql!("UPDATE instance SET status_reason = $2, updated_at = $3 WHERE id = $1");
    tx.run(sql, params![now.id, reason, now.updated_at]).await?;
    let owner = Some(now.organization_id);
    event::append(tx, Kind::Instance, now.id, owner, "waiting", now).await
}

/// Notes what holds an instance's capacity. That it does is in the log as its deployment's.
pub(crate) async fn set_deployment(
    tx: &mut Tx,
    id: InstanceId,
    deployment: Option<DeploymentId>,
) -> Result<()> {
    let sql = sql!("UPDATE instance SET deployment_id = $2 WHERE id = $1");
    tx.run(sql, params![id, deployment]).await.map(drop)
}

/// Could a cluster that counts in these units host for the organization there?
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

/// Writes an instance down as it is now, and appends what changed to the log.
pub async fn save(tx: &mut Tx, now: &mut Instance, change: &str) -> Result<()> {
    now.updated_at = tx.now();
    let saved = tx
        .run(
            sql!(
                "UPDATE instance SET owner = $2, reauthentication = $3, status = $4, ",
                "status_reason = $5, status_since = $6, cluster_id = $7, deployment_id = $8, host = $9, ",
                "expires_at = $10, detail = $11, generation = $12, updated_at = $13, size = $14 ",
                "WHERE id = $1 AND deleted_at IS NULL"
            ),
            params![
                now.id,
                now.owner,
                now.reauthentication,
                now.status,
                now.status_reason,
                now.status_since,
                now.cluster_id,
                now.deployment_id,
                now.host,
                now.expires_at,
                Json(&now.detail),
                now.generation,
                now.updated_at,
                now.size
            ],
        )
        .await?;
    if saved == 0 {
        return Err(Error::not_found("instance", now.id));
    }
    note(tx, now, change).await
}

/// Asks for an instance's end.
pub async fn request_delete(
    tx: &mut Tx,
    scope: Scope,
    id: InstanceId,
    reason: &str,
) -> Result<Instance> {
    let mut instance = take(tx, scope, id).await?;
    if !instance.status.is_leaving() {
        advance(tx, &mut instance, Status::Deprovision, reason).await?;
    }
    Ok(instance)
}

/// The end: nothing of the instance is left but its history, and its name and quota are free.
pub async fn delete(tx: &mut Tx, instance: &Instance) -> Result<()> {
    for charge in &instance.detail.charges {
        account::release(tx, &instance.kind, charge).await?;
    }
    let now = tx.now();
    let sql = sql!(
        "UPDATE instance SET deleted_at = $2, updated_at = $2, sealed = NULL, deployment_id = NULL ",
        "WHERE id = $1 AND deleted_at IS NULL"
    );
    if tx.run(sql, params![instance.id, now]).await? == 0 {
        return Err(Error::not_found("instance", instance.id));
    }
    let owner = Some(instance.organization_id);
    event::append(tx, Kind::Instance, instance.id, owner, "deleted", instance).await
}

/// What an instance signs in with, encrypted.
pub async fn sealed(read: &mut Read, id: InstanceId) -> Result<Option<String>> {
    let sql = sql!("SELECT sealed FROM instance WHERE id = $1 AND deleted_at IS NULL");
    read.first(sql, params![id]).await?.map_or(Ok(None), |mut row| row.take())
}

/// Keeps what an instance signs in with, encrypted.
pub async fn set_sealed(tx: &mut Tx, id: InstanceId, sealed: Option<&str>) -> Result<()> {
    let sql = sql!("UPDATE instance SET sealed = $2 WHERE id = $1");
    tx.run(sql, params![id, sealed]).await.map(drop)
}

/// Has the worker of what may end look at an instance.
pub fn wake_general(tx: &mut Tx, id: InstanceId) {
    work::wake(tx, Lane::Background, Key::new(GENERAL, id));
}

/// Has the worker of what may end look at an owner's instances, of all owners when none is named.
pub async fn wake_all_of(
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

/// Wakes the workers of everything that is not at rest: the safety net.
pub async fn resync(tx: &mut Tx) -> Result<()> {
    let sql = sql!(
        "SELECT id FROM instance WHERE deleted_at IS NULL ",
        "AND status NOT IN ('ready', 'failed', 'suspended') ORDER BY id"
    );
    for mut row in tx.all(sql, params![]).await? {
        let id: InstanceId = row.take()?;
        work::wake(tx, Lane::Background, Key::new(WORKER, id));
    }
    Ok(())
}

/// Appends the instance's state to the log and wakes its worker.
async fn note(tx: &mut Tx, instance: &Instance, change: &str) -> Result<()> {
    let owner = Some(instance.organization_id);
    event::append(tx, Kind::Instance, instance.id, owner, change, instance).await?;
    work::wake(tx, Lane::Priority, Key::new(WORKER, instance.id));
    Ok(())
}

pub(crate) fn from_row(mut row: Row) -> Result<Instance> {
    Ok(Instance {
        id: row.take()?,
        kind: row.take()?,
        organization_id: row.take()?,
        owner: row.take()?,
        name: row.take()?,
        cloud_provider: row.take()?,
        region: row.take()?,
        multi_az: row.take()?,
        instance_type: row.take()?,
        size: row.take()?,
        reauthentication: row.take()?,
        status: row.take()?,
        status_reason: row.take()?,
        status_since: row.take()?,
        pinned_to: row.take()?,
        cluster_id: row.take()?,
        deployment_id: row.take()?,
        host: row.take()?,
        expires_at: row.take()?,
        detail: row.take::<Json<_>>()?.0,
        generation: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
    })
}
