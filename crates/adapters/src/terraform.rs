//! Clusters and resources that Terraform (or OpenTofu) modules create.
//!
//! [`Runner`] and [`Workspace`] run modules. [`TerraformExecutor`] is the executor of resources, with modules
//! from templates; [`TerraformProvider`] is the provider of clusters, with the server's own modules and the
//! same background runs. Secrets are in files that only the server may read, never on a command
//! line or in messages.

mod adoption;
mod cleanup;
mod cluster;
mod diagnostic;
mod dialect;
mod events;
mod files;
mod folder;
mod inputs;
mod log;
mod module;
mod modules;
mod options;
mod plan;
mod process;
mod providers;
mod redact;
mod run;
mod runs;
mod state;
mod steps;
mod task;
mod workspace;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use model::resource::Difference;
use model::{Invalid, ReplicaId, Secret};
use port::{Access, Fault, Files, Observed, Operation, Outcome, PortFuture, Progress, Task};
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

pub use inputs::{Inputs, Outputs};
pub use modules::TerraformExecutor;
pub use options::Options;
pub use workspace::Workspace;

use cleanup::Cleanup;
use cluster::ACCESS;
use dialect::Dialect;
use modules::{Goal, RunResult, change_id};

/// Runs modules.
#[derive(Debug, Clone)]
pub struct Runner {
    options: Arc<Options>,
    /// The command-line dialect of the program, once determined.
    dialect: Arc<OnceCell<Dialect>>,
}

impl Runner {
    /// Starts and creates nothing yet.
    pub fn new(mut options: Options) -> Self {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // The working directory of runs differs. A bare name is searched in the path.
        if options.program.components().count() > 1 {
            options.program = absolute(&options.program);
        }
        options.module_dir = absolute(&options.module_dir);
        options.work_dir = absolute(&options.work_dir);
        Self { options: Arc::new(options), dialect: Arc::default() }
    }

    /// The workspace of a module for one key, which must be a DNS label.
    pub fn workspace(&self, key: &str, inputs: Inputs) -> Result<Workspace, Fault> {
        Workspace::new(self, key, inputs)
    }
}

/// The provider of clusters from modules in the server's module folder.
pub struct TerraformProvider {
    modules: TerraformExecutor,
    /// Installs the agent if a module returns a kubeconfig.
    kubernetes: Arc<dyn Operation>,
    cleanup: Cleanup,
}

impl TerraformProvider {
    /// Starts nothing yet.
    pub fn new(runner: Runner, kubernetes: Arc<dyn Operation>) -> Self {
        Self { modules: TerraformExecutor::new(runner), kubernetes, cleanup: Cleanup::default() }
    }

    fn workspace(&self, task: &Task, access: Option<&Secret>) -> Result<Workspace, Fault> {
        let (runner, key) = (&self.modules.runner, task.id.to_string());
        let workspace = runner.workspace(&key, cluster::inputs(task)?)?;
        let Some(access) = access else { return Ok(workspace) };
        let mut inputs = workspace.inputs.as_ref().clone();
        cluster::add_access(&mut inputs, access, |name| workspace.declares(name));
        runner.workspace(&key, inputs)
    }

    /// The workspace with the access that the agent last got.
    fn last_workspace(&self, task: &Task) -> Result<Workspace, Fault> {
        self.workspace(task, task.persisted.get(ACCESS))
    }

    fn plan_once(&self, task: &Task) -> Result<Progress<Vec<Difference>>, Fault> {
        let workspace = self.last_workspace(task)?;
        let (work, goal) = (workspace.clone(), Goal::Plan(change_id(task, &workspace)));
        let work = async move { work.diff().await.map(RunResult::Differences) };
        match self.modules.drive(task, &workspace, goal, work)? {
            Some(RunResult::Differences(differences)) => Ok(Progress::Done(differences)),
            _ => Ok(self.modules.running(task, &workspace)),
        }
    }

