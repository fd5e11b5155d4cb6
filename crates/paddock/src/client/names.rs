//! Resolves ids to names for display.
//!
//! Best effort: an id that cannot be resolved is shown as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use model::{ClusterId, DeploymentId};

use super::call::Call;
use super::http::Api;
use super::subject::{CLUSTER, DEPLOYMENT, Kind, Subject};

/// Maximum lookups per command; further ids are not resolved.
const MAX_LOOK_UPS: usize = 20;

/// Names by id.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    /// Looks up the names of clusters and deployments.
    pub(crate) async fn look_up(
        api: &Api,
        clusters: impl IntoIterator<Item = ClusterId>,
        deployments: impl IntoIterator<Item = DeploymentId>,
    ) -> Self {
        let mut names = Self::default();
        names.add(api, &CLUSTER, clusters).await;
        names.add(api, &DEPLOYMENT, deployments).await;
        names
    }

    async fn add(
        &mut self,
        api: &Api,
        kind: &Kind<'_>,
        ids: impl IntoIterator<Item = impl Display>,
    ) {
        let ids: BTreeSet<String> = ids.into_iter().map(|id| id.to_string()).collect();
        for id in ids.into_iter().take(MAX_LOOK_UPS) {
            let response = api.send(&Call::get(&[kind.path, &id])).await;
            if let Ok(subject) = response.and_then(|response| api.read::<Subject>(&response)) {
                self.0.insert(id, subject.label().into());
            }
        }
    }

    /// Name for an id, or the id itself.
    pub(crate) fn get(&self, id: impl Display) -> String {
        let id = id.to_string();
        self.0.get(&id).cloned().unwrap_or(id)
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Names {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self(pairs.map(|(id, name)| (super::sample::id(id), name.to_owned())).into())
    }
}
