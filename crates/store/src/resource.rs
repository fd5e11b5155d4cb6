//! Resources of environments: what each shall be, where it is on its way, who carries it out.
//!
//! What users and the environment's worker change is changed under the environment's row
//! ([`crate::environment::take`]). The server that carries out a step holds the resource ([`crate::operation::hold`]) and
//! writes with the fence that it got: once another one has taken over, nothing that it says counts.

use std::collections::BTreeMap;

use model::event::Kind;
use model::resource::{Link, Resource, Status};
use model::template::{Act, Node};
use model::work::{Key, Lane};
use model::{EnvironmentId, OrganizationId, ResourceId};
use serde_json::{Map, Value, json};

use crate::db::{Json, Row, Select, batches, params, sql};
use crate::{Error, Page, Read, Result, Scope, Tx, event, work};

/// The worker that has executors carry out resources.
pub const WORKER: &str = "resource";

macro_rules! columns {
    () => {
        "id, environment_id, organization_id, node, act, status, status_reason, status_since, progress, \
         print, applied, tried, outputs, link_kind, link_id, adopt, drift, unexpected, observed_at, attempts, fence, \
         generation, created_at, updated_at"
    };
}

/// Asks for a resource.
pub async fn create(
    tx: &mut Tx,
    owner: OrganizationId,
    environment: EnvironmentId,
    node: &Node,
    reason: &str,
) -> Result<Resource> {
    let (id, now) = (tx.id::<ResourceId>(), tx.now());
    let made = tx
        .first(
            sql!(
                "INSERT INTO resource (id, environment_id, organization_id, name, executor, node, act, ",
                "status, status_reason, status_since, created_at, updated_at) VALUES ",
                "($1, $2, $3, $4, $5, $6, 'create', 'pending', $7, $8, $8, $8) RETURNING ",
                columns!()
            ),
            params![id, environment, owner, node.name, node.executor, Json(node), reason, now],
        )
        .await?;
    let made = made.ok_or_else(|| Error::Broken("an insert without a row".into()))?;
    let made = from_row(made)?;
    note(tx, &made, "created").await?;
    Ok(made)
}

/// All resources of an environment, by name.
pub async fn of(read: &mut Read, environment: EnvironmentId) -> Result<Vec<Resource>> {
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM resource WHERE environment_id = $1 AND deleted_at IS NULL ORDER BY name"
    );
    let rows = read.all(sql, params![environment]).await?;
    rows.into_iter().map(from_row).collect()
}

/// The same; nobody else changes one of them from here to the end of the transaction.
pub async fn take_all(tx: &mut Tx, environment: EnvironmentId) -> Result<Vec<Resource>> {
    let sql = sql!(
        "UPDATE resource SET updated_at = updated_at WHERE environment_id = $1 AND deleted_at IS NULL"
    );
    tx.run(sql, params![environment]).await?;
    of(tx, environment).await
}

/// What those of an environment's resources give that are called so and are there, by name.
pub async fn outputs(
    read: &mut Read,
    environment: EnvironmentId,
    names: &[String],
) -> Result<BTreeMap<String, Map<String, Value>>> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut found = BTreeMap::new();
    for names in batches(&names) {
        let select =
            "SELECT name, outputs FROM resource WHERE deleted_at IS NULL AND print IS NOT NULL";
        let select = Select::new(select).and("environment_id = ?", Some(&environment));
        for mut row in select.text(" AND ").one_of("name", &names).all(read).await? {
            found.insert(row.take()?, row.take::<Json<_>>()?.0);
        }
    }
    Ok(found)
}

/// One resource.
pub async fn get(read: &mut Read, scope: Scope, id: ResourceId) -> Result<Resource> {
    let own = scope.organization();
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM resource WHERE id = $1 AND deleted_at IS NULL ",
        "AND organization_id = COALESCE($2, organization_id)"
    );
    let row = read.first(sql, params![id, own]).await?;
    from_row(row.ok_or_else(|| Error::not_found("resource", id))?)
}

/// The resource of that name, also one that is gone if its environment is, so that its log can be read.
pub async fn by_name(
    read: &mut Read,
    scope: Scope,
    environment: EnvironmentId,
    name: &str,
) -> Result<Resource> {
    let own = scope.organization();
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM resource WHERE environment_id = $1 AND name = $2 ",
        "AND organization_id = COALESCE($3, organization_id) ",
        "ORDER BY CASE WHEN deleted_at IS NULL THEN 0 ELSE 1 END, id DESC LIMIT 1"
    );
    let row = read.first(sql, params![environment, name, own]).await?;
    from_row(row.ok_or_else(|| Error::not_found("resource", name))?)
}

