//! Administrator updates: versions, data retention, suspension and resumption.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use model::cluster::OperatorVersion;
use model::instance::Instance;
use model::instance::change::{Change, Context, check};
use model::kind::{Kind, LimitValue, Shown, WireNames};
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
use crate::instance::lock;

/// Fields to update. In addition, versions under the kind's field names: `strimzi_version`,
/// `kafka_version`, `kafka_ibp_version`. Other fields are ignored.
#[derive(Deserialize, ToSchema)]
pub(crate) struct AdminChange {
    /// Data retention size, such as `1500Gi`; must not be reduced.
    max_data_retention_size: Option<Value>,
    /// Whether to suspend (true) or resume (false) the instance.
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
        let name = format!("{}_version", WireNames::snake(word));
        match self.named_by_kind.get(&name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(Error::unreadable(format!("{name} must be a string."))),
        }
    }
}

/// Parses a string, a number of bytes, or an object with `bytes`.
fn retention(value: Option<&Value>) -> Result<Option<String>, Error> {
    let value = match value {
        Some(Value::Object(object)) => object.get("bytes"),
        other => other,
    };
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => {
            Err(Error::unreadable("max_data_retention_size must be a string such as 1500Gi."))
        }
    }
}

/// Updates an instance of any organization. The change is asynchronous: follow the status.
#[utoipa::path(patch, path = "/api/{api}/v1/admin/{plural}/{id}", tag = "administrators",
    params(InstancePath), request_body = AdminChange,
    responses((status = 200, body = AdminInstance, description = "Updated"), Error))]
pub(crate) async fn admin_instance_update(
    Call(app, admin): Call<Admin>,
    Path(path): Path<InstancePath>,
    origin: Origin,
    Json(body): Json<AdminChange>,
) -> Result<Answer<AdminInstance>, Error> {
    let (kind, id, change) = (&admin.kind, path.id()?, body.read(&admin.kind)?);
    // Locked until commit: a concurrent deletion comes after this.
    let mut tx = app.db.begin(admin.actor).await?;
    let current = lock(&mut tx, Scope::All, kind, id).await?;
    let offered = offered(&mut tx, kind, &current).await?;
    let retention_bytes = default_retention(kind, &current);
    let against = Context { kind, offered: &offered, retention_bytes, now: tx.now() };
    let (mut updated, step) = check(&current, &change, against)?;
    match step {
        Some((to, reason)) => instance::transition(&mut tx, &mut updated, to, reason).await?,
        None => instance::save(&mut tx, &mut updated, "updated").await?,
    }
    tx.commit().await?;
    Ok(Answer(AdminInstance::new(kind, &origin, updated)))
}

/// Returns the versions that the instance's cluster can run: as reported by its third-party agent,
/// or those of Paddock's own agents.
async fn offered(
    tx: &mut Tx,
    kind: &Kind,
    instance: &Instance,
) -> Result<Vec<OperatorVersion>, Error> {
    let Some(cluster_id) = instance.cluster_id else { return Ok(Vec::new()) };
    let cluster = store::cluster::get(tx, Scope::All, cluster_id).await?;
    if cluster.hosting.is_foreign {
        return Ok(cluster.hosting.versions.get(&kind.name).cloned().unwrap_or_default());
    }
    let mut offered_versions: Vec<OperatorVersion> = Vec::new();
    for version in &kind.versions {
        let existing =
            offered_versions.iter().position(|offered| offered.operator == version.operator);
        let at = existing.unwrap_or_else(|| {
            let operator = version.operator.clone();
            offered_versions.push(OperatorVersion {
                operator,
                is_ready: true,
                ..OperatorVersion::default()
            });
            offered_versions.len() - 1
        });
        offered_versions[at].services.push(version.version.clone());
        offered_versions[at].protocols.extend(version.ibp.clone());
    }
    Ok(offered_versions)
}

/// Default retention size of the instance's size.
fn default_retention(kind: &Kind, instance: &Instance) -> Option<i64> {
    let size = kind.instance_type(&instance.instance_type)?.size(&instance.size)?;
    let shown = size.limits.iter().filter(|limit| limit.shown == Shown::Bytes);
    shown.into_iter().find_map(|limit| match limit.value {
        LimitValue::Quantity { bytes, .. } => Some(bytes),
        _ => None,
    })
}

/// Reason to revoke a certificate.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Revocation {
    /// Reason code of RFC 5280: 0 to 6, or 8 to 10.
    revocation_reason: Option<i64>,
}

/// Revokes the certificate of an instance.
///
/// Paddock's instances have no certificates: the request is validated and has no further effect.
#[utoipa::path(post, path = "/api/{api}/v1/admin/{plural}/{id}/revoke_tls_certificate",
    tag = "administrators", params(InstancePath), request_body = Revocation,
    responses((status = 204, description = "No certificate to revoke"), Error))]
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
