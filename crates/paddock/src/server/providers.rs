//! Who makes clusters, as far as they are set up.

use std::path::Path;
use std::sync::Arc;

use adapters::kubernetes::Kubernetes;
use adapters::terraform;
use base::{OsEntropy, entropy};
use engine::cluster::Providers;
use model::cluster::Provider;
use port::Seal;

use crate::settings::Settings;

/// Puts them together; nobody if agents would not know where this server is, or what they are.
pub(super) fn build(settings: &Settings, seal: Arc<dyn Seal>, holder: String) -> Option<Providers> {
    let agents = settings.outside.agents.as_ref()?;
    let kubernetes: Arc<dyn port::Operation> =
        Arc::new(Kubernetes::new(Kubernetes::options(), || entropy::noise(&OsEntropy)));
    let mut all = vec![(Provider::Kubernetes, kubernetes.clone())];
    let set = &settings.outside.terraform;
    if let Some(modules) = &set.modules {
        let work = set.work.clone().unwrap_or_else(|| settings.data_dir.join("terraform"));
        let program = set.program.as_deref().unwrap_or(Path::new("terraform"));
        let mut options = terraform::Options::new(program, modules, work);
        options.pass.clone_from(&set.pass);
        let terraform = terraform::Terraform::new(terraform::Runner::new(options), kubernetes);
        all.push((Provider::Terraform, Arc::new(terraform)));
    }
    let (server, image) = (agents.server.clone(), agents.image.clone());
    Some(Providers { all, seal, server, image, holder })
}