/// A part of all resources in scope, by id.
pub async fn list(read: &mut Read, scope: Scope, page: &Page) -> Result<Vec<Resource>> {
    let own = scope.organization();
    let rows =
        Select::new(concat!("SELECT ", columns!(), " FROM resource WHERE deleted_at IS NULL"))
            .and("organization_id = ?", own.as_ref())
            .and("id > ?", page.after.as_ref())
            .then("ORDER BY id LIMIT ?", &page.limit)
            .then("OFFSET ?", &page.skip)
            .all(read)
            .await?;
    rows.into_iter().map(from_row).collect()
}

/// The resource, which nobody else changes from here to the end of the transaction; none if it is gone.
pub async fn take(tx: &mut Tx, id: ResourceId) -> Result<Option<Resource>> {
    let sql = sql!(
        "UPDATE resource SET updated_at = updated_at WHERE id = $1 AND deleted_at IS NULL RETURNING ",
        columns!()
    );
    tx.first(sql, params![id]).await?.map(from_row).transpose()
}

/// Moves a resource on, with the reason. A step that its lifecycle does not have is a bug.
pub async fn advance(tx: &mut Tx, now: &mut Resource, to: Status, reason: &str) -> Result<()> {
    if !now.status.may_become(to) {
        return Err(Error::Broken(format!("a resource can't go from {} to {to}", now.status)));
    }
    (now.status, now.status_since) = (to, tx.now());
    reason.clone_into(&mut now.status_reason);
    save(tx, now, to.as_str()).await
}

/// Says how far a step is, if that is news. Nobody is woken by it.
pub async fn explain(tx: &mut Tx, now: &mut Resource, reason: &str, progress: i64) -> Result<()> {
    if now.status_reason == reason && now.progress == progress {
        return Ok(());
    }
    reason.clone_into(&mut now.status_reason);
    (now.progress, now.updated_at) = (progress, tx.now());
    write(tx, now).await?;
    tell(tx, now, "progress").await
}

/// Writes a resource down as it is now, and appends what changed to the log.
pub async fn save(tx: &mut Tx, now: &mut Resource, change: &str) -> Result<()> {
    now.updated_at = tx.now();
    write(tx, now).await?;
    note(tx, now, change).await
}

async fn write(tx: &mut Tx, now: &Resource) -> Result<()> {
    let sql = sql!(
        "UPDATE resource SET executor = $2, node = $3, act = $4, status = $5, status_reason = $6, ",
        "status_since = $7, progress = $8, print = $9, applied = $10, outputs = $11, link_kind = $12, ",
        "link_id = $13, drift = $14, unexpected = $15, observed_at = $16, attempts = $17, ",
        "generation = $18, updated_at = $19, adopt = $21, tried = $22 ",
        "WHERE id = $1 AND deleted_at IS NULL AND fence = $20"
    );
    let link = now.link.as_ref();
    match tx
        .run(
            sql,
            params![
                now.id,
                now.node.executor,
                Json(&now.node),
                now.act,
                now.status,
                now.status_reason,
                now.status_since,
                now.progress,
                now.print,
                Json(&now.applied),
                Json(&now.outputs),
                link.map(|link| &link.kind),
                link.map(|link| &link.id),
                Json(&now.drift),
                Json(&now.unexpected),
                now.observed_at,
                now.attempts,
                now.generation,
                now.updated_at,
                now.fence,
                now.adopt,
                Json(&now.tried)
            ],
        )
        .await?
    {
        0 => Err(Error::Conflict("another server has taken over this resource".into())),
        _ => Ok(()),
    }
}

/// Notes what of Paddock's own was made for a resource, in the transaction that makes it. Whoever has an
/// older fence than the resource's notes nothing.
pub async fn set_link(tx: &mut Tx, id: ResourceId, fence: i64, link: Option<&Link>) -> Result<()> {
    let sql = sql!(
        "UPDATE resource SET link_kind = $3, link_id = $4 ",
        "WHERE id = $1 AND fence = $2 AND deleted_at IS NULL"
    );
    let (kind, name) = (link.map(|link| &link.kind), link.map(|link| &link.id));
    match tx.run(sql, params![id, fence, kind, name]).await? {
        0 => Err(Error::Conflict("another server has taken over this resource".into())),
        _ => Ok(()),
    }
}

/// The resource for which something of Paddock's own was made.
pub async fn owner(read: &mut Read, link: &Link) -> Result<Option<Resource>> {
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM resource WHERE link_kind = $1 AND link_id = $2 AND deleted_at IS NULL"
    );
    read.first(sql, params![link.kind, link.id]).await?.map(from_row).transpose()
}

