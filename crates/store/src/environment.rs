//! Environments: asking for them, changing what they shall be, moving them on.
//!
//! Whoever changes one, or any of its resources, holds its row from before it looks ([`take`]). What is
//! made for resources (deployments, instances) is locked after it.

use std::collections::BTreeMap;

use model::environment::{Environment, OnDrift, Status};
use model::event::Kind;
use model::work::{Key, Lane};
use model::{EnvironmentId, OrganizationId, TemplateId, Time, UserId};
use serde_json::{Map, Value, json};

use crate::db::{Json, Row, Select, params, readable, sql};
use crate::{Error, Page, Read, Result, Scope, Tx, event, work};

/// The worker that has resources be made in order.
pub const WORKER: &str = "environment";

macro_rules! columns {
    () => {
        "id, organization_id, name, description, tags, templates, parameters, on_drift, status, \
         status_reason, status_since, progress, entry_points, is_cancelled, destroy_at, reminders, \
         created_by, generation, created_at, updated_at, destroyed_at"
    };
}

/// An environment as someone asks for it.
#[derive(Debug, Clone)]
pub struct NewEnvironment {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What users wrote on it.
    pub tags: BTreeMap<String, String>,
    /// The templates that it is made from, by id and as they were called.
    pub templates: Vec<(TemplateId, String)>,
    /// What was set.
    pub parameters: Map<String, Value>,
    /// What is done when a resource is not as it was made.
    pub on_drift: OnDrift,
    /// When it shall be destroyed.
    pub destroy_at: Option<Time>,
    /// Who asks for it.
    pub created_by: UserId,
}

/// Which environments are wanted.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// That one.
    pub id: Option<EnvironmentId>,
    /// Of that name.
    pub name: Option<String>,
    /// In that status.
    pub status: Option<Status>,
    /// Also those that are gone?
    pub with_destroyed: bool,
}

/// Asks for an environment. Its resources are made in the same transaction ([`crate::resource`]).
pub async fn create(
    tx: &mut Tx,
    organization: OrganizationId,
    new: &NewEnvironment,
) -> Result<Environment> {
    let (id, now) = (tx.id::<EnvironmentId>(), tx.now());
    let names: Vec<&String> = new.templates.iter().map(|(_, name)| name).collect();
    let made = tx
        .first(
            sql!(
                "INSERT INTO environment (id, organization_id, name, description, tags, templates, ",
                "parameters, on_drift, status, status_reason, status_since, progress, entry_points, ",
                "destroy_at, created_by, created_at, updated_at) VALUES ",
                "($1, $2, $3, $4, $5, $6, $7, $8, 'deploying', $9, $10, 0, '[]', $11, $12, $10, $10) ",
                "ON CONFLICT (organization_id, name) WHERE destroyed_at IS NULL DO NOTHING RETURNING ",
                columns!()
            ),
            params![
                id,
                organization,
                new.name,
                new.description,
                new.tags,
                Json(&names),
                Json(&new.parameters),
                new.on_drift,
                "Asked for.",
                now,
                new.destroy_at,
                new.created_by
            ],
        )
        .await?;
    let made = from_row(made.ok_or(Error::Taken { field: "name" })?)?;
    set_templates(tx, id, &new.templates).await?;
    note(tx, &made, "created").await?;
    Ok(made)
}

/// Notes which versions of templates an environment is made from.
pub async fn set_templates(
    tx: &mut Tx,
    id: EnvironmentId,
    templates: &[(TemplateId, String)],
) -> Result<()> {
    let mut ids: Vec<TemplateId> = templates.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    for template in ids {
        crate::template::lock(tx, template).await?;
    }
    tx.run(sql!("DELETE FROM environment_template WHERE environment_id = $1"), params![id]).await?;
    for (template, name) in templates {
        let sql = sql!(
            "INSERT INTO environment_template (environment_id, template_id) ",
            "SELECT $1, id FROM template WHERE id = $2 AND deleted_at IS NULL"
        );
        if tx.run(sql, params![id, template]).await? == 0 {
            return Err(Error::not_found("template", name));
        }
    }
    Ok(())
}

