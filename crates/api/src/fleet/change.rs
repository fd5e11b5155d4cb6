//! Update of an instance: owner and reauthentication.

use axum::Json as Answer;
use axum::extract::Path;
use serde::Deserialize;
use utoipa::ToSchema;

use super::Error;
use super::body::Json;
use super::instance::InstancePath;
use super::object::Instance;
use super::tenant::Tenant;
use super::wire::Origin;
use crate::caller::Call;
use crate::instance::{Change, change, lock, may_change};

/// Fields to update. Other fields are ignored.
#[derive(Deserialize, ToSchema)]
pub(crate) struct InstanceChange {
    /// New owner, by username: a member of the same organization.
    owner: Option<String>,
    /// Whether clients must reauthenticate periodically.
    reauthentication_enabled: Option<bool>,
}

/// Updates an instance.
#[utoipa::path(patch, path = "/api/{api}/v1/{plural}/{id}", tag = "instances", params(InstancePath),
    request_body = InstanceChange,
    responses((status = 200, body = Instance, description = "Updated"), Error))]
pub(crate) async fn instance_update(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<InstancePath>,
    origin: Origin,
    Json(body): Json<InstanceChange>,
) -> Result<Answer<Instance>, Error> {
    let (kind, caller) = (&tenant.kind, &tenant.caller);
    let mut tx = app.db.begin(caller.actor()).await?;
    let mut found = lock(&mut tx, caller.own(), kind, path.id()?).await?;
    if !may_change(caller, &found) {
        return Err(Error::new(
            11,
            "Only the instance's owner and the organization's owners may change it.",
        ));
    }
    let reauthentication = body.reauthentication_enabled.filter(|_| kind.offers.reauthentication);
    let requested = Change { owner: body.owner, reauthentication };
    change(&app, &mut tx, &mut found, &requested).await?;
    tx.commit().await?;
    Ok(Answer(Instance::new(kind, &origin, found)))
}