    fn apply_in(&self, task: &Task, workspace: &Workspace) -> Result<Progress<Outcome>, Fault> {
        let (work, goal) = (workspace.clone(), Goal::Apply(change_id(task, workspace)));
        let work = async move { work.apply().await.map(RunResult::Outputs) };
        match self.modules.drive(task, workspace, goal, work)? {
            Some(RunResult::Outputs(outputs)) => Ok(Progress::Done(cluster::outcome(&outputs))),
            _ => Ok(self.modules.running(task, workspace)),
        }
    }

    fn observe_once(&self, task: &Task) -> Result<Progress<Observed>, Fault> {
        let workspace = self.last_workspace(task)?;
        let outputs = match self.modules.take_applied(task, &workspace)? {
            Some(RunResult::Outputs(outputs)) => Some(outputs),
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
        if !cluster::add_access(&mut inputs, &access, |name| plain.declares(name)) {
            // The module or an operator starts the agent: the cluster only has to exist.
            return match self.observe_once(task)? {
                Progress::Done(Observed { outcome: None, .. }) => self.apply_in(task, &plain),
                other => Ok(other.map(|observed| observed.outcome.unwrap_or_default())),
            };
        }
        let workspace = self.modules.runner.workspace(&task.id.to_string(), inputs)?;
        let progress = self.apply_in(task, &workspace)?;
        if let Progress::Done(_) = &progress {
            folder::write(&workspace.at(ACCESS), access.reveal())
                .map_err(|error| workspace.unwritable(&error))?;
        }
        Ok(progress)
    }

    async fn destroy_once(&self, task: &Task) -> Result<Progress<()>, Fault> {
        let workspace = self.last_workspace(task)?;
        if let Some(progress) = self.modules.interrupt_other(task) {
            return Ok(progress);
        }
        let is_idle = self.modules.is_idle(task) && !workspace.is_busy();
        if is_idle
            && workspace.may_hold_resources()
            && let Some(kubeconfig) = cluster::kubeconfig(task, &workspace)
        {
            let inside = cluster::as_kubernetes(task, kubeconfig);
            if let Some(wait) = self.cleanup.wait(&*self.kubernetes, &inside).await {
                return Ok(Progress::running(wait));
            }
        }
        let progress = self.modules.destroy_in(task, &workspace, || Ok(workspace.clone()))?;
        if progress == Progress::Done(()) {
            self.cleanup.evict(task.id);
        }
        Ok(progress)
    }
}

impl Operation for TerraformProvider {
    fn validate(&self, with: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
        cluster::settings(with).map(drop)
    }

    fn plan<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>> {
        Box::pin(async move { self.plan_once(task) })
    }

    fn apply<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Outcome>> {
        Box::pin(async move { self.apply_in(task, &self.last_workspace(task)?) })
    }

    fn observe<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Observed>> {
        Box::pin(async move { self.observe_once(task) })
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<()>> {
        Box::pin(self.destroy_once(task))
    }

    fn prepare<'a>(
        &'a self,
        task: &'a Task,
        agent: &'a Access,
    ) -> PortFuture<'a, Progress<Outcome>> {
        Box::pin(self.prepare_once(task, agent))
    }

    fn admit_instances<'a>(
        &'a self,
        task: &'a Task,
        namespaces: &'a BTreeMap<String, ReplicaId>,
    ) -> PortFuture<'a, ()> {
        Box::pin(async move {
            match cluster::kubeconfig(task, &self.workspace(task, None)?) {
                Some(kubeconfig) => {
                    let inside = cluster::as_kubernetes(task, kubeconfig);
                    self.kubernetes.admit_instances(&inside, namespaces).await
                }
                // The person who starts the agent grants its rights.
                None => Ok(()),
            }
        })
    }

    fn cancel<'a>(&'a self, task: &'a Task) -> PortFuture<'a, bool> {
        Box::pin(async move { self.modules.cancel_in(task, &self.last_workspace(task)?) })
    }

    fn persist<'a>(&'a self, task: &'a Task) -> PortFuture<'a, BTreeMap<String, Secret>> {
        Box::pin(async move { Ok(cluster::to_persist(task, &self.workspace(task, None)?)) })
    }

    fn changed<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, ()> {
        self.modules.changed(task)
    }
}
