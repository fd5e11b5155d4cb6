//! The executor `terraform`: resources from modules of templates.
//!
//! Plans and applies may take long: they run in the background, and callers poll their progress.
//! The plan stays in the workspace, and the following apply executes exactly that plan. A plan of
//! another change, of other inputs or from another state is discarded.
//!
//! Only Terraform knows which systems a module calls, so each module has a guard: after temporary
//! failures its runs pause, however many resources use it.

use std::collections::BTreeMap;
use std::time::Duration;

use data_encoding::HEXLOWER;
use futures_util::future::BoxFuture;
use model::resource::Difference;
use model::template::{self, configuration};
use model::{Invalid, Secret};
use port::{Fault, Files, Observed, Operation, Outcome, PortFuture, Progress, Task};
use serde_json::{Map, Value};
use tokio::time::sleep;

use crate::guard::Guards;

use super::inputs::Outputs;
use super::runs::{Phase, RunState, Runs};
use super::workspace::Workspace;
use super::{Runner, adoption, files, task as resource};

/// How often to check whether a run wrote output, or whether a run of an earlier server ended.
const OUTPUT_CHECK: Duration = Duration::from_millis(250);

/// The message while a run is interrupted before a destroy.
const ENDING: &str = "Interrupting the previous Terraform run.";

/// The goal of a run, with its change and a hash of its inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Goal {
    /// To plan changes.
    Plan(String),
    /// To apply changes.
    Apply(String),
    /// To import existing objects.
    Adopt(String),
    /// To detect drift.
    Observe(String),
    /// To destroy all resources.
    Destroy,
}

/// The result of a run.
#[derive(Debug, Clone)]
pub(super) enum RunResult {
    Differences(Vec<Difference>),
    Outputs(Outputs),
    Adopted,
    None,
}

/// The executor `terraform`.
pub struct TerraformExecutor {
    pub(super) runner: Runner,
    runs: Runs<Goal, RunResult>,
    guards: Guards,
}

impl TerraformExecutor {
    /// Starts nothing yet. The runner needs no module folder.
    pub fn new(runner: Runner) -> Self {
        let runs = Runs::new(runner.options.max_concurrent_runs);
        Self { runner, runs, guards: Guards::default() }
    }

    /// Starts a run with this goal, or polls it; returns its result, none while it runs.
    pub(super) fn drive<F>(
        &self,
        task: &Task,
        workspace: &Workspace,
        goal: Goal,
        work: F,
    ) -> Result<Option<RunResult>, Fault>
    where
        F: Future<Output = Result<RunResult, Fault>> + Send + 'static,
    {
        let key = task.id.to_string();
        match self.runs.state(&key) {
            RunState::Queued(now) | RunState::Running(now) if now == goal => {
                copy_log(task, workspace, &goal);
                return Ok(None);
            }
            // Read-only runs yield; destroy supersedes apply.
            RunState::Queued(Goal::Observe(_) | Goal::Plan(_))
            | RunState::Running(Goal::Observe(_) | Goal::Plan(_)) => {
                self.runs.abort(&key);
                return Ok(None);
            }
            RunState::Queued(_) | RunState::Running(_) if goal == Goal::Destroy => {
                self.runs.abort(&key);
            }
            RunState::Queued(_) | RunState::Running(_) => return Ok(None),
            RunState::Ended(of, result) if of == goal => {
                copy_log(task, workspace, &goal);
                self.runs.abort(&key);
                return result.map(Some);
            }
            RunState::Ended(..) | RunState::None => {}
        }
        workspace.check_fence()?;
        if goal != Goal::Destroy {
            workspace.check()?;
        }
        if !workspace.is_busy() {
            let module = format!("Terraform module {}", workspace.inputs.module);
            let guard = self.guards.get(task.organization, module);
            self.runs.start(&key, goal, async move { guard.once(work).await });
            return Ok(None);
        }
        // A run of an earlier server, or of another one.
        copy_log(task, workspace, &goal);
        if goal == Goal::Destroy {
            workspace.interrupt();
        } else {
            workspace.interrupt_overdue();
        }
        Ok(None)
    }

    /// The progress of the current run.
    pub(super) fn running<T>(&self, task: &Task, workspace: &Workspace) -> Progress<T> {
        match self.runs.state(&task.id.to_string()) {
            RunState::Queued(_) if self.runs.are_full() => {
                let most = workspace.options.max_concurrent_runs;
                Progress::running(format!("Terraform run queued: at most {most} run at once."))
            }
            RunState::Queued(_) => Progress::running("Starting Terraform."),
            RunState::Running(_) | RunState::None | RunState::Ended(..) => {
                Progress::running(workspace.progress()).at(workspace.percent())
            }
        }
    }

