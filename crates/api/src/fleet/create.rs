//! Asking for an instance.

use axum::Json as Answer;
use axum::http::StatusCode;
use engine::instance::asking;
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
use crate::instance::Wanted;

/// An instance to make. What is left out or empty is chosen; what the kind does not offer is ignored.
#[derive(Deserialize, ToSchema)]
pub(crate) struct NewInstance {
    /// Its name: a-z, 0-9 and -; begins with a letter, and does not end with -.
    name: Option<String>,
    /// The cloud provider.
    cloud_provider: Option<String>,
    /// The region there.
    region: Option<String>,
    /// Does it span zones? Only for kinds that ask; must be true there.
    multi_az: Option<bool>,
    /// Must its clients sign in again from time to time? True when it is left out.
    reauthentication_enabled: Option<bool>,
    /// Type and size, such as `standard.x1`.
    plan: Option<String>,
    /// How it is paid for.
    billing_model: Option<String>,
    /// Through which marketplace; needs `billing_cloud_account_id`.
    marketplace: Option<String>,
    /// From which account there.
    billing_cloud_account_id: Option<String>,
    /// The organization's own cluster that it shall be on.
    cluster_id: Option<String>,
}

impl NewInstance {
    fn wanted(self, kind: &Kind) -> Wanted {
        let offers = &kind.offers;
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let if_offered =
            |is_offered: bool, text: Option<String>| given(text).filter(|_| is_offered);
        Wanted {
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

/// Asks for an instance. Follow its status: it is `ready` when it can be used.
#[utoipa::path(post, path = "/api/{api}/v1/{plural}", tag = "instances", params(KindPath, Async),
    request_body = NewInstance,
    responses((status = 202, body = Instance, description = "Asked for"), Error))]
pub(crate) async fn instance_create(
    Call(app, tenant): Call<Tenant>,
    params: Params,
    origin: Origin,
    Json(body): Json<NewInstance>,
) -> Result<(StatusCode, Answer<Instance>), Error> {
    params.must_be_async()?;
    let (kind, caller) = (&tenant.kind, &tenant.caller);
    let wanted = body.wanted(kind);
    let mut tx = app.db.begin(caller.actor()).await?;
    let made = asking::create(&mut tx, &app.rules, &caller.asker(), kind, &wanted).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(Instance::new(kind, &origin, made))))
}
