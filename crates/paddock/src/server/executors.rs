//! Who carries out resources of environments, as far as they are set up.

use std::sync::Arc;

use adapters::calls::Calls;
use adapters::consul::{self, Consul};
use adapters::guard::Guarded;
use adapters::probe::HttpProbe;
use adapters::terraform::{self, Modules, Runner};
use adapters::vault::{self, Secrets};
use adapters::web;
use anyhow::Context;
use base::{Entropy as _, OsEntropy, Stop, task};
use engine::executor::{Commands, Deployments, Services};
use engine::resource::{Executors, missing};
use engine::rules::Rules;
use model::template::Executor;
use port::{Probe, Watched};
use store::Db;

use super::outside::guard;
use crate::settings::Settings;

/// One executor, and what it carries out.
type Set = (Executor, Arc<dyn port::Operation>);

/// Those who are set up.
pub(super) struct Built {
    pub(super) all: Vec<Set>,
    pub(super) probe: Arc<dyn Probe>,
}

impl Built {
    /// Which there are, and for the others the setting that they need.
    pub(super) fn known(&self) -> Vec<(Executor, Option<String>)> {
        let is_there = |of: Executor| self.all.iter().any(|(name, _)| *name == of);
        Executor::ALL.iter().map(|&of| (of, (!is_there(of)).then(|| missing(of)))).collect()
    }
}

/// Puts them together.
pub(super) fn build(
    settings: &Settings,
    db: &Db,
    rules: &Rules,
    watched: &mut Vec<Arc<dyn Watched>>,
    stop: &Stop,
) -> anyhow::Result<Built> {
    let deployments = || Deployments::new(db.clone(), settings.limits);
    let reach = web::Options { allow_private: settings.outside.allow_private };
    let calls = Arc::new(Calls::new(reach)?);
    let mut all: Vec<Set> = vec![
        (Executor::Deployment, Arc::new(deployments())),
        (Executor::Service, Arc::new(Services::new(db.clone(), rules.clone()))),
        (Executor::Command, Arc::new(Commands::new(deployments(), Some(calls)))),
    ];
    all.extend(terraform(settings));
    all.extend(consul(settings, watched)?);
    all.extend(vault(settings, db, watched, stop)?);
    let probe = HttpProbe::new(reach)?;
    Ok(Built { all, probe: Arc::new(probe) })
}

/// All of them, as workers ask for them.
pub(super) fn asked_by(
    built: &Built,
    settings: &Settings,
    seal: Arc<dyn port::Seal>,
    server: String,
) -> Executors {
    let observe_every = settings.outside.observe_every;
    Executors { all: built.all.clone(), seal, server, observe_every }
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
    stop: &Stop,
) -> anyhow::Result<Option<Set>> {
    let Some(set) = &settings.outside.vault else { return Ok(None) };
    let fill = Arc::new(|buffer: &mut [u8]| OsEntropy.fill(buffer));
    let (db, namespace) = (db.clone(), set.namespace.clone());
    let options = vault::Options::new(&set.addr, set.sign_in.clone());
    let options = vault::Options { namespace, ..options };
    let secrets = Secrets::new(options, fill, Arc::new(move || db.now()));
    let secrets = secrets.context("--vault-addr")?;
    let (renewal, mut stop) = (secrets.renewal(), stop.clone());
    task::spawn("Vault's token", async move {
        tokio::select! {
            () = renewal.run() => {}
            () = stop.told() => {}
        }
    });
    let secrets = Guarded::new(secrets, guard("Vault's secrets", watched));
    Ok(Some((Executor::VaultSecret, Arc::new(secrets))))
}