    /// Removes and returns the result of the last apply of a cluster's module; none while a run
    /// continues.
    pub(super) fn take_applied(
        &self,
        task: &Task,
        workspace: &Workspace,
    ) -> Result<Option<RunResult>, Fault> {
        let key = task.id.to_string();
        match self.runs.state(&key) {
            RunState::Queued(_) | RunState::Running(_) => {
                task.log.append(workspace.new_log_lines().join("\n"));
                Ok(None)
            }
            RunState::Ended(Goal::Apply(_), result) => {
                task.log.append(workspace.new_log_lines().join("\n"));
                self.runs.abort(&key);
                result.map(Some)
            }
            RunState::Ended(..) | RunState::None => Ok(Some(RunResult::None)),
        }
    }

    /// Whether no run is queued or running.
    pub(super) fn is_idle(&self, task: &Task) -> bool {
        let run = self.runs.state(&task.id.to_string());
        matches!(run, RunState::None | RunState::Ended(..))
    }

    /// Interrupts the current run, unless it destroys.
    pub(super) fn interrupt_other(&self, task: &Task) -> Option<Progress<()>> {
        let key = task.id.to_string();
        let (RunState::Queued(goal) | RunState::Running(goal)) = self.runs.state(&key) else {
            return None;
        };
        if goal == Goal::Destroy {
            return None;
        }
        self.runs.abort(&key);
        Some(Progress::running(ENDING))
    }

    fn plan_once(&self, task: &Task) -> Result<Progress<Vec<Difference>>, Fault> {
        let workspace = resource::workspace(&self.runner, task, &task.with)?;
        let (work, key) = (workspace.clone(), task.key.clone());
        let work = async move { work.plan_for(&key).await.map(RunResult::Differences) };
        match self.drive(task, &workspace, Goal::Plan(change_id(task, &workspace)), work)? {
            Some(RunResult::Differences(differences)) => Ok(Progress::Done(differences)),
            _ => Ok(self.running(task, &workspace)),
        }
    }

    fn apply_once(&self, task: &Task) -> Result<Progress<Outcome>, Fault> {
        let workspace = resource::workspace(&self.runner, task, &task.with)?;
        let (work, key) = (workspace.clone(), task.key.clone());
        let with = Value::Object(task.with.clone()).to_string();
        let work = async move { work.apply_plan_for(&key, &with).await.map(RunResult::Outputs) };
        match self.drive(task, &workspace, Goal::Apply(change_id(task, &workspace)), work)? {
            Some(RunResult::Outputs(outputs)) => {
                Ok(Progress::Done(resource::outcome(task, &workspace, &outputs)))
            }
            _ => Ok(self.running(task, &workspace)),
        }
    }

    fn observe_once(&self, task: &Task) -> Result<Progress<Observed>, Fault> {
        let applied = task.applied.as_ref().unwrap_or(&task.with);
        let workspace = resource::workspace(&self.runner, task, applied)?;
        let goal = Goal::Observe(change_id(task, &workspace));
        self.check_observable(task, &workspace, &goal)?;
        let work = workspace.clone();
        let work = async move { work.diff().await.map(RunResult::Differences) };
        match self.drive(task, &workspace, goal, work)? {
            Some(RunResult::Differences(drift)) => {
                Ok(Progress::Done(Observed { drift, ..Observed::default() }))
            }
            _ => Ok(self.running(task, &workspace)),
        }
    }

    /// Checks that an observation may start now: not while the resource changes, and not if it
    /// would be queued, because the worker can observe other resources meanwhile.
    fn check_observable(
        &self,
        task: &Task,
        workspace: &Workspace,
        goal: &Goal,
    ) -> Result<(), Fault> {
        let (is_free, is_begun) = match self.runs.state(&task.id.to_string()) {
            RunState::Queued(now) | RunState::Running(now) => (now == *goal, true),
            RunState::Ended(of, _) => (true, of == *goal),
            RunState::None if workspace.is_busy() => {
                workspace.interrupt_overdue();
                (false, false)
            }
            RunState::None => (true, false),
        };
        let why = if !is_free {
            "another Terraform run is in progress"
        } else if !is_begun && self.runs.are_full() {
            "too many Terraform runs are in progress"
        } else {
            return Ok(());
        };
        Err(Fault::Unavailable(why.into()))
    }

    /// Destroys what the module created, in the folder of `bare`; `workspace` has the inputs of its
    /// creation.
    pub(super) fn destroy_in(
        &self,
        task: &Task,
        bare: &Workspace,
        workspace: impl FnOnce() -> Result<Workspace, Fault>,
    ) -> Result<Progress<()>, Fault> {
        bare.check_fence()?;
        let key = task.id.to_string();
        let is_over = match self.runs.state(&key) {
            RunState::None => true,
            RunState::Ended(goal, _) => goal != Goal::Destroy,
            RunState::Queued(_) | RunState::Running(_) => false,
        };
        if is_over && !bare.is_busy() && !bare.may_hold_resources() {
            self.runs.abort(&key);
            bare.remove()?;
            return Ok(Progress::Done(()));
        }
        let workspace = workspace()?;
        let work = workspace.clone();
        let work = async move { work.destroy().await.map(|()| RunResult::None) };
        match self.drive(task, &workspace, Goal::Destroy, work)? {
            // The final state is persisted before the folder is deleted: nothing is destroyed
            // twice.
            Some(_) => Ok(Progress::running("Terraform has destroyed all resources.").at(Some(99))),
            None if self.is_idle(task) => Ok(Progress::running(ENDING)),
            None => Ok(self.running(task, &workspace)),
        }
    }

