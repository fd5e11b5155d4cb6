//! Root of a kind's API: versions, collections and capacity status.

use std::collections::BTreeMap;

use axum::Json as Answer;
use model::kind::Kind;
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

use super::Error;
use super::error::ApiPath;
use super::place::{fitting_sizes, types_in_region};
use super::tenant::{ApiKind, Tenant};
use crate::caller::Call;

/// The API of a kind.
#[derive(Serialize, ToSchema)]
pub(crate) struct Api {
    /// Name.
    id: String,
    /// Always `API`.
    kind: &'static str,
    /// Path in this API.
    href: String,
    /// API versions.
    versions: Vec<ApiVersion>,
}

/// A version of an API.
#[derive(Serialize, ToSchema)]
pub(crate) struct ApiVersion {
    /// Name.
    id: &'static str,
    /// Always `APIVersion`.
    kind: &'static str,
    /// Path in this API.
    href: String,
    /// Server version; empty in the list of versions.
    server_version: &'static str,
    /// Collections; null in the list of versions.
    collections: Option<Vec<Collection>>,
}

/// A collection of an API.
#[derive(Serialize, ToSchema)]
pub(crate) struct Collection {
    /// Name.
    id: String,
    /// Path in this API.
    href: String,
    /// Kind of the collection's list.
    kind: String,
}

/// Returns a kind's API.
#[utoipa::path(get, path = "/api/{api}", tag = "API", params(ApiPath), security(()),
    responses((status = 200, body = Api, description = "API"), Error))]
pub(crate) async fn api_get(ApiKind(kind): ApiKind) -> Answer<Api> {
    let href = format!("/api/{}", kind.api);
    let version = ApiVersion { server_version: "", collections: None, ..version(&kind) };
    Answer(Api { id: kind.api.clone(), kind: "API", href, versions: vec![version] })
}

/// Returns a version of a kind's API with its collections.
#[utoipa::path(get, path = "/api/{api}/v1", tag = "API", params(ApiPath), security(()),
    responses((status = 200, body = ApiVersion, description = "API version"), Error))]
pub(crate) async fn version_get(ApiKind(kind): ApiKind) -> Answer<ApiVersion> {
    Answer(version(&kind))
}

fn version(kind: &Kind) -> ApiVersion {
    let offers = &kind.offers;
    let collections = [
        (kind.plural.as_str(), format!("{}List", kind.words.object), true),
        ("service_accounts", "ServiceAccountList".to_owned(), offers.service_accounts),
        ("cloud_providers", "CloudProviderList".to_owned(), true),
        ("clusters", "EnterpriseClusterList".to_owned(), offers.enterprise_clusters),
    ];
    let href = format!("/api/{}/v1", kind.api);
    let offered = collections.into_iter().filter(|(_, _, is_offered)| *is_offered);
    let collections = offered.map(|(id, kind, _)| Collection {
        id: id.to_owned(),
        href: format!("{href}/{id}"),
        kind,
    });
    let collections = Some(collections.collect());
    let server_version = env!("CARGO_PKG_VERSION");
    ApiVersion { id: "v1", kind: "APIVersion", href, server_version, collections }
}

/// Capacity status of a kind.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServiceStatus {
    /// Whether every region is full.
    max_capacity_reached: bool,
}

/// Returns whether capacity for instances is available, by the plural name of the kind.
#[utoipa::path(get, path = "/api/{api}/v1/status", tag = "places", params(ApiPath),
    responses((status = 200, body = BTreeMap<String, ServiceStatus>, description = "Status by plural name"), Error))]
pub(crate) async fn status_get(
    Call(app, tenant): Call<Tenant>,
) -> Result<Answer<BTreeMap<String, ServiceStatus>>, Error> {
    let kind = &tenant.kind;
    tenant.must_offer(kind.offers.status, "status")?;
    let max_capacity_reached = is_full(&mut app.db.read().await?, kind).await?;
    Ok(Answer(BTreeMap::from([(kind.plural.clone(), ServiceStatus { max_capacity_reached })])))
}

async fn is_full(read: &mut Read, kind: &Kind) -> Result<bool, Error> {
    for cloud in &kind.clouds {
        for region in &cloud.regions {
            for instance_type in types_in_region(kind, region) {
                if !fitting_sizes(read, kind, &cloud.name, region, instance_type).await?.is_empty()
                {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}
