//! Clusters that a Terraform module makes, and Terraform (or OpenTofu) as a process for whoever needs it.
//!
//! [`Runner`] and [`Workspace`] know nothing of clusters. [`Terraform`] is the provider of clusters over
//! them, [`Modules`] the executor of modules that come with templates. What takes long goes on in the
//! background. Secrets are in files that only the server may read, never on a
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

use model::Secret;
use model::cluster::STATE;
use port::{Access, Answer, Fault, Made, Order, Progress, Provider};
use tokio::sync::OnceCell;

pub use inputs::{Change, Inputs, Outputs};
pub use modules::Modules;
pub use options::Options;
pub use workspace::Workspace;

use cluster::{ACCESS, Aim};
use dialect::Dialect;
use leaving::Leaving;
use runs::{Look, Runs};

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

/// Has modules make clusters.
pub struct Terraform {
    runner: Runner,
    runs: Runs<Aim, Outputs>,
    /// Serves those that are a Kubernetes.
    kubernetes: Arc<dyn Provider>,
    leaving: Leaving,
}

impl Terraform {
    /// Nothing is started yet. `kubernetes` installs the agent where a module gives a kubeconfig.
    pub fn new(runner: Runner, kubernetes: Arc<dyn Provider>) -> Self {
        let runs = Runs::new(runner.options.at_once);
        Self { runner, runs, kubernetes, leaving: Leaving::default() }
    }

    /// What of a cluster is not as its module has made it. Nothing must go on there.
    pub async fn drift(&self, order: &Order) -> Result<Vec<Change>, Fault> {
        self.workspace(order, order.secrets.get(ACCESS))?.plan().await
    }

    fn workspace(&self, order: &Order, access: Option<&Secret>) -> Result<Workspace, Fault> {
        let key = order.id.to_string();
        let workspace = self.runner.workspace(&key, cluster::inputs(order)?)?;
        let Some(access) = access else { return Ok(workspace) };
        let mut inputs = workspace.inputs.as_ref().clone();
        cluster::tell(&mut inputs, access, |name| workspace.declares(name));
        self.runner.workspace(&key, inputs)
    }

    /// Applies with these inputs, once; what came of it, when it has ended.
    fn apply(&self, order: &Order, workspace: &Workspace) -> Result<Option<Made>, Fault> {
        let key = order.id.to_string();
        let aim = Aim::Make(workspace.inputs.print());
        match self.runs.look(&key) {
            Look::Waits(_) | Look::Goes(_) => return Ok(None),
            Look::Ended(of, outcome) if of == aim => {
                self.runs.forget(&key);
                return Ok(Some(cluster::made(workspace, &outcome?)));
            }
            Look::Ended(..) | Look::None => {}
        }
        workspace.check()?;
        if workspace.is_busy() {
            workspace.interrupt_overdue();
        } else {
            let work = workspace.clone();
            self.runs.start(&key, aim, async move { work.apply().await });
        }
        Ok(None)
    }

    /// What goes on, as a sentence.
    fn going(&self, order: &Order, workspace: &Workspace) -> Progress {
        Progress::Going(match self.runs.look(&order.id.to_string()) {
            Look::Waits(_) if self.runs.are_full() => {
                format!("Terraform waits for its turn: {} run at once.", workspace.options.at_once)
            }
            Look::Waits(_) => "Terraform begins.".to_owned(),
            // An earlier run, of a server that is no more or of another one, or it has just ended.
            Look::Goes(_) | Look::None | Look::Ended(..) => workspace.progress(),
        })
    }

    fn create_once(&self, order: &Order) -> Result<Progress, Fault> {
        let workspace = self.workspace(order, order.secrets.get(ACCESS))?;
        match self.apply(order, &workspace)? {
            Some(made) => Ok(Progress::Done(made)),
            None => Ok(self.going(order, &workspace)),
        }
    }

    fn status_once(&self, order: &Order) -> Result<Progress, Fault> {
        let workspace = self.workspace(order, order.secrets.get(ACCESS))?;
        let key = order.id.to_string();
        let outputs = match self.runs.look(&key) {
            Look::Waits(_) | Look::Goes(_) => return Ok(self.going(order, &workspace)),
            // Said once: its folder tells the rest, and what failed is tried again.
            Look::Ended(Aim::Make(_), outcome) => {
                self.runs.forget(&key);
                Some(outcome?)
            }
            Look::None | Look::Ended(Aim::Remove, _) => cluster::outputs(order, &workspace),
        };
        match outputs {
            Some(outputs) => Ok(Progress::Done(cluster::made(&workspace, &outputs))),
            // Somebody was interrupted while it was made.
            None => self.create_once(order),
        }
    }

