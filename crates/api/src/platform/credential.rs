//! Credentials of the caller's organization for external systems.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use model::Secret;
use model::credential::{System, check_secret, check_username, purpose};
use wire::credential::{Credential, CredentialList, SetCredential};

use crate::Problem;
use crate::body::Json;
use crate::caller::Call;

/// Lists the credentials of the organization, without secrets. For its owners.
#[utoipa::path(get, path = "/api/v1/credentials", tag = "credentials",
    responses((status = 200, body = CredentialList, description = "Complete list"), Problem))]
pub(crate) async fn credential_list(
    Call(app, caller): Call,
) -> Result<Answer<CredentialList>, Problem> {
    let organization = caller.user.organization_id;
    let found = store::credential::list(&mut app.db.read().await?, organization).await?;
    Ok(Answer(CredentialList { items: found.into_iter().map(Credential::from).collect() }))
}

/// Sets a credential of the organization. For its owners.
///
/// Executors and image pulls of the organization use it instead of the platform's credentials. The
/// secret is stored encrypted and never returned.
#[utoipa::path(put, path = "/api/v1/credentials/{system}/{name}", tag = "credentials",
    request_body = SetCredential,
    params(("system" = String, Path, description = "`consul`, `registry`, `terraform` or `vault`"),
        ("name" = String, Path, description = "Host of a registry, environment variable of Terraform, or `token`")),
    responses((status = 200, body = Credential, description = "Set"), Problem))]
pub(crate) async fn credential_set(
    Call(app, caller): Call,
    Path((system, name)): Path<(String, String)>,
    Json(request): Json<SetCredential>,
) -> Result<Answer<Credential>, Problem> {
    let system: System = system.parse()?;
    let name = system.check_name(&name)?;
    let username = check_username(system, request.username.as_deref())?;
    check_secret(&request.secret)?;
    let organization = caller.user.organization_id;
    let secret = Secret::new(request.secret);
    let sealed = app.seal.encrypt(&purpose(organization, system, &name), &secret).await;
    let sealed = sealed.map_err(|fault| {
        tracing::warn!(%fault, "encrypting a credential failed");
        Problem::unavailable(format!("The credential cannot be encrypted now: {fault}."))
    })?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let at = (system, name.as_str());
    let set =
        store::credential::set(&mut tx, organization, at, username.as_deref(), &sealed).await?;
    tx.commit().await?;
    let user = &caller.user.username;
    tracing::info!(audit = true, user, %organization, %system, name, "credential set");
    Ok(Answer(set.into()))
}

/// Deletes a credential of the organization. For its owners.
#[utoipa::path(delete, path = "/api/v1/credentials/{system}/{name}", tag = "credentials",
    params(("system" = String, Path, description = "`consul`, `registry`, `terraform` or `vault`"),
        ("name" = String, Path, description = "Name of the credential")),
    responses((status = 204, description = "Deleted"), Problem))]
pub(crate) async fn credential_delete(
    Call(app, caller): Call,
    Path((system, name)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let system: System = system.parse()?;
    let name = system.check_name(&name)?;
    let organization = caller.user.organization_id;
    let mut tx = app.db.begin(caller.actor()).await?;
    store::credential::delete(&mut tx, organization, (system, &name)).await?;
    tx.commit().await?;
    let user = &caller.user.username;
    tracing::info!(audit = true, user, %organization, %system, name, "credential deleted");
    Ok(StatusCode::NO_CONTENT)
}
