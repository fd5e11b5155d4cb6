//! The kinds of service that the server has, and where the API of each is.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Number;

use super::super::call::Call;
use super::super::error::Error;
use super::super::http::{Answer, Api};

/// The part of a kind that the client shows or needs.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Service {
    pub(crate) name: String,
    /// Its own API, as [`Call::to`] takes it.
    pub(crate) api: String,
    #[serde(default)]
    pub(super) display_name: String,
    #[serde(default)]
    pub(super) plans: Vec<Plan>,
    #[serde(default)]
    pub(super) trial: Option<String>,
    #[serde(default)]
    pub(super) regions: Vec<Region>,
    #[serde(default)]
    pub(super) versions: Vec<String>,
}

/// The part of a plan that the client shows.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Plan {
    #[serde(rename = "plan")]
    pub(super) name: String,
    #[serde(default)]
    pub(super) billing_models: Vec<String>,
    #[serde(default)]
    pub(super) resources: BTreeMap<String, Number>,
    #[serde(default)]
    pub(super) units: u64,
    #[serde(default)]
    pub(super) lifespan_seconds: Option<u64>,
}

/// The part of a region that the client shows.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Region {
    pub(super) cloud_provider: String,
    #[serde(rename = "region")]
    pub(super) name: String,
    #[serde(default)]
    pub(super) is_default: bool,
    #[serde(default)]
    pub(super) instance_types: Vec<String>,
}

#[derive(Deserialize)]
struct Catalog {
    items: Vec<Service>,
}

/// What the API of a kind has.
#[derive(Deserialize)]
struct Version {
    collections: Vec<Collection>,
}

#[derive(Deserialize)]
struct Collection {
    id: String,
}

/// All kinds, as the server tells them.
pub(super) async fn answer(api: &Api) -> Result<Answer, Error> {
    api.send(&Call::get(&["kinds"])).await
}

/// Reads an answer with all kinds.
pub(super) fn read(api: &Api, answer: &Answer) -> Result<Vec<Service>, Error> {
    Ok(api.read::<Catalog>(answer)?.items)
}

/// All kinds.
pub(crate) async fn all(api: &Api) -> Result<Vec<Service>, Error> {
    read(api, &answer(api).await?)
}

/// The kind of that name.
pub(crate) async fn find(api: &Api, name: &str) -> Result<Service, Error> {
    choose(all(api).await?, name)
}

/// Those of that name, or all when none is named.
pub(crate) async fn some(api: &Api, name: Option<&str>) -> Result<Vec<Service>, Error> {
    match name {
        Some(name) => Ok(vec![find(api, name).await?]),
        None => all(api).await,
    }
}

fn choose(all: Vec<Service>, name: &str) -> Result<Service, Error> {
    let names: Vec<String> = all.iter().map(|one| one.name.clone()).collect();
    all.into_iter().find(|one| one.name == name).ok_or_else(|| {
        Error::failed_but(
            format!("there is no kind of service {name:?}; there are: {}", names.join(", ")),
            r#""paddock service kinds" shows what they are"#,
        )
    })
}

impl Service {
    /// The names of the collections that its API has.
    async fn collections(&self, api: &Api) -> Result<Vec<String>, Error> {
        let answer = api.send(&Call::get(&[]).to(&self.api).open()).await?;
        let version: Version = api.read(&answer)?;
        Ok(version.collections.into_iter().map(|one| one.id).collect())
    }

    /// What its API calls many of it; that collection is the first.
    pub(crate) async fn plural(&self, api: &Api) -> Result<String, Error> {
        let collections = self.collections(api).await?;
        collections.into_iter().next().ok_or_else(|| api.foreign())
    }

    /// Whether its API has a collection.
    pub(crate) async fn has(&self, api: &Api, collection: &str) -> Result<bool, Error> {
        Ok(self.collections(api).await?.iter().any(|one| one == collection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_is_not_there_is_told_with_those_that_are() {
        let all: Vec<Service> = serde_json::from_str(
            r#"[{"name":"hippo","api":"hippos_mgmt"},{"name":"rhino","api":"rhinos_mgmt"}]"#,
        )
        .unwrap();
        assert_eq!(choose(all.clone(), "rhino").unwrap().api, "rhinos_mgmt");
        let error = choose(all, "rihno").unwrap_err();
        assert_eq!(error.what(), "there is no kind of service \"rihno\"; there are: hippo, rhino");
    }
}