    async fn prepare_once(&self, order: &Order, agent: &Access) -> Result<Progress, Fault> {
        let plain = self.workspace(order, None)?;
        if let Some(kubeconfig) = cluster::kubeconfig(order, &plain) {
            let outputs = cluster::outputs(order, &plain).unwrap_or_default();
            let order = cluster::as_kubernetes(order, kubeconfig);
            let progress = self.kubernetes.prepare(&order, agent).await?;
            let Progress::Done(theirs) = progress else { return Ok(progress) };
            let ours = cluster::made(&plain, &outputs);
            let foreign_id = ours.foreign_id.or(theirs.foreign_id);
            return Ok(Progress::Done(Made { foreign_id, dns: ours.dns.or(theirs.dns), ..theirs }));
        }
        let access = cluster::access(agent);
        let mut inputs = plain.inputs.as_ref().clone();
        if !cluster::tell(&mut inputs, &access, |name| plain.declares(name)) {
            // It starts its agent by itself, or somebody does: it only has to be there.
            return self.status_once(order);
        }
        let told = self.runner.workspace(&order.id.to_string(), inputs)?;
        let Some(mut made) = self.apply(order, &told)? else {
            return Ok(self.going(order, &told));
        };
        made.keep.insert(ACCESS.to_owned(), access);
        Ok(Progress::Done(made))
    }

    async fn remove_once(&self, order: &Order) -> Result<Progress, Fault> {
        let workspace = self.workspace(order, order.secrets.get(ACCESS))?;
        let key = order.id.to_string();
        match self.runs.look(&key) {
            Look::Waits(Aim::Make(_)) | Look::Goes(Aim::Make(_)) => self.runs.forget(&key),
            Look::Waits(Aim::Remove) | Look::Goes(Aim::Remove) => {
                return Ok(self.going(order, &workspace));
            }
            Look::Ended(Aim::Remove, outcome) => {
                self.runs.forget(&key);
                outcome?;
                return self.removed(order, &workspace);
            }
            Look::Ended(Aim::Make(_), _) | Look::None => {}
        }
        if workspace.is_busy() {
            workspace.interrupt();
            return Ok(Progress::Going("The run of Terraform before is being ended.".into()));
        }
        if !workspace.holds_something() {
            return self.removed(order, &workspace);
        }
        if let Some(kubeconfig) = cluster::kubeconfig(order, &workspace) {
            let inside = cluster::as_kubernetes(order, kubeconfig);
            if let Some(wait) = self.leaving.wait(&*self.kubernetes, &inside).await {
                return Ok(Progress::Going(wait));
            }
        }
        let work = workspace.clone();
        let work = async move { work.destroy().await.map(|()| Outputs::default()) };
        self.runs.start(&key, Aim::Remove, work);
        Ok(Progress::Going("Terraform begins to remove what it has made.".into()))
    }

    fn removed(&self, order: &Order, workspace: &Workspace) -> Result<Progress, Fault> {
        workspace.remove()?;
        self.runs.forget(&order.id.to_string());
        self.leaving.forget(order.id);
        Ok(Progress::Done(cluster::gone()))
    }

    fn keep_once(&self, order: &Order) -> Result<BTreeMap<String, Secret>, Fault> {
        let newest = self.workspace(order, None)?.state();
        let is_known = newest.as_ref() == order.secrets.get(STATE);
        let newest = newest.filter(|_| !is_known);
        Ok(newest.map(|state| (STATE.to_owned(), state)).into_iter().collect())
    }
}

impl Provider for Terraform {
    fn create<'a>(&'a self, order: &'a Order) -> Answer<'a, Progress> {
        Box::pin(async move { self.create_once(order) })
    }

    fn status<'a>(&'a self, order: &'a Order) -> Answer<'a, Progress> {
        Box::pin(async move { self.status_once(order) })
    }

    fn prepare<'a>(&'a self, order: &'a Order, agent: &'a Access) -> Answer<'a, Progress> {
        Box::pin(self.prepare_once(order, agent))
    }

    fn remove<'a>(&'a self, order: &'a Order) -> Answer<'a, Progress> {
        Box::pin(self.remove_once(order))
    }

    fn keep<'a>(&'a self, order: &'a Order) -> Answer<'a, BTreeMap<String, Secret>> {
        Box::pin(async move { self.keep_once(order) })
    }
}
