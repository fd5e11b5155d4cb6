//! Executors of resources in external systems, from the settings.

use std::sync::Arc;

use adapters::calls::Calls;
use adapters::consul::{self, Consul};
use adapters::guard::Guarded;
use adapters::probe::HttpProbe;
use adapters::terraform::{self, Modules, Runner};
use adapters::vault::{self, Secrets};
use adapters::web;
use anyhow::Context;
use base::{Entropy as _, OsEntropy, task};
use model::template::Executor;
use port::{Probe, Watched};
use store::Db;

use super::outside::guard;
use crate::settings::Settings;

/// One executor, and what it carries out.
type Set = (Executor, Arc<dyn port::Operation>);

/// Executors in external systems, as far as they are set up.
pub(super) struct Built {
    pub(super) external: Vec<Set>,
    pub(super) calls: Arc<dyn port::Operation>,
    pub(super) probe: Arc<dyn Probe>,
}

/// The setting that an executor lacks on this server.
pub(super) fn missing(executor: Executor) -> String {
    let setting = match executor {
        Executor::Terraform => "install terraform or tofu, or set --terraform-program",
        Executor::ConsulKv => "set --consul-addr",
        Executor::VaultSecret => "set --vault-addr and --vault-token",
        Executor::Service | Executor::Deployment | Executor::Command => "no setting is needed",
    };
    format!("Executor {executor} is not configured: {setting}, then restart the server.")
}

/// Builds them; those with a guard are added to `watched`.
pub(super) fn build(
    settings: &Settings,
    db: &Db,
    watched: &mut Vec<Arc<dyn Watched>>,
) -> anyhow::Result<Built> {
    let reach = web::Options { allow_private: settings.outside.allow_private };
    let (calls, probe) = (Arc::new(Calls::new(reach)?), Arc::new(HttpProbe::new(reach)?));
    let mut external: Vec<Set> = Vec::new();
    external.extend(terraform(settings));
    external.extend(consul(settings, watched)?);
    external.extend(vault(settings, db, watched)?);
    Ok(Built { external, calls, probe })
}

fn terraform(settings: &Settings) -> Option<Set> {
    let set = &settings.outside.terraform;
    let work = set.work.clone().unwrap_or_else(|| settings.data_dir.join("terraform"));
    let mut options =
        terraform::Options::without_modules(set.program.as_ref()?, work.join("templates"));
    options.pass.clone_from(&set.pass);
    Some((Executor::Terraform, Arc::new(Modules::new(Runner::new(options)))))
}

fn consul(settings: &Settings, watched: &mut Vec<Arc<dyn Watched>>) -> anyhow::Result<Option<Set>> {
    let Some(set) = &settings.outside.consul else { return Ok(None) };
    let (token, datacenter) = (set.token.clone(), set.datacenter.clone());
    let options = consul::Options { token, datacenter, ..consul::Options::new(&set.addr) };
    let consul = Consul::new(options).context("--consul-addr")?;
    let consul = Guarded::new(consul, guard("Consul", watched));
    Ok(Some((Executor::ConsulKv, Arc::new(consul))))
}

fn vault(
    settings: &Settings,
    db: &Db,
    watched: &mut Vec<Arc<dyn Watched>>,
) -> anyhow::Result<Option<Set>> {
    let Some(set) = &settings.outside.vault else { return Ok(None) };
    let fill = Arc::new(|buffer: &mut [u8]| OsEntropy.fill(buffer));
    let (db, namespace) = (db.clone(), set.namespace.clone());
    let options = vault::Options::new(&set.addr, set.sign_in.clone());
    let options = vault::Options { namespace, ..options };
    let secrets = Secrets::new(options, fill, Arc::new(move || db.now()));
    let secrets = secrets.context("--vault-addr")?;
    // It ends with the process: a token that is not renewed expires by itself.
    task::spawn("Vault token renewal", secrets.renewal().run());
    let secrets = Guarded::new(secrets, guard("Vault's secrets", watched));
    Ok(Some((Executor::VaultSecret, Arc::new(secrets))))
}
