//! Service kinds of the server and their APIs.

use serde::Deserialize;
use wire::kind::{Kind, Kinds};

use super::super::call::Call;
use super::super::error::Error;
use super::super::http::{Api, ApiResponse};

/// Version document of a kind's API.
#[derive(Deserialize)]
struct Version {
    collections: Vec<Collection>,
}

#[derive(Deserialize)]
struct Collection {
    id: String,
}

/// Response with all kinds.
pub(super) async fn fetch(api: &Api) -> Result<ApiResponse, Error> {
    api.send(&Call::get(&["kinds"])).await
}

/// Kinds in a response.
pub(super) fn read(api: &Api, response: &ApiResponse) -> Result<Vec<Kind>, Error> {
    Ok(api.read::<Kinds>(response)?.items)
}

/// All kinds.
pub(crate) async fn all(api: &Api) -> Result<Vec<Kind>, Error> {
    read(api, &fetch(api).await?)
}

/// Finds a kind by name.
pub(crate) async fn find(api: &Api, name: &str) -> Result<Kind, Error> {
    choose(all(api).await?, name)
}

/// The named kind, or all kinds.
pub(crate) async fn find_or_all(api: &Api, name: Option<&str>) -> Result<Vec<Kind>, Error> {
    match name {
        Some(name) => Ok(vec![find(api, name).await?]),
        None => all(api).await,
    }
}

fn choose(all: Vec<Kind>, name: &str) -> Result<Kind, Error> {
    let names: Vec<String> = all.iter().map(|kind| kind.name.clone()).collect();
    all.into_iter().find(|kind| kind.name == name).ok_or_else(|| {
        Error::failed_with_hint(
            format!("service kind {name:?} not found; available: {}", names.join(", ")),
            r#"run "paddock service kinds" for details"#,
        )
    })
}

/// Collections of a kind's API.
async fn collections(api: &Api, kind: &Kind) -> Result<Vec<String>, Error> {
    let response = api.send(&Call::get(&[]).to(&kind.api).without_token()).await?;
    let version: Version = api.read(&response)?;
    Ok(version.collections.into_iter().map(|collection| collection.id).collect())
}

/// Plural of a kind, which is its API's first collection.
pub(crate) async fn plural(api: &Api, kind: &Kind) -> Result<String, Error> {
    let collections = collections(api, kind).await?;
    collections.into_iter().next().ok_or_else(|| api.invalid_response())
}

/// Whether a kind's API has a collection.
pub(crate) async fn has(api: &Api, kind: &Kind, collection: &str) -> Result<bool, Error> {
    Ok(collections(api, kind).await?.iter().any(|id| id == collection))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_kind_is_reported_with_available_kinds() {
        let kind = |name: &str| Kind {
            name: name.into(),
            display_name: String::new(),
            api: format!("{name}s_mgmt"),
            plans: vec![],
            trial: None,
            regions: vec![],
            versions: vec![],
        };
        let all = vec![kind("hippo"), kind("rhino")];
        assert_eq!(choose(all.clone(), "rhino").unwrap().api, "rhinos_mgmt");
        let error = choose(all, "rihno").unwrap_err();
        assert_eq!(error.message(), "service kind \"rihno\" not found; available: hippo, rhino");
    }
}
