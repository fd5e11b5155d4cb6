//! Builds executors for resources in external systems.

use std::sync::Arc;

use adapters::confined::{Confined, Place};
use adapters::consul::{self, Consul};
use adapters::guard::Guarded;
use adapters::http_calls::HttpCalls;
use adapters::own::Own;
use adapters::probe::HttpProbe;
use adapters::terraform::{self, Runner, TerraformExecutor};
use adapters::vault::{self, VaultSecrets};
use adapters::web;
use anyhow::Context;
use base::{Entropy as _, OsEntropy, task};
use engine::endpoints::LocalEndpoints;
use model::template::Executor;
use port::{Monitored, Probe};
use store::Db;

use super::external::guard;
use crate::settings::Settings;

/// An executor and its implementation.
type Set = (Executor, Arc<dyn port::Operation>);

/// Configured executors.
pub(super) struct Built {
    pub(super) external: Vec<Set>,
    pub(super) calls: Arc<dyn port::Operation>,
    pub(super) probe: Arc<dyn Probe>,
}

/// Error message for an executor that is not configured on this server.
pub(super) fn missing(executor: Executor) -> String {
    let setting = match executor {
        Executor::Terraform => "install terraform or tofu, or set --terraform-program",
        Executor::ConsulKv => "set --consul-addr",
        Executor::VaultSecret => "set --vault-addr and --vault-token",
        Executor::Service | Executor::Deployment | Executor::Command => "no setting is needed",
    };
    format!("Executor {executor} is not configured: {setting}, then restart the server.")
}

/// Builds the configured executors and adds their guards to `watched`.
pub(super) fn build(
    settings: &Settings,
    db: &Db,
    watched: &mut Vec<Arc<dyn Monitored>>,
) -> anyhow::Result<Built> {
    let web = web::Options {
        endpoints: Arc::new(LocalEndpoints::new(db.clone())),
        ..web::Options::new(settings.external.addresses.clone())
    };
    let (calls, probe) = (Arc::new(HttpCalls::new(web.clone())?), Arc::new(HttpProbe::new(web)?));
    let mut external: Vec<Set> = Vec::new();
    external.extend(terraform(settings));
    external.extend(consul(settings, watched)?);
    external.extend(vault(settings, db, watched)?);
    Ok(Built { external, calls, probe })
}

fn terraform(settings: &Settings) -> Option<Set> {
    let set = &settings.external.terraform;
    let work = set.work.clone().unwrap_or_else(|| settings.data_dir.join("terraform"));
    let mut options =
        terraform::Options::without_modules(set.program.as_ref()?, work.join("templates"));
    options.inherited_env.clone_from(&set.pass);
    Some((Executor::Terraform, Arc::new(TerraformExecutor::new(Runner::new(options)))))
}

fn consul(
    settings: &Settings,
    watched: &mut Vec<Arc<dyn Monitored>>,
) -> anyhow::Result<Option<Set>> {
    let Some(set) = &settings.external.consul else { return Ok(None) };
    let (token, datacenter) = (set.token.clone(), set.datacenter.clone());
    let options = consul::Options { token, datacenter, ..consul::Options::new(&set.addr) };
    let own = options.clone();
    let consul = Consul::new(options).context("--consul-addr")?;
    let consul = Guarded::new(consul, guard("Consul", watched));
    let place = Place { path: "prefix", within: "datacenter", setting: "--consul-prefix" };
    let consul = Confined::new(consul, place, set.prefix.clone());
    let consul = Own::new(
        consul,
        Box::new(move |token| {
            let consul =
                Consul::new(consul::Options { token: Some(token.clone()), ..own.clone() })?;
            Ok(Arc::new(Guarded::new(consul, guard("Consul", &mut Vec::new()))))
        }),
    );
    Ok(Some((Executor::ConsulKv, Arc::new(consul))))
}

fn vault(
    settings: &Settings,
    db: &Db,
    watched: &mut Vec<Arc<dyn Monitored>>,
) -> anyhow::Result<Option<Set>> {
    let Some(set) = &settings.external.vault else { return Ok(None) };
    let fill = Arc::new(|buffer: &mut [u8]| OsEntropy.fill(buffer));
    let (db, namespace) = (db.clone(), set.namespace.clone());
    let options = vault::Options::new(&set.addr, set.sign_in.clone());
    let options = vault::Options { namespace, ..options };
    let now: vault::Now = Arc::new(move || db.now());
    let own = (options.clone(), fill.clone(), now.clone());
    let secrets = VaultSecrets::new(options, fill, now);
    let secrets = secrets.context("--vault-addr")?;
    // Never stopped explicitly: the token expires when the process ends.
    task::spawn("Vault token renewal", secrets.renewal().run());
    let secrets = Guarded::new(secrets, guard("Vault's secrets", watched));
    let place = Place { path: "path", within: "mount", setting: "--vault-prefix" };
    let secrets = Confined::new(secrets, place, set.prefix.clone());
    let secrets = Own::new(
        secrets,
        Box::new(move |token| {
            let (options, fill, now) = own.clone();
            let auth = vault::Auth::Token(token.clone());
            let secrets = VaultSecrets::new(vault::Options { auth, ..options }, fill, now)?;
            Ok(Arc::new(Guarded::new(secrets, guard("Vault's secrets", &mut Vec::new()))))
        }),
    );
    Ok(Some((Executor::VaultSecret, Arc::new(secrets))))
}
