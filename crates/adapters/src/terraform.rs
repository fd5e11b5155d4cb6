//! Clusters that a Terraform module makes, and Terraform (or OpenTofu) as a process for whoever needs it.
//!
//! [`Runner`] and [`Workspace`] know nothing of clusters. [`Modules`] operates on resources, with modules
//! that come with templates; [`Terraform`] on clusters, with the server's own modules and the same runs in
//! the background. Secrets are in files that only the server may read, never on a
//! command line, and never in what it says.

mod adopting;
mod cluster;
mod dialect;
mod draft;
mod files;
mod folder;
mod hidden;
mod inputs;
mod leaving;
mod module;
mod modules;
mod options;
mod process;
mod providers;
mod run;
mod runs;
mod said;
mod state;
mod steps;
mod stream;
mod task;
mod words;
mod workspace;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use model::resource::Difference;
use model::{Invalid, Secret};
use port::{Access, Answer, Fault, Files, Observed, Operation, Outcome, Progress, Task};
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

pub use inputs::{Inputs, Outputs};
pub use modules::Modules;
pub use options::Options;
pub use workspace::Workspace;

use cluster::ACCESS;
use dialect::Dialect;
use leaving::Leaving;
use modules::{Aim, Ran, print};

/// Runs modules.
#[derive(Debug, Clone)]
pub struct Runner {
    options: Arc<Options>,
    /// How the program is spoken to, once it was asked.
    dialect: Arc<OnceCell<Dialect>>,
}

impl Runner {
    /// Nothing is started or made yet.
    pub fn new(mut options: Options) -> Self {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // It runs elsewhere. A bare name is looked for on the path.
        if options.program.components().count() > 1 {
            options.program = absolute(&options.program);
        }
        options.modules = absolute(&options.modules);
        options.work = absolute(&options.work);
        Self { options: Arc::new(options), dialect: Arc::default() }
    }

    /// Where a module runs for one key, which is a name like one of the domain name system's.
    pub fn workspace(&self, key: &str, inputs: Inputs) -> Result<Workspace, Fault> {
        Workspace::new(self, key, inputs)
    }
}

/// Creates clusters with modules of the server's folder of modules.
pub struct Terraform {
    modules: Modules,
    /// Installs the agent where a module gives a kubeconfig.
    kubernetes: Arc<dyn Operation>,
    leaving: Leaving,
}

impl Terraform {
    /// Nothing is started yet.
    pub fn new(runner: Runner, kubernetes: Arc<dyn Operation>) -> Self {
        Self { modules: Modules::new(runner), kubernetes, leaving: Leaving::default() }
    }

    fn workspace(&self, task: &Task, access: Option<&Secret>) -> Result<Workspace, Fault> {
        let (runner, key) = (&self.modules.runner, task.id.to_string());
        let workspace = runner.workspace(&key, cluster::inputs(task)?)?;
        let Some(access) = access else { return Ok(workspace) };
        let mut inputs = workspace.inputs.as_ref().clone();
        cluster::tell(&mut inputs, access, |name| workspace.declares(name));
        runner.workspace(&key, inputs)
    }

    /// With what its agent was told before.
    fn as_told(&self, task: &Task) -> Result<Workspace, Fault> {
        self.workspace(task, task.kept.get(ACCESS))
    }

    fn plan_once(&self, task: &Task) -> Result<Progress<Vec<Difference>>, Fault> {
        let workspace = self.as_told(task)?;
        let (work, aim) = (workspace.clone(), Aim::Plan(print(task, &workspace)));
        let work = async move { work.look().await.map(Ran::Differences) };
        match self.modules.pursue(task, &workspace, aim, work)? {
            Some(Ran::Differences(differences)) => Ok(Progress::Done(differences)),
            _ => Ok(self.modules.running(task, &workspace)),
        }
    }

    fn apply_in(&self, task: &Task, workspace: &Workspace) -> Result<Progress<Outcome>, Fault> {
        let (work, aim) = (workspace.clone(), Aim::Make(print(task, workspace)));
        let work = async move { work.apply().await.map(Ran::Outputs) };
        match self.modules.pursue(task, workspace, aim, work)? {
            Some(Ran::Outputs(outputs)) => Ok(Progress::Done(cluster::outcome(&outputs))),
            _ => Ok(self.modules.running(task, workspace)),
        }
    }

