//! The kinds of service that the server has, and where the API of each is.

use serde::Deserialize;
use wire::kind::{Kind, Kinds};

use super::super::call::Call;
use super::super::error::Error;
use super::super::http::{Answer, Api};

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
pub(super) fn read(api: &Api, answer: &Answer) -> Result<Vec<Kind>, Error> {
    Ok(api.read::<Kinds>(answer)?.items)
}

/// All kinds.
pub(crate) async fn all(api: &Api) -> Result<Vec<Kind>, Error> {
    read(api, &answer(api).await?)
}

/// The kind of that name.
pub(crate) async fn find(api: &Api, name: &str) -> Result<Kind, Error> {
    choose(all(api).await?, name)
}

/// Those of that name, or all when none is named.
pub(crate) async fn some(api: &Api, name: Option<&str>) -> Result<Vec<Kind>, Error> {
    match name {
        Some(name) => Ok(vec![find(api, name).await?]),
        None => all(api).await,
    }
}

fn choose(all: Vec<Kind>, name: &str) -> Result<Kind, Error> {
    let names: Vec<String> = all.iter().map(|one| one.name.clone()).collect();
    all.into_iter().find(|one| one.name == name).ok_or_else(|| {
        Error::failed_but(
            format!("there is no kind of service {name:?}; there are: {}", names.join(", ")),
            r#""paddock service kinds" shows what they are"#,
        )
    })
}

/// The names of the collections that the API of a kind has.
async fn collections(api: &Api, kind: &Kind) -> Result<Vec<String>, Error> {
    let answer = api.send(&Call::get(&[]).to(&kind.api).open()).await?;
    let version: Version = api.read(&answer)?;
    Ok(version.collections.into_iter().map(|one| one.id).collect())
}

/// What the API of a kind calls many of it; that collection is the first.
pub(crate) async fn plural(api: &Api, kind: &Kind) -> Result<String, Error> {
    let collections = collections(api, kind).await?;
    collections.into_iter().next().ok_or_else(|| api.foreign())
}

/// Whether the API of a kind has a collection.
pub(crate) async fn has(api: &Api, kind: &Kind, collection: &str) -> Result<bool, Error> {
    Ok(collections(api, kind).await?.iter().any(|one| one == collection))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_is_not_there_is_told_with_those_that_are() {
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
        assert_eq!(error.what(), "there is no kind of service \"rihno\"; there are: hippo, rhino");
    }
}
