//! Deletion of organizations.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use model::OrganizationId;
use serde::Deserialize;
use utoipa::IntoParams;
use wire::organization::OrganizationContents;

use crate::caller::Call;
use crate::page::{Query, flag, id};
use crate::{App, Problem};

/// How to delete an organization.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeletionQuery {
    /// Whether to delete everything that the organization has. Without it, the organization must be
    /// empty.
    #[param(value_type = Option<bool>, default = false)]
    cascade: Option<String>,
}

/// Deletes an organization with its users, tokens, invites, templates and service accounts.
///
/// An organization that has environments, instances, deployments or clusters is not deleted (409).
/// With `cascade`, their deletion is requested, dependents first: repeat the request until the
/// response is 204.
#[utoipa::path(delete, path = "/api/v1/organizations/{id}", tag = "organizations",
    params(("id" = String, Path, description = "Organization ID"), DeletionQuery),
    responses((status = 204, description = "Deleted"),
        (status = 202, body = OrganizationContents, description = "Contents are being deleted; repeat the request"),
        Problem))]
pub(crate) async fn organization_delete(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Query(query): Query<DeletionQuery>,
) -> Result<Response, Problem> {
    let id: OrganizationId = id("organization", &text)?;
    let is_cascade = flag("cascade", query.cascade.as_deref())?;
    let found = store::organization::get(&mut app.db.read().await?, caller.scope(), id).await?;
    caller.must_have_full_scope("delete the organization")?;
    if is_cascade {
        let by = caller.deletion_by(id);
        engine::organization::request_deletion(&app.db, caller.actor(), id, &by).await?;
    }
    let mut tx = app.db.begin(caller.actor()).await?;
    let Some(contents) = store::organization::delete(&mut tx, id).await? else {
        tx.commit().await?;
        app.cache.clear();
        delete_images(&app, id).await;
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    if is_cascade {
        let contents = OrganizationContents {
            environments: contents.environments,
            instances: contents.instances,
            deployments: contents.deployments,
            clusters: contents.clusters,
        };
        return Ok((StatusCode::ACCEPTED, Answer(contents)).into_response());
    }
    Err(Problem::conflict(format!(
        "Organization {} still has {contents}. Delete them first, or repeat the request with \
         cascade=true to delete everything.",
        found.name
    )))
}

/// Deletes the organization's loaded images. Nobody else can see or use what remains.
async fn delete_images(app: &App, id: OrganizationId) {
    let images = app.images.list(id).await.unwrap_or_default();
    for image in images.into_iter().filter(|image| !image.is_builtin) {
        if let Err(error) = app.images.delete(id, image.name.clone()).await {
            tracing::warn!(organization = %id, image = image.name, %error, "image not deleted");
        }
    }
}
