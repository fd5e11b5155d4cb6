//! Quotas of organizations.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::Path;
use model::organization::quota::{self, Limit, QuotaKind, Subject, Usage};
use model::{OrganizationId, Quantity};
use store::{Scope, organization_quota};
use wire::quota::{OrganizationQuota, OrganizationQuotas, QuotaChange};

use crate::body::Json;
use crate::caller::Call;
use crate::page::id;
use crate::{App, Problem, storage};

/// Maximum number of quotas in a request.
const MAX_QUOTAS: usize = 32;

/// Returns the quotas of an organization and their usage.
#[utoipa::path(get, path = "/api/v1/organizations/{id}/quotas", tag = "quota",
    params(("id" = String, Path, description = "Organization ID")),
    responses((status = 200, body = OrganizationQuotas, description = "Quotas and usage"), Problem))]
pub(crate) async fn organization_quota_get(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Answer<OrganizationQuotas>, Problem> {
    let id: OrganizationId = id("organization", &text)?;
    store::organization::get(&mut app.db.read().await?, caller.scope(), id).await?;
    Ok(Answer(OrganizationQuotas { organization_id: id, items: quotas(&app, id).await? }))
}

/// Sets quotas of an organization. For the platform administrator.
///
/// A quota below the usage stops nothing: requests that add to the usage are refused.
#[utoipa::path(patch, path = "/api/v1/admin/organizations/{id}/quotas", tag = "admin",
    params(("id" = String, Path, description = "Organization ID")), request_body = QuotaChange,
    responses((status = 200, body = OrganizationQuotas, description = "Quotas and usage"), Problem))]
pub(crate) async fn organization_quota_update(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(change): Json<QuotaChange>,
) -> Result<Answer<OrganizationQuotas>, Problem> {
    caller.must_be_admin("set quotas of organizations")?;
    let id: OrganizationId = id("organization", &text)?;
    let quotas_to_set = checked(change)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    store::organization::get(&mut tx, Scope::All, id).await?;
    organization_quota::set(&mut tx, id, &quotas_to_set).await?;
    tx.commit().await?;
    Ok(Answer(OrganizationQuotas { organization_id: id, items: quotas(&app, id).await? }))
}

fn checked(change: QuotaChange) -> Result<BTreeMap<QuotaKind, Option<Limit>>, Problem> {
    if change.quotas.is_empty() || change.quotas.len() > MAX_QUOTAS {
        let detail = format!("must name 1 to {MAX_QUOTAS} kinds, such as {{\"cpu\": 8}}");
        return Err(Problem::field("quotas", detail));
    }
    let mut checked = BTreeMap::new();
    for (name, limit) in change.quotas {
        let kind: QuotaKind = name.parse()?;
        let limit = limit.map(|limit| limit.0.parse::<Limit>()).transpose();
        let limit = limit.map_err(|why| Problem::field(format!("quotas.{name}"), why))?;
        if let Some(limit) = limit {
            quota::check(&kind, limit).map_err(|invalid| invalid.within("quotas"))?;
        }
        checked.insert(kind, limit);
    }
    Ok(checked)
}

/// The quotas of an organization, with what is not in the database.
pub(crate) async fn quotas(
    app: &App,
    organization: OrganizationId,
) -> Result<Vec<OrganizationQuota>, Problem> {
    let (defaults, now) = (app.db.default_quotas(), app.db.now());
    let mut read = app.db.read().await?;
    let mut all = organization_quota::usage(&mut read, organization, &defaults, now).await?;
    drop(read);
    let stored = storage::usage(app, organization).await?.used;
    let streams = app.edge.streams_of(organization);
    for usage in &mut all {
        match &usage.kind {
            QuotaKind::Subject(Subject::Storage) => usage.used = stored,
            QuotaKind::Subject(Subject::Streams) => usage.used = streams,
            _ => {}
        }
    }
    Ok(all.into_iter().map(OrganizationQuota::from).collect())
}

/// The limited quotas of the resource types that a deployment requests.
pub(crate) fn relevant(all: Vec<Usage>, spec: &model::deployment::Spec) -> Vec<OrganizationQuota> {
    let is_requested = |kind: &QuotaKind| match kind {
        QuotaKind::Subject(_) => false,
        QuotaKind::Resource(name) => spec.resources.get(name) > Quantity::ZERO,
    };
    let relevant = all.into_iter().filter(|usage| is_requested(&usage.kind));
    relevant.filter(|usage| usage.limit != Limit::Unlimited).map(Into::into).collect()
}