/// The ids of the templates that an environment is made from.
pub async fn templates(read: &mut Read, id: EnvironmentId) -> Result<Vec<TemplateId>> {
    let sql = sql!(
        "SELECT template_id FROM environment_template WHERE environment_id = $1 ORDER BY template_id"
    );
    let rows = read.all(sql, params![id]).await?;
    rows.into_iter().map(|mut row| row.take()).collect()
}

/// The first `limit` living environments in scope that are made from a template.
pub async fn made_from(
    read: &mut Read,
    scope: Scope,
    template: TemplateId,
    limit: i64,
) -> Result<Vec<Environment>> {
    let own = scope.organization();
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM environment WHERE destroyed_at IS NULL AND organization_id = COALESCE($2, organization_id) ",
        "AND id IN (SELECT environment_id FROM environment_template WHERE template_id = $1) ORDER BY id LIMIT $3"
    );
    Ok(readable(read.all(sql, params![template, own, limit]).await?, from_row))
}

/// One environment, also one that is gone.
pub async fn get(read: &mut Read, scope: Scope, id: EnvironmentId) -> Result<Environment> {
    let filter = Filter { id: Some(id), with_destroyed: true, ..Filter::default() };
    let found = rows(read, scope, &filter, &Page::first(1)).await?.into_iter().next();
    from_row(found.ok_or_else(|| Error::not_found("environment", id))?)
}

/// A part of the environments in scope, by id.
pub async fn list(
    read: &mut Read,
    scope: Scope,
    filter: &Filter,
    page: &Page,
) -> Result<Vec<Environment>> {
    Ok(readable(rows(read, scope, filter, page).await?, from_row))
}

async fn rows(read: &mut Read, scope: Scope, filter: &Filter, page: &Page) -> Result<Vec<Row>> {
    let own = scope.organization();
    let living = if filter.with_destroyed { "" } else { " AND destroyed_at IS NULL" };
    Select::new(concat!("SELECT ", columns!(), " FROM environment WHERE 1 = 1"))
        .text(living)
        .and("organization_id = ?", own.as_ref())
        .and("id = ?", filter.id.as_ref())
        .and("name = ?", filter.name.as_ref())
        .and("status = ?", filter.status.as_ref())
        .and("id > ?", page.after.as_ref())
        .then("ORDER BY id LIMIT ?", &page.limit)
        .then("OFFSET ?", &page.skip)
        .all(read)
        .await
}

/// The environment, which nobody else changes from here to the end of the transaction.
pub async fn take(tx: &mut Tx, scope: Scope, id: EnvironmentId) -> Result<Environment> {
    let own = scope.organization();
    let sql = sql!(
        "UPDATE environment SET updated_at = updated_at WHERE id = $1 AND ",
        "organization_id = COALESCE($2, organization_id) RETURNING ",
        columns!()
    );
    let row = tx.first(sql, params![id, own]).await?;
    from_row(row.ok_or_else(|| Error::not_found("environment", id))?)
}

/// Moves an environment on, with the reason. A step that its lifecycle does not have is a bug.
pub async fn advance(tx: &mut Tx, now: &mut Environment, to: Status, reason: &str) -> Result<()> {
    if !now.status.may_become(to) {
        return Err(Error::Broken(format!("an environment can't go from {} to {to}", now.status)));
    }
    (now.status, now.status_since) = (to, tx.now());
    reason.clone_into(&mut now.status_reason);
    if to == Status::Destroyed {
        now.destroyed_at = Some(tx.now());
        let sql = sql!("DELETE FROM environment_template WHERE environment_id = $1");
        tx.run(sql, params![now.id]).await?;
    }
    save(tx, now, to.as_str()).await
}

/// Says how far an environment is and why, if that is news. Nobody is woken by it.
pub async fn explain(
    tx: &mut Tx,
    now: &mut Environment,
    reason: &str,
    progress: i64,
) -> Result<()> {
    if now.status_reason == reason && now.progress == progress {
        return Ok(());
    }
    reason.clone_into(&mut now.status_reason);
    (now.progress, now.updated_at) = (progress, tx.now());
    write(tx, now).await?;
    tell(tx, now, "progress").await
}

