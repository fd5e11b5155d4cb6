//! Resources of environments.
//!
//! Users and the environment's worker change a resource under the lock of the environment's row
//! ([`crate::environment::lock`]). The server that runs an operation holds the resource's lease
//! ([`crate::operation::acquire`]) and writes with its fencing token: after a takeover its writes are
//! rejected.

use std::collections::BTreeMap;

use model::event::Kind;
use model::reason::StatusReason as _;
use model::resource::{Link, Reason, Resource, Status};
use model::template::{Act, Node};
use model::work::{Key, Lane};
use model::{EnvironmentId, OrganizationId, ResourceId};
use serde::Serialize;
use serde_json::Map;

use crate::db::{Json, Param, Row, Select, Value, batches, json, params, sql};
use crate::status::{self, Lifecycle, status_row};
use crate::subject::{self, Any, Id, Subject, by_id};
use crate::{Error, Page, Read, Result, Scope, Tx, work};

pub use crate::status::{save, transition};

by_id!(ResourceId: get(Read));

/// The worker that reconciles resources.
pub const WORKER: &str = "resource";

macro_rules! columns {
    () => {
        "id, environment_id, organization_id, node, act, status, status_reason, status_since, progress, \
         print, applied, tried, outputs, link_kind, link_id, adopt, drift, unexpected, observed_at, attempts, fence, \
         generation, created_at, updated_at"
    };
}

impl Subject for Resource {
    type Id = ResourceId;
    const KIND: Kind = Kind::Resource;
    const TABLE: &'static str = "resource";
    const COLUMNS: &'static str = columns!();

    fn from_row(row: Row) -> Result<Self> {
        from_row(row)
    }
}

impl Id for ResourceId {
    type Subject = Resource;
}

impl Lifecycle for Resource {
    status_row!(Status, Reason);
    const WORKER: &'static str = WORKER;
    const RESTLESS: &'static str = "status IN ('planning', 'applying', 'destroying')";
    const EXPLAINED: &'static str = "progress";

    fn columns(&self) -> Vec<(&'static str, Value<'_>)> {
        let link = self.link.as_ref();
        vec![
            ("executor", self.node.executor.value()),
            ("node", json(&self.node)),
            ("act", self.act.value()),
            ("progress", self.progress.value()),
            ("print", self.print.value()),
            ("applied", json(&self.applied)),
            ("tried", json(&self.tried)),
            ("outputs", json(&self.outputs)),
            ("link_kind", link.map_or(Value::Null, |link| link.kind.value())),
            ("link_id", link.map_or(Value::Null, |link| link.id.value())),
            ("adopt", self.adopt.value()),
            ("drift", json(&self.drift)),
            ("unexpected", json(&self.unexpected)),
            ("observed_at", self.observed_at.value()),
            ("attempts", self.attempts.value()),
            ("generation", self.generation.value()),
        ]
    }

    fn event_data(&self) -> impl Serialize + Send + Sync {
        event_data(self)
    }

    /// A takeover by another server increases the fencing token.
    fn guard(&self) -> Option<(&'static str, Value<'_>)> {
        Some(("fence", self.fence.value()))
    }

    fn wake(&self, tx: &mut Tx) {
        if self.status != Status::Destroyed {
            wake(tx, self.id);
        }
        crate::environment::wake(tx, self.environment_id);
    }

    /// Locks the environment first, as users and the environment's worker do.
    async fn relock(&self, tx: &mut Tx) -> Result<Self> {
        subject::lock(tx, Scope::All, self.environment_id).await?;
        subject::lock(tx, Scope::All, self.id).await
    }

    fn is_unchanged(&self, seen: &Self) -> bool {
        self.status == seen.status
            && self.status_since == seen.status_since
            && self.generation == seen.generation
            && self.fence == seen.fence
    }
}

/// Creates a resource.
pub async fn create(
    tx: &mut Tx,
    owner: OrganizationId,
    environment: EnvironmentId,
    node: &Node,
    reason: &Reason,
) -> Result<Resource> {
    let (id, now) = (tx.id::<ResourceId>(), tx.now());
    let created = tx
        .first(
            sql!(
                "INSERT INTO resource (id, environment_id, organization_id, name, executor, node, act, ",
                "status, status_reason, status_since, created_at, updated_at, reason_code) VALUES ",
                "($1, $2, $3, $4, $5, $6, 'create', 'pending', $7, $8, $8, $8, $9) RETURNING ",
                columns!()
            ),
            params![
                id,
                environment,
                owner,
                node.name,
                node.executor,
                Json(node),
                reason,
                now,
                reason.code()
            ],
        )
        .await?;
    let created = created.ok_or_else(|| Error::Database("insert returned no row".into()))?;
    let created = from_row(created)?;
    status::record_event(tx, &created, "created").await?;
    Ok(created)
}

