//! Resources of environments: what each shall be, where it is on its way, who carries it out.
//!
//! What users and the environment's worker change is changed under the environment's row
//! ([`crate::environment::take`]). The server that carries out a step holds the resource ([`crate::operation::hold`]) and
//! writes with the fence that it got: once another one has taken over, nothing that it says counts.

use std::collections::BTreeMap;

use model::event::Kind;
use model::reason::Coded as _;
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

/// The worker that has executors carry out resources.
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

    fn told(&self) -> impl Serialize + Send + Sync {
        told(self)
    }

    /// Another server that has taken over has a higher fence.
    fn guard(&self) -> Option<(&'static str, Value<'_>)> {
        Some(("fence", self.fence.value()))
    }

    fn wake(&self, tx: &mut Tx) {
        if self.status != Status::Destroyed {
            wake(tx, self.id);
        }
        crate::environment::wake(tx, self.environment_id);
    }

    /// Takes the environment first, as users and the environment's worker do.
    async fn retake(&self, tx: &mut Tx) -> Result<Self> {
        subject::take(tx, Scope::All, self.environment_id).await?;
        subject::take(tx, Scope::All, self.id).await
    }

    fn is_still(&self, seen: &Self) -> bool {
        self.status == seen.status
            && self.status_since == seen.status_since
            && self.generation == seen.generation
            && self.fence == seen.fence
    }
}

/// Asks for a resource.
pub async fn create(
    tx: &mut Tx,
    owner: OrganizationId,
    environment: EnvironmentId,
    node: &Node,
    reason: &Reason,
) -> Result<Resource> {
    let (id, now) = (tx.id::<ResourceId>(), tx.now());
    let made = tx
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
    let made = made.ok_or_else(|| Error::Broken("an insert without a row".into()))?;
    let made = from_row(made)?;
    status::note(tx, &made, "created").await?;
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

/// A page of all resources in scope, by id.
pub async fn list(read: &mut Read, scope: Scope, page: &Page) -> Result<Vec<Resource>> {
    subject::list(read, scope, &Any::ALL, page).await
}

/// Changes how far a step is and why, if that is news. Wakes nobody.
pub async fn explain(tx: &mut Tx, now: &mut Resource, reason: Reason, progress: i64) -> Result<()> {
    if now.reason == reason && now.progress == progress {
        return Ok(());
    }
    now.progress = progress;
    status::explain_anew(tx, now, reason).await
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

/// Writes that a resource was observed and nothing is new. Nobody is told.
pub async fn set_observed(tx: &mut Tx, now: &Resource) -> Result<()> {
    status::write(tx, now, now.status).await
}

/// Has all resources of an environment go, whoever holds them. Nobody is woken by it.
pub async fn doom(tx: &mut Tx, environment: EnvironmentId) -> Result<()> {
    let sql = sql!(
        "UPDATE resource SET act = 'destroy' WHERE environment_id = $1 AND deleted_at IS NULL"
    );
    tx.run(sql, params![environment]).await.map(drop)
}

/// The end of a resource. Its log stays.
pub async fn delete(tx: &mut Tx, now: &mut Resource, reason: Reason) -> Result<()> {
    (now.act, now.link) = (Act::Nothing, None);
    transition(tx, now, Status::Destroyed, reason).await?;
    crate::operation::secret::forget(tx, now.id).await?;
    let sql = sql!("UPDATE resource SET deleted_at = $2 WHERE id = $1");
    tx.run(sql, params![now.id, now.updated_at]).await.map(drop)
}

/// Has the worker look at a resource.
pub fn wake(tx: &mut Tx, id: ResourceId) {
    work::wake(tx, Lane::Priority, Key::new(WORKER, id));
}

/// What the log says of a resource. What its executor is told may hold values of environment variables.
fn told(now: &Resource) -> serde_json::Value {
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
