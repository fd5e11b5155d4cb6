//! Environments: creating, reading and changing them.
//!
//! Callers lock an environment's row ([`lock`]) before they read and change it or one of its
//! resources. Objects created for resources (deployments, instances) are locked after it.

use std::collections::BTreeMap;

use model::environment::{Environment, OnDrift, Reason, Status};
use model::organization::quota::Subject as Counted;
use model::reason::StatusReason as _;
use model::work::{Key, Lane};
use model::{EnvironmentId, OrganizationId, Quantity, TemplateId, Time, UserId};
use serde::Serialize;
use serde_json::Map;

use crate::db::{Json, Param, Select, Value, json, params, readable, sql};
use crate::status::{self, Lifecycle, status_row};
use crate::subject::{self, Subject as _, by_id, row};
use crate::{Error, Read, Result, Scope, Tx, organization_quota, work};

pub use crate::status::{save, transition};
pub use crate::subject::list;

by_id!(EnvironmentId: get(Read), lock(Tx));

/// The worker that reconciles environments.
pub const WORKER: &str = "environment";

row! { Environment(EnvironmentId) in "environment":
    id, organization_id, name, description, tags as json, templates as json, parameters as json, on_drift,
    status, reason in "status_reason", status_since, progress, entry_points as json, is_cancelled, destroy_at,
    reminders, created_by, generation, created_at, updated_at, destroyed_at;
    const LIVING: &'static str = "1 = 1";
}

impl Lifecycle for Environment {
    status_row!(Status, Reason);
    const WORKER: &'static str = WORKER;
    const RESTLESS: &'static str = "status IN ('deploying', 'validating', 'destroying')";
    const EXPLAINED: &'static str = "progress";

    fn columns(&self) -> Vec<(&'static str, Value<'_>)> {
        vec![
            ("description", self.description.value()),
            ("tags", self.tags.value()),
            ("templates", json(&self.templates)),
            ("parameters", json(&self.parameters)),
            ("on_drift", self.on_drift.value()),
            ("progress", self.progress.value()),
            ("entry_points", json(&self.entry_points)),
            ("is_cancelled", self.is_cancelled.value()),
            ("destroy_at", self.destroy_at.value()),
            ("reminders", self.reminders.value()),
            ("generation", self.generation.value()),
            ("destroyed_at", self.destroyed_at.value()),
        ]
    }

    fn event_data(&self) -> impl Serialize + Send + Sync {
        event_data(self)
    }

    async fn entered(&mut self, tx: &mut Tx) -> Result<()> {
        if self.status == Status::Destroyed {
            self.destroyed_at = Some(tx.now());
            let owner = self.organization_id;
            organization_quota::release(tx, owner, Counted::Environments, Quantity::whole(1));
            let sql = sql!("DELETE FROM environment_template WHERE environment_id = $1");
            tx.run(sql, params![self.id]).await?;
        }
        Ok(())
    }
}

/// Request for a new environment.
#[derive(Debug, Clone)]
pub struct NewEnvironment {
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Templates by id, and as they were referenced.
    pub templates: Vec<(TemplateId, String)>,
    /// Parameter values.
    pub parameters: Map<String, serde_json::Value>,
    /// What to do when drift is detected.
    pub on_drift: OnDrift,
    /// When to destroy it.
    pub destroy_at: Option<Time>,
    /// The user who creates it.
    pub created_by: UserId,
}

/// Filter for lists.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Id.
    pub id: Option<EnvironmentId>,
    /// Name.
    pub name: Option<String>,
    /// Status.
    pub status: Option<Status>,
    /// Whether to include destroyed environments.
    pub with_destroyed: bool,
}

/// Creates an environment. Its resources are created in the same transaction ([`crate::resource`]).
pub async fn create(
    tx: &mut Tx,
    organization: OrganizationId,
    new: &NewEnvironment,
) -> Result<Environment> {
    let (id, now) = (tx.id::<EnvironmentId>(), tx.now());
    let reason = Reason::default();
    let names: Vec<&String> = new.templates.iter().map(|(_, name)| name).collect();
    let made = tx
        .first(
            sql!(
                "INSERT INTO environment (id, organization_id, name, description, tags, templates, ",
                "parameters, on_drift, status, status_reason, status_since, progress, entry_points, ",
                "destroy_at, created_by, created_at, updated_at, reason_code) VALUES ",
                "($1, $2, $3, $4, $5, $6, $7, $8, 'deploying', $9, $10, 0, '[]', $11, $12, $10, $10, $13) ",
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
                reason,
                now,
                new.destroy_at,
                new.created_by,
                reason.code()
            ],
        )
        .await?;
    let made = Environment::from_row(made.ok_or(Error::AlreadyExists { field: "name" })?)?;
    crate::organization::ensure_exists(tx, Some(organization)).await?;
    organization_quota::charge(tx, organization, Counted::Environments, Quantity::whole(1));
    set_templates(tx, id, &new.templates).await?;
    status::record_event(tx, &made, "created").await?;
    Ok(made)
}

/// Records the template versions of an environment.
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

/// The ids of an environment's templates.
pub async fn templates(read: &mut Read, id: EnvironmentId) -> Result<Vec<TemplateId>> {
    let sql = sql!(
        "SELECT template_id FROM environment_template WHERE environment_id = $1 ORDER BY template_id"
    );
    let rows = read.all(sql, params![id]).await?;
    rows.into_iter().map(|mut row| row.take()).collect()
}

/// The first `limit` environments in scope that use a template and are not destroyed.
pub async fn using_template(
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
    Ok(readable(read.all(sql, params![template, own, limit]).await?, Environment::from_row))
}

impl subject::Filter for Filter {
    type Subject = Environment;

    fn restrict<'a>(&'a self, select: Select<'a>, _: Option<&'a OrganizationId>) -> Select<'a> {
        select
            .text(if self.with_destroyed { "" } else { " AND destroyed_at IS NULL" })
            .and("id = ?", self.id.as_ref())
            .and("name = ?", self.name.as_ref())
            .and("status = ?", self.status.as_ref())
    }
}

/// Changes the progress and reason of an environment, if they differ. Wakes nothing.
pub async fn explain(
    tx: &mut Tx,
    now: &mut Environment,
    reason: Reason,
    progress: i64,
) -> Result<()> {
    if now.reason == reason && now.progress == progress {
        return Ok(());
    }
    now.progress = progress;
    status::write_reason(tx, now, reason).await
}

/// Wakes the worker for an environment.
pub fn wake(tx: &mut Tx, id: EnvironmentId) {
    work::wake(tx, Lane::Priority, Key::new(WORKER, id));
}

/// Event data of an environment. Only the names of parameters: values may become environment
/// variables, which may be secret.
fn event_data(now: &Environment) -> serde_json::Value {
    serde_json::json!({
        "id": now.id,
        "organization_id": now.organization_id,
        "name": now.name,
        "description": now.description,
        "tags": now.tags,
        "templates": now.templates,
        "parameter_names": now.parameters.keys().collect::<Vec<_>>(),
        "on_drift": now.on_drift,
        "status": now.status,
        "status_reason": now.reason.to_string(),
        "reason_code": now.reason.code(),
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
