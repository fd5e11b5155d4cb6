//! Promotion of an instance from evaluation to a paid billing model.

use axum::extract::Path;
use axum::http::StatusCode;
use model::instance::{self, Status};
use model::kind::Kind;
use model::quota::ENTERPRISE;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::Error;
use super::body::Json;
use super::instance::InstancePath;
use super::tenant::Tenant;
use super::wire::{Async, Params};
use crate::caller::Call;
use crate::instance::{Promotion, lock, may_change, promote};

/// Billing model that can be promoted from.
const EVALUATION: &str = "eval";

/// Requested billing of an instance. The kind's name is part of the billing model's field, such as
/// `desired_kafka_billing_model`; `desired_billing_model` works for every kind.
#[derive(Deserialize, ToSchema)]
pub(crate) struct PromotionRequest {
    /// Marketplace.
    desired_marketplace: Option<String>,
    /// Account in the marketplace.
    desired_billing_cloud_account_id: Option<String>,
    #[serde(flatten)]
    named_by_kind: serde_json::Map<String, Value>,
}

impl PromotionRequest {
    fn into_promotion(self, kind: &Kind) -> Result<Promotion, Error> {
        let model_field = format!("desired_{}_billing_model", kind.name);
        let given = self.named_by_kind.get(&model_field);
        let given = given.or_else(|| self.named_by_kind.get("desired_billing_model"));
        let model = match given {
            None | Some(Value::Null) => "",
            Some(Value::String(text)) => text,
            Some(_) => return Err(Error::unreadable(format!("{model_field} must be a string."))),
        };
        if model.is_empty() {
            return Err(Error::new(33, format!("{model_field} must have at least 1 character.")));
        }
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        Ok(Promotion {
            model: model.to_owned(),
            marketplace: given(self.desired_marketplace),
            account: given(self.desired_billing_cloud_account_id),
        })
    }
}

/// Promotes an instance to another billing model. Follow its `promotion_status`.
#[utoipa::path(post, path = "/api/{api}/v1/{plural}/{id}/promote", tag = "instances",
    params(InstancePath, Async), request_body = PromotionRequest,
    responses((status = 202, description = "Accepted"), Error))]
pub(crate) async fn instance_promote(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<InstancePath>,
    params: Params,
    Json(body): Json<PromotionRequest>,
) -> Result<StatusCode, Error> {
    tenant.must_offer(tenant.kind.offers.promotion, "promotion")?;
    params.must_be_async()?;
    let (kind, caller) = (&tenant.kind, &tenant.caller);
    let promotion = body.into_promotion(kind)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = lock(&mut tx, caller.own(), kind, path.id()?).await?;
    if !may_change(caller, &found) {
        return Err(Error::new(
            11,
            "Only the instance's owner and the organization's owners may promote it.",
        ));
    }
    must_be_promotable(kind, &found, &promotion)?;
    promote(&app, tx, caller, kind, found, &promotion).await?;
    Ok(StatusCode::ACCEPTED)
}

fn must_be_promotable(
    kind: &Kind,
    found: &instance::Instance,
    to: &Promotion,
) -> Result<(), Error> {
    let billing = &found.detail.billing;
    if billing.model != EVALUATION {
        let reason = format!("Only instances with the billing model {EVALUATION} can be promoted.");
        return Err(Error::new(9, reason));
    }
    if !matches!(found.status, Status::Ready | Status::Suspended | Status::Resuming) {
        let reason = format!("An instance cannot be promoted while it is {}.", found.status);
        return Err(Error::new(9, reason));
    }
    if to.model == billing.model {
        return Err(Error::new(21, "The instance already has this billing model."));
    }
    if billing.desired != billing.model && billing.failure.is_none() {
        return Err(Error::new(9, "The instance is already being promoted."));
    }
    let models = kind.instance_type(&found.instance_type).map(|t| t.billing_models.as_slice());
    let ids = models.unwrap_or_default().iter().map(|model| model.id.as_str());
    let allowed: Vec<&str> = ids.filter(|id| ![EVALUATION, ENTERPRISE].contains(id)).collect();
    if allowed.contains(&to.model.as_str()) {
        return Ok(());
    }
    let reason = format!("The billing model must be one of {}.", allowed.join(", "));
    Err(Error::new(37, reason))
}