/// Notes that a resource was looked at and nothing is new. Nobody is told.
pub async fn set_observed(tx: &mut Tx, now: &Resource) -> Result<()> {
    let sql = sql!("UPDATE resource SET observed_at = $2, status_reason = $3 WHERE id = $1");
    tx.run(sql, params![now.id, now.observed_at, now.status_reason]).await.map(drop)
}

/// Has all resources of an environment go, whoever holds them. Nobody is woken by it.
pub async fn doom(tx: &mut Tx, environment: EnvironmentId) -> Result<()> {
    let sql = sql!(
        "UPDATE resource SET act = 'destroy' WHERE environment_id = $1 AND deleted_at IS NULL"
    );
    tx.run(sql, params![environment]).await.map(drop)
}

/// The end of a resource. Its log stays.
pub async fn delete(tx: &mut Tx, now: &mut Resource, reason: &str) -> Result<()> {
    if !now.status.may_become(Status::Destroyed) {
        return Err(Error::Broken(format!("a resource can't be gone from {}", now.status)));
    }
    (now.status, now.status_since, now.updated_at) = (Status::Destroyed, tx.now(), tx.now());
    reason.clone_into(&mut now.status_reason);
    (now.act, now.link) = (Act::Nothing, None);
    write(tx, now).await?;
    crate::operation::secret::forget(tx, now.id).await?;
    let sql = sql!("UPDATE resource SET deleted_at = $2 WHERE id = $1");
    tx.run(sql, params![now.id, now.updated_at]).await?;
    tell(tx, now, Status::Destroyed.as_str()).await?;
    crate::environment::wake(tx, now.environment_id);
    Ok(())
}

/// Has the worker look at a resource.
pub fn wake(tx: &mut Tx, id: ResourceId) {
    work::wake(tx, Lane::Priority, Key::new(WORKER, id));
}

/// Wakes the workers of everything that is not at rest: the safety net.
pub async fn resync(tx: &mut Tx) -> Result<()> {
    let sql = sql!(
        "SELECT id FROM resource WHERE deleted_at IS NULL ",
        "AND status IN ('planning', 'applying', 'destroying') ORDER BY id"
    );
    for mut row in tx.all(sql, params![]).await? {
        let id: ResourceId = row.take()?;
        work::wake(tx, Lane::Background, Key::new(WORKER, id));
    }
    Ok(())
}

/// Appends the resource's state to the log and wakes its workers.
async fn note(tx: &mut Tx, now: &Resource, change: &str) -> Result<()> {
    tell(tx, now, change).await?;
    wake(tx, now.id);
    crate::environment::wake(tx, now.environment_id);
    Ok(())
}

async fn tell(tx: &mut Tx, now: &Resource, change: &str) -> Result<()> {
    let owner = Some(now.organization_id);
    event::append(tx, Kind::Resource, now.id, owner, change, &told(now)).await
}

/// What the log says of a resource. What its executor is told may hold values of environment variables.
fn told(now: &Resource) -> Value {
    json!({
        "id": now.id,
        "environment_id": now.environment_id,
        "name": now.node.name,
        "executor": now.node.executor,
        "template": now.node.template,
        "act": now.act,
        "status": now.status,
        "status_reason": now.status_reason,
        "progress": now.progress,
        "outputs": now.outputs,
        "link": now.link,
        "drift": now.drift,
        "unexpected": now.unexpected,
        "attempts": now.attempts,
        "generation": now.generation,
    })
}

fn from_row(mut row: Row) -> Result<Resource> {
    Ok(Resource {
        id: row.take()?,
        environment_id: row.take()?,
        organization_id: row.take()?,
        node: row.take::<Json<_>>()?.0,
        act: row.take()?,
        status: row.take()?,
        status_reason: row.take()?,
        status_since: row.take()?,
        progress: row.take()?,
        print: row.take()?,
        applied: row.take::<Json<_>>()?.0,
        tried: row.take::<Json<_>>()?.0,
        outputs: row.take::<Json<_>>()?.0,
        link: link(row.take()?, row.take()?),
        adopt: row.take()?,
        drift: row.take::<Json<_>>()?.0,
        unexpected: row.take::<Json<_>>()?.0,
        observed_at: row.take()?,
        attempts: row.take()?,
        fence: row.take()?,
        generation: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
    })
}

fn link(kind: Option<String>, id: Option<String>) -> Option<Link> {
    Some(Link { kind: kind?, id: id? })
}