/// All resources of an environment, by name.
pub async fn list_of_environment(
    read: &mut Read,
    environment: EnvironmentId,
) -> Result<Vec<Resource>> {
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM resource WHERE environment_id = $1 AND deleted_at IS NULL ORDER BY name"
    );
    let rows = read.all(sql, params![environment]).await?;
    rows.into_iter().map(from_row).collect()
}

/// Locks and returns all resources of an environment, by name.
pub async fn lock_all(tx: &mut Tx, environment: EnvironmentId) -> Result<Vec<Resource>> {
    let sql = sql!(
        "UPDATE resource SET updated_at = updated_at WHERE environment_id = $1 AND deleted_at IS NULL"
    );
    tx.run(sql, params![environment]).await?;
    list_of_environment(tx, environment).await
}

/// The outputs of an environment's applied resources with these names, by name.
pub async fn outputs(
    read: &mut Read,
    environment: EnvironmentId,
    names: &[String],
) -> Result<BTreeMap<String, Map<String, serde_json::Value>>> {
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

/// The resource with that name, including a deleted one, so that its log can be read.
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

/// A page of all resources in scope, by id.
pub async fn list(read: &mut Read, scope: Scope, page: &Page) -> Result<Vec<Resource>> {
    subject::list(read, scope, &Any::ALL, page).await
}

/// Changes the progress and reason of a resource, if they differ. Wakes nothing.
pub async fn explain(tx: &mut Tx, now: &mut Resource, reason: Reason, progress: i64) -> Result<()> {
    if now.reason == reason && now.progress == progress {
        return Ok(());
    }
    now.progress = progress;
    status::write_reason(tx, now, reason).await
}

/// Records the object created for a resource, in the same transaction. A stale token is rejected.
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

/// The resource that an object was created for.
pub async fn owner(read: &mut Read, link: &Link) -> Result<Option<Resource>> {
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM resource WHERE link_kind = $1 AND link_id = $2 AND deleted_at IS NULL"
    );
    read.first(sql, params![link.kind, link.id]).await?.map(from_row).transpose()
}

/// Records an observation without changes. Appends no event.
pub async fn set_observed(tx: &mut Tx, now: &Resource) -> Result<()> {
    status::write(tx, now, now.status).await
}

/// Marks all resources of an environment for destruction, regardless of leases. Wakes nothing.
pub async fn mark_for_deletion(tx: &mut Tx, environment: EnvironmentId) -> Result<()> {
    let sql = sql!(
        "UPDATE resource SET act = 'destroy' WHERE environment_id = $1 AND deleted_at IS NULL"
    );
    tx.run(sql, params![environment]).await.map(drop)
}

/// Deletes a resource. Its log stays.
pub async fn delete(tx: &mut Tx, now: &mut Resource, reason: Reason) -> Result<()> {
    (now.act, now.link) = (Act::Nothing, None);
    transition(tx, now, Status::Destroyed, reason).await?;
    crate::operation::secret::delete_all(tx, now.id).await?;
    let sql = sql!("UPDATE resource SET deleted_at = $2 WHERE id = $1");
    tx.run(sql, params![now.id, now.updated_at]).await.map(drop)
}

/// Wakes the worker for a resource.
pub fn wake(tx: &mut Tx, id: ResourceId) {
    work::wake(tx, Lane::Priority, Key::new(WORKER, id));
}

/// Event data of a resource, without its configuration, which may contain environment variables.
fn event_data(now: &Resource) -> serde_json::Value {
    serde_json::json!({
        "id": now.id,
        "environment_id": now.environment_id,
        "name": now.node.name,
        "executor": now.node.executor,
        "template": now.node.template,
        "act": now.act,
        "status": now.status,
        "status_reason": now.reason.to_string(),
        "reason_code": now.reason.code(),
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
        reason: row.take()?,
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
