//! Who makes clusters, as far as they are set up.

use std::sync::Arc;

use adapters::kubernetes::Kubernetes;
use engine::cluster::Providers;
use engine::port::{self, Seal};
use model::cluster::Provider;
use store::{OsEntropy, entropy};

use crate::settings::Settings;

/// Puts them together; nobody if agents would not know where this server is, or what they are.
pub(super) fn build(settings: &Settings, seal: Arc<dyn Seal>) -> anyhow::Result<Option<Providers>> {
    let Some(agents) = &settings.outside.agents else { return Ok(None) };
    let kubernetes: Arc<dyn port::Provider> =
        Arc::new(Kubernetes::new(Kubernetes::options(), || entropy::noise(&OsEntropy)));
    let all = vec![(Provider::Kubernetes, kubernetes)];
    Ok(Some(Providers { all, seal, server: agents.server.clone(), image: agents.image.clone() }))
}
