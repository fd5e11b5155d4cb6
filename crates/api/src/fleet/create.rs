//! Creation of an instance.

use axum::Json as Answer;
use axum::http::StatusCode;
use engine::instance::commands;
use model::kind::Kind;
use serde::Deserialize;
use utoipa::ToSchema;

use super::Error;
use super::body::Json;
use super::instance::KindPath;
use super::object::Instance;
use super::tenant::Tenant;
use super::wire::{Async, Origin, Params};
use crate::caller::Call;
use crate::instance::NewInstanceRequest;

/// An instance to create. Omitted or empty fields are chosen automatically; fields that the kind
/// does not offer are ignored.
#[derive(Deserialize, ToSchema)]
pub(crate) struct NewInstance {
    /// Name: `a-z`, `0-9` and `-`; starts with a letter and does not end with `-`.
    name: Option<String>,
    /// Cloud provider.
    cloud_provider: Option<String>,
    /// Region of the cloud provider.
    region: Option<String>,
    /// Whether the instance spans availability zones. Only for kinds that require it; must be true
    /// there.
    multi_az: Option<bool>,
    /// Whether clients must reauthenticate periodically. Defaults to true.
    reauthentication_enabled: Option<bool>,
    /// Instance type and size, such as `standard.x1`.
    plan: Option<String>,
    /// Billing model.
    billing_model: Option<String>,
    /// Marketplace; requires `billing_cloud_account_id`.
    marketplace: Option<String>,
    /// Account in the marketplace.
    billing_cloud_account_id: Option<String>,
    /// Cluster of the organization to place the instance on.
    cluster_id: Option<String>,
}

impl NewInstance {
    fn into_request(self, kind: &Kind) -> NewInstanceRequest {
        let offers = &kind.offers;
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let if_offered =
            |is_offered: bool, text: Option<String>| given(text).filter(|_| is_offered);
        NewInstanceRequest {
            name: self.name.unwrap_or_default(),
            cloud_provider: given(self.cloud_provider),
            region: given(self.region),
            multi_az: self.multi_az,
            reauthentication: self.reauthentication_enabled.filter(|_| offers.reauthentication),
            plan: if_offered(offers.plans, self.plan),
            billing_model: if_offered(offers.billing, self.billing_model),
            marketplace: if_offered(offers.billing, self.marketplace),
            billing_account: if_offered(offers.billing, self.billing_cloud_account_id),
            cluster_id: if_offered(offers.enterprise_clusters, self.cluster_id),
        }
    }
}

/// Creates an instance.
///
/// Creation is asynchronous: follow the status until it is `ready`.
#[utoipa::path(post, path = "/api/{api}/v1/{plural}", tag = "instances", params(KindPath, Async),
    request_body = NewInstance,
    responses((status = 202, body = Instance, description = "Accepted"), Error))]
pub(crate) async fn instance_create(
    Call(app, tenant): Call<Tenant>,
    params: Params,
    origin: Origin,
    Json(body): Json<NewInstance>,
) -> Result<(StatusCode, Answer<Instance>), Error> {
    params.must_be_async()?;
    let (kind, caller) = (&tenant.kind, &tenant.caller);
    let request = body.into_request(kind);
    let mut tx = app.db.begin(caller.actor()).await?;
    let created =
        commands::create(&mut tx, &app.rules, &caller.requester(), kind, &request).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(Instance::new(kind, &origin, created))))
}