/// Writes an environment down as it is now, and appends what changed to the log.
pub async fn save(tx: &mut Tx, now: &mut Environment, change: &str) -> Result<()> {
    now.updated_at = tx.now();
    write(tx, now).await?;
    note(tx, now, change).await
}

async fn write(tx: &mut Tx, now: &Environment) -> Result<()> {
    let sql = sql!(
        "UPDATE environment SET description = $2, tags = $3, templates = $4, parameters = $5, ",
        "on_drift = $6, status = $7, status_reason = $8, status_since = $9, progress = $10, ",
        "entry_points = $11, is_cancelled = $12, destroy_at = $13, reminders = $14, ",
        "generation = $15, updated_at = $16, destroyed_at = $17 WHERE id = $1"
    );
    tx.run(
        sql,
        params![
            now.id,
            now.description,
            now.tags,
            Json(&now.templates),
            Json(&now.parameters),
            now.on_drift,
            now.status,
            now.status_reason,
            now.status_since,
            now.progress,
            Json(&now.entry_points),
            now.is_cancelled,
            now.destroy_at,
            now.reminders,
            now.generation,
            now.updated_at,
            now.destroyed_at
        ],
    )
    .await
    .map(drop)
}

/// Has the worker look at an environment.
pub fn wake(tx: &mut Tx, id: EnvironmentId) {
    work::wake(tx, Lane::Priority, Key::new(WORKER, id));
}

/// Wakes the workers of everything that is not at rest: the safety net.
pub async fn resync(tx: &mut Tx) -> Result<()> {
    let sql = sql!(
        "SELECT id FROM environment WHERE status IN ('deploying', 'validating', 'destroying') ORDER BY id"
    );
    for mut row in tx.all(sql, params![]).await? {
        let id: EnvironmentId = row.take()?;
        work::wake(tx, Lane::Background, Key::new(WORKER, id));
    }
    Ok(())
}

/// Appends the environment's state to the log and wakes its worker.
async fn note(tx: &mut Tx, now: &Environment, change: &str) -> Result<()> {
    tell(tx, now, change).await?;
    wake(tx, now.id);
    Ok(())
}

async fn tell(tx: &mut Tx, now: &Environment, change: &str) -> Result<()> {
    let owner = Some(now.organization_id);
    event::append(tx, Kind::Environment, now.id, owner, change, &told(now)).await
}

/// What the log says of an environment: of parameters the names alone. They may become values of
/// environment variables, which may be secret.
fn told(now: &Environment) -> Value {
    json!({
        "id": now.id,
        "organization_id": now.organization_id,
        "name": now.name,
        "description": now.description,
        "tags": now.tags,
        "templates": now.templates,
        "parameter_names": now.parameters.keys().collect::<Vec<_>>(),
        "on_drift": now.on_drift,
        "status": now.status,
        "status_reason": now.status_reason,
        "status_since": now.status_since,
        "progress": now.progress,
        "entry_points": now.entry_points,
        "is_cancelled": now.is_cancelled,
        "destroy_at": now.destroy_at,
        "created_by": now.created_by,
        "generation": now.generation,
        "created_at": now.created_at,
        "updated_at": now.updated_at,
        "destroyed_at": now.destroyed_at,
    })
}

fn from_row(mut row: Row) -> Result<Environment> {
    Ok(Environment {
        id: row.take()?,
        organization_id: row.take()?,
        name: row.take()?,
        description: row.take()?,
        tags: row.take::<Json<_>>()?.0,
        templates: row.take::<Json<_>>()?.0,
        parameters: row.take::<Json<_>>()?.0,
        on_drift: row.take()?,
        status: row.take()?,
        status_reason: row.take()?,
        status_since: row.take()?,
        progress: row.take()?,
        entry_points: row.take::<Json<_>>()?.0,
        is_cancelled: row.take()?,
        destroy_at: row.take()?,
        reminders: row.take()?,
        created_by: row.take()?,
        generation: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
        destroyed_at: row.take()?,
    })
}
