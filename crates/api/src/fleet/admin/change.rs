//! What administrators change: versions, how much is kept, rest and resumption.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use model::cluster::Offered;
use model::instance::Instance;
use model::instance::change::{Against, Change, check};
use model::kind::{Kind, LimitValue, Shown, Words};
use serde::Deserialize;
use serde_json::{Map, Value};
use store::{Scope, Tx, instance};
use utoipa::ToSchema;

use super::Admin;
use super::object::AdminInstance;
use crate::caller::Call;
use crate::fleet::Error;
use crate::fleet::body::Json;
use crate::fleet::instance::{InstancePath, find};
use crate::fleet::wire::Origin;
use crate::instance::take;

/// What shall change. Beside these fields, the versions in the kind's words: `strimzi_version`,
/// `kafka_version`, `kafka_ibp_version`. Other fields are ignored.
#[derive(Deserialize, ToSchema)]
pub(crate) struct AdminChange {
    /// How much it keeps, such as `1500Gi`; never less than now.
    max_data_retention_size: Option<Value>,
    /// True: it shall rest. False: it shall work again.
    suspended: Option<bool>,
    #[serde(flatten)]
    named_by_kind: Map<String, Value>,
}

impl AdminChange {
    fn read(&self, kind: &Kind) -> Result<Change, Error> {
        let words = &kind.words;
        let protocol = words.ibp.as_deref().map(|word| self.version(word)).transpose()?;
        Ok(Change {
            operator: self.version(&words.operator)?,
            service: self.version(&words.version)?,
            protocol: protocol.flatten(),
            retention: retention(self.max_data_retention_size.as_ref())?,
            suspended: self.suspended.filter(|_| kind.offers.suspension),
        })
    }

    fn version(&self, word: &str) -> Result<Option<String>, Error> {
        let name = format!("{}_version", Words::snake(word));
        match self.named_by_kind.get(&name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(Error::unreadable(format!("{name} must be a text."))),
        }
    }
}

/// A text, a number of bytes, or an object with `bytes`.
fn retention(said: Option<&Value>) -> Result<Option<String>, Error> {
    let said = match said {
        Some(Value::Object(object)) => object.get("bytes"),
        other => other,
    };
    match said {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err(Error::unreadable("max_data_retention_size must be a text such as 1500Gi.")),
    }
}

/// Changes an instance of any organization. The change is recorded, not yet done: follow its status.
#[utoipa::path(patch, path = "/api/{api}/v1/admin/{plural}/{id}", tag = "administrators",
    params(InstancePath), request_body = AdminChange,
    responses((status = 200, body = AdminInstance, description = "Changed"), Error))]
pub(crate) async fn admin_instance_update(
    Call(app, admin): Call<Admin>,
    Path(path): Path<InstancePath>,
    origin: Origin,
    Json(body): Json<AdminChange>,
) -> Result<Answer<AdminInstance>, Error> {
    let (kind, id, change) = (&admin.kind, path.id()?, body.read(&admin.kind)?);
    // Nobody else changes it from here on: a deletion that is asked for meanwhile comes after this.
    let mut tx = app.db.begin(admin.actor).await?;
    let seen = take(&mut tx, Scope::All, kind, id).await?;
    let offered = offered(&mut tx, kind, &seen).await?;
    let retention_bytes = kept(kind, &seen);
    let against = Against { kind, offered: &offered, retention_bytes, now: tx.now() };
    let (mut now, step) = check(&seen, &change, against)?;
    match step {
        Some((to, reason)) => instance::transition(&mut tx, &mut now, to, reason).await?,
        None => instance::save(&mut tx, &mut now, "updated").await?,
    }
    tx.commit().await?;
    Ok(Answer(AdminInstance::new(kind, &origin, now)))
}

/// What the instance's cluster can run: as its foreign agent says, or what Paddock's own agents can.
async fn offered(tx: &mut Tx, kind: &Kind, of: &Instance) -> Result<Vec<Offered>, Error> {
    let Some(on) = of.cluster_id else { return Ok(Vec::new()) };
    let on = store::cluster::get(tx, Scope::All, on).await?;
    if on.hosting.is_foreign {
        return Ok(on.hosting.versions.get(&kind.name).cloned().unwrap_or_default());
    }
    let mut all: Vec<Offered> = Vec::new();
    for version in &kind.versions {
        let known = all.iter().position(|one| one.operator == version.operator);
        let at = known.unwrap_or_else(|| {
            let operator = version.operator.clone();
            all.push(Offered { operator, is_ready: true, ..Offered::default() });
            all.len() - 1
        });
        all[at].services.push(version.version.clone());
        all[at].protocols.extend(version.ibp.clone());
    }
    Ok(all)
}

/// How much instances of its size keep.
fn kept(kind: &Kind, of: &Instance) -> Option<i64> {
    let size = kind.type_of(&of.instance_type)?.size(&of.size)?;
    let shown = size.limits.iter().filter(|limit| limit.shown == Shown::Bytes);
    shown.into_iter().find_map(|limit| match limit.value {
        LimitValue::Quantity { bytes, .. } => Some(bytes),
        _ => None,
    })
}

/// Why a certificate is to be revoked.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Revocation {
    /// A code of RFC 5280: 0 to 6, or 8 to 10.
    revocation_reason: Option<i64>,
}

/// Asks for the revocation of an instance's own certificate. Instances of Paddock have none of their own:
/// what was asked for is checked, and there is nothing more to do.
#[utoipa::path(post, path = "/api/{api}/v1/admin/{plural}/{id}/revoke_tls_certificate",
    tag = "administrators", params(InstancePath), request_body = Revocation,
    responses((status = 204, description = "There is none to be revoked"), Error))]
pub(crate) async fn admin_certificate_revoke(
    Call(app, admin): Call<Admin>,
    Path(path): Path<InstancePath>,
    Json(body): Json<Revocation>,
) -> Result<StatusCode, Error> {
    if !body.revocation_reason.is_some_and(|code| matches!(code, 0..=6 | 8..=10)) {
        return Err(Error::new(21, "revocation_reason must be 0 to 6, or 8 to 10 (RFC 5280)."));
    }
    find(&app, Scope::All, &admin.kind, &path).await?;
    Ok(StatusCode::NO_CONTENT)
}
