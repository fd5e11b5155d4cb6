//! Names for ids that the server answers with: people know things by name.
//!
//! A name is a courtesy. Whatever can't be looked up is shown by its id, and nothing fails.

use std::collections::{BTreeMap, BTreeSet};

use super::call::Call;
use super::http::Api;
use super::subject::{CLUSTER, DEPLOYMENT, Kind, Subject};

/// The most that is looked up for one answer; the rest is shown by its id.
const MAX_LOOK_UPS: usize = 20;

/// What is called how.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    /// Looks up the names of clusters and deployments.
    pub(crate) async fn look_up<'a>(
        api: &Api,
        clusters: impl IntoIterator<Item = &'a str>,
        deployments: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut names = Self::default();
        names.add(api, &CLUSTER, clusters).await;
        names.add(api, &DEPLOYMENT, deployments).await;
        names
    }

    async fn add<'a>(
        &mut self,
        api: &Api,
        kind: &Kind<'_>,
        ids: impl IntoIterator<Item = &'a str>,
    ) {
        let ids: BTreeSet<&str> = ids.into_iter().collect();
        for id in ids.into_iter().take(MAX_LOOK_UPS) {
            let answer = api.send(&Call::get(&[kind.path, id])).await;
            if let Ok(subject) = answer.and_then(|answer| api.read::<Subject>(&answer)) {
                self.0.insert(id.into(), subject.label().into());
            }
        }
    }

    /// The name of what has this id, or the id.
    pub(crate) fn of<'a>(&'a self, id: &'a str) -> &'a str {
        self.0.get(id).map_or(id, String::as_str)
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Names {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self(pairs.map(|(id, name)| (id.to_owned(), name.to_owned())).into())
    }
}