    fn observe_once(&self, task: &Task) -> Result<Progress<Observed>, Fault> {
        let workspace = self.as_told(task)?;
        let outputs = match self.modules.made(task, &workspace)? {
            Some(Ran::Outputs(outputs)) => Some(outputs),
            Some(_) => None,
            None => return Ok(self.modules.running(task, &workspace)),
        };
        let outputs = outputs.or_else(|| cluster::outputs(task, &workspace));
        let outcome = outputs.map(|outputs| cluster::outcome(&outputs));
        Ok(Progress::Done(Observed { outcome, ..Observed::default() }))
    }

    async fn prepare_once(&self, task: &Task, agent: &Access) -> Result<Progress<Outcome>, Fault> {
        let plain = self.workspace(task, None)?;
        if let Some(kubeconfig) = cluster::kubeconfig(task, &plain) {
            let ours = cluster::outputs(task, &plain).unwrap_or_default();
            let inside = cluster::as_kubernetes(task, kubeconfig);
            let progress = self.kubernetes.prepare(&inside, agent).await?;
            return Ok(progress.map(|mut theirs| {
                theirs.outputs.extend(cluster::outcome(&ours).outputs);
                theirs
            }));
        }
        let access = cluster::access(agent);
        let mut inputs = plain.inputs.as_ref().clone();
        if !cluster::tell(&mut inputs, &access, |name| plain.declares(name)) {
            // It starts its agent by itself, or somebody does: it only has to exist.
            return match self.observe_once(task)? {
                Progress::Done(Observed { outcome: None, .. }) => self.apply_in(task, &plain),
                other => Ok(other.map(|seen| seen.outcome.unwrap_or_default())),
            };
        }
        let told = self.modules.runner.workspace(&task.id.to_string(), inputs)?;
        let progress = self.apply_in(task, &told)?;
        if let Progress::Done(_) = &progress {
            folder::write(&told.at(ACCESS), access.reveal())
                .map_err(|error| told.unwritable(&error))?;
        }
        Ok(progress)
    }

    async fn destroy_once(&self, task: &Task) -> Result<Progress<()>, Fault> {
        let workspace = self.as_told(task)?;
        if let Some(ended) = self.modules.make_way(task) {
            return Ok(ended);
        }
        let may_clear = self.modules.is_idle(task) && !workspace.is_busy();
        if may_clear
            && workspace.holds_something()
            && let Some(kubeconfig) = cluster::kubeconfig(task, &workspace)
        {
            let inside = cluster::as_kubernetes(task, kubeconfig);
            if let Some(wait) = self.leaving.wait(&*self.kubernetes, &inside).await {
                return Ok(Progress::running(wait));
            }
        }
        let progress = self.modules.destroy_in(task, &workspace, || Ok(workspace.clone()))?;
        if progress == Progress::Done(()) {
            self.leaving.forget(task.id);
        }
        Ok(progress)
    }
}

impl Operation for Terraform {
    fn validate(&self, with: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
        cluster::settings(with).map(drop)
    }

    fn plan<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Vec<Difference>>> {
        Box::pin(async move { self.plan_once(task) })
    }

    fn apply<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Outcome>> {
        Box::pin(async move { self.apply_in(task, &self.as_told(task)?) })
    }

    fn observe<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Observed>> {
        Box::pin(async move { self.observe_once(task) })
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<()>> {
        Box::pin(self.destroy_once(task))
    }

    fn prepare<'a>(&'a self, task: &'a Task, agent: &'a Access) -> Answer<'a, Progress<Outcome>> {
        Box::pin(self.prepare_once(task, agent))
    }

    fn cancel<'a>(&'a self, task: &'a Task) -> Answer<'a, bool> {
        Box::pin(async move { self.modules.cancel_in(task, &self.as_told(task)?) })
    }

    fn keep<'a>(&'a self, task: &'a Task) -> Answer<'a, BTreeMap<String, Secret>> {
        Box::pin(async move { Ok(cluster::keep(task, &self.workspace(task, None)?)) })
    }

    fn changed<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, ()> {
        self.modules.changed(task)
    }
}
