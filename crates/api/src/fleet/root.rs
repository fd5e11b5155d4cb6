//! What a kind's API is: its versions and collections, and whether there is room.

use std::collections::BTreeMap;

use axum::Json as Answer;
use model::kind::Kind;
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

use super::Error;
use super::error::ApiPath;
use super::place::{fitting, of_region};
use super::tenant::{Of, Tenant};
use crate::caller::Call;

/// The API of a kind.
#[derive(Serialize, ToSchema)]
pub(crate) struct Api {
    /// Its name.
    id: String,
    /// Always `API`.
    kind: &'static str,
    /// Where it is.
    href: String,
    /// Its versions.
    versions: Vec<ApiVersion>,
}

/// A version of an API.
#[derive(Serialize, ToSchema)]
pub(crate) struct ApiVersion {
    /// Its name.
    id: &'static str,
    /// Always `APIVersion`.
    kind: &'static str,
    /// Where it is.
    href: String,
    /// The version of the server; empty in the list of versions.
    server_version: &'static str,
    /// What it has; nothing in the list of versions.
    collections: Option<Vec<Collection>>,
}

/// A collection of an API.
#[derive(Serialize, ToSchema)]
pub(crate) struct Collection {
    /// Its name.
    id: String,
    /// Where it is.
    href: String,
    /// What its list is called.
    kind: String,
}

/// What a kind's API is.
#[utoipa::path(get, path = "/api/{api}", tag = "API", params(ApiPath), security(()),
    responses((status = 200, body = Api, description = "The API"), Error))]
pub(crate) async fn api_get(Of(kind): Of) -> Answer<Api> {
    let href = format!("/api/{}", kind.api);
    let version = ApiVersion { server_version: "", collections: None, ..version(&kind) };
    Answer(Api { id: kind.api.clone(), kind: "API", href, versions: vec![version] })
}

/// What a kind's API has.
#[utoipa::path(get, path = "/api/{api}/v1", tag = "API", params(ApiPath), security(()),
    responses((status = 200, body = ApiVersion, description = "The version"), Error))]
pub(crate) async fn version_get(Of(kind): Of) -> Answer<ApiVersion> {
    Answer(version(&kind))
}

fn version(kind: &Kind) -> ApiVersion {
    let offers = &kind.offers;
    let all = [
        (kind.plural.as_str(), format!("{}List", kind.words.object), true),
        ("service_accounts", "ServiceAccountList".to_owned(), offers.service_accounts),
        ("cloud_providers", "CloudProviderList".to_owned(), true),
        ("clusters", "EnterpriseClusterList".to_owned(), offers.enterprise_clusters),
    ];
    let href = format!("/api/{}/v1", kind.api);
    let offered = all.into_iter().filter(|(_, _, is_offered)| *is_offered);
    let collections = offered.map(|(id, kind, _)| Collection {
        id: id.to_owned(),
        href: format!("{href}/{id}"),
        kind,
    });
    let collections = Some(collections.collect());
    let server_version = env!("CARGO_PKG_VERSION");
    ApiVersion { id: "v1", kind: "APIVersion", href, server_version, collections }
}

/// Is there room?
#[derive(Serialize, ToSchema)]
pub(crate) struct Room {
    /// Is every region full?
    max_capacity_reached: bool,
}

/// Tells whether there is room for instances, by the kind's name for many.
#[utoipa::path(get, path = "/api/{api}/v1/status", tag = "places", params(ApiPath),
    responses((status = 200, body = BTreeMap<String, Room>, description = "By the name for many"), Error))]
pub(crate) async fn status_get(
    Call(app, tenant): Call<Tenant>,
) -> Result<Answer<BTreeMap<String, Room>>, Error> {
    let kind = &tenant.kind;
    tenant.must_offer(kind.offers.status, "status")?;
    let max_capacity_reached = is_full(&mut app.db.read().await?, kind).await?;
    Ok(Answer(BTreeMap::from([(kind.plural.clone(), Room { max_capacity_reached })])))
}

async fn is_full(read: &mut Read, kind: &Kind) -> Result<bool, Error> {
    for cloud in &kind.clouds {
        for region in &cloud.regions {
            for instance_type in of_region(kind, region) {
                if !fitting(read, kind, &cloud.name, region, instance_type).await?.is_empty() {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}