    fn destroy_once(&self, task: &Task) -> Result<Progress<()>, Fault> {
        let bare = resource::bare(&self.runner, task)?;
        self.destroy_in(task, &bare, || resource::last_attempt(&self.runner, task))
    }

    pub(super) fn cancel_in(&self, task: &Task, workspace: &Workspace) -> Result<bool, Fault> {
        workspace.check_fence()?;
        self.runs.abort(&task.id.to_string());
        if workspace.is_busy() {
            workspace.interrupt();
            return Ok(false);
        }
        task.log.append(workspace.new_log_lines().join("\n"));
        Ok(true)
    }

    fn cancel_once(&self, task: &Task) -> Result<bool, Fault> {
        let workspace = resource::last_attempt(&self.runner, task)
            .or_else(|_| resource::bare(&self.runner, task))?;
        self.cancel_in(task, &workspace)
    }

    /// Resolves once a run has started or ended, or has written output.
    async fn until_changed(&self, task: &Task) {
        let Ok(folder) = resource::bare(&self.runner, task) else { return };
        let (mut runs, key) = (self.runs.changes(), task.id.to_string());
        let current = || (self.runs.phase(&key), folder.is_busy(), folder.log_bytes());
        let before = current();
        if before.0 == Phase::Ended {
            return;
        }
        while current() == before {
            tokio::select! {
                _ = runs.changed() => {}
                () = sleep(OUTPUT_CHECK) => {}
            }
        }
    }

    /// Imports objects that are not in the state yet. During the following apply there is nothing
    /// to do.
    fn adopt_once(&self, task: &Task, what: &str) -> Result<Outcome, Fault> {
        let imports = adoption::parse(what)?;
        let outcome = Outcome { outputs: task.outputs.clone(), link: None };
        let workspace = resource::workspace(&self.runner, task, &task.with)?;
        if let RunState::Queued(Goal::Apply(_))
        | RunState::Running(Goal::Apply(_))
        | RunState::Ended(Goal::Apply(_), _) = self.runs.state(&task.id.to_string())
        {
            return Ok(outcome);
        }
        let goal = Goal::Adopt(format!("{} {what}", change_id(task, &workspace)));
        let work = workspace.clone();
        let work = async move { work.adopt(&imports).await.map(|()| RunResult::Adopted) };
        match self.drive(task, &workspace, goal, work)? {
            Some(_) => Ok(outcome),
            None => {
                let why = "Terraform is importing existing objects";
                Err(Fault::Unavailable(why.into()))
            }
        }
    }
}

/// Copies new output of a run to the task's log, except that of observations.
fn copy_log(task: &Task, workspace: &Workspace, goal: &Goal) {
    if !matches!(goal, Goal::Observe(_)) {
        task.log.append(workspace.new_log_lines().join("\n"));
    }
}

/// Identifies a change with its inputs.
pub(super) fn change_id(task: &Task, workspace: &Workspace) -> String {
    format!("{} {}", task.key, HEXLOWER.encode(&workspace.inputs.hash()))
}

impl Operation for TerraformExecutor {
    fn validate(&self, with: &Map<String, Value>, all: &Files) -> Result<(), Invalid> {
        configuration::check(template::Executor::Terraform, with)?;
        files::check(all, &configuration::read::<configuration::Terraform>(with)?.source)
    }

    fn plan<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>> {
        Box::pin(async move { self.plan_once(task) })
    }

    fn apply<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Outcome>> {
        Box::pin(async move { self.apply_once(task) })
    }

    fn observe<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Observed>> {
        Box::pin(async move { self.observe_once(task) })
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<()>> {
        Box::pin(async move { self.destroy_once(task) })
    }

    fn cancel<'a>(&'a self, task: &'a Task) -> PortFuture<'a, bool> {
        Box::pin(async move { self.cancel_once(task) })
    }

    fn persist<'a>(&'a self, task: &'a Task) -> PortFuture<'a, BTreeMap<String, Secret>> {
        Box::pin(async move { resource::to_persist(&self.runner, task) })
    }

    fn adopt<'a>(&'a self, task: &'a Task, what: &'a str) -> PortFuture<'a, Outcome> {
        Box::pin(async move { self.adopt_once(task, what) })
    }

    fn changed<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, ()> {
        Box::pin(self.until_changed(task))
    }
}
