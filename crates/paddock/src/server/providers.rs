//! Builds the configured cluster providers.

use std::path::Path;
use std::sync::Arc;

use adapters::kubernetes::Kubernetes;
use adapters::terraform;
use base::{OsEntropy, Resolver, entropy};
use engine::cluster::Providers;
use model::cluster::Provider;
use port::Encryption;

use crate::settings::Settings;

/// Returns `None` if the image or the server URL of installed agents is not configured.
pub(super) fn build(
    settings: &Settings,
    seal: Arc<dyn Encryption>,
    holder: String,
) -> Option<Providers> {
    let agents = settings.external.agents.as_ref()?;
    let resolver = Resolver::new(settings.external.addresses.clone());
    let noise = || entropy::random_u64(&OsEntropy);
    let kubernetes: Arc<dyn port::Operation> =
        Arc::new(Kubernetes::new(Kubernetes::options(), noise, resolver));
    let mut all = vec![(Provider::Kubernetes, kubernetes.clone())];
    let set = &settings.external.terraform;
    if let Some(modules) = &set.modules {
        let work = set.work.clone().unwrap_or_else(|| settings.data_dir.join("terraform"));
        let program = set.program.as_deref().unwrap_or(Path::new("terraform"));
        let mut options = terraform::Options::new(program, modules, work);
        options.inherited_env.clone_from(&set.pass);
        let terraform =
            terraform::TerraformProvider::new(terraform::Runner::new(options), kubernetes);
        all.push((Provider::Terraform, Arc::new(terraform)));
    }
    let (server, image) = (agents.server.clone(), agents.image.clone());
    Some(Providers { all, seal, server, image, holder })
}
