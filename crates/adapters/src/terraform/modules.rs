//! The executor of modules that come with templates.
//!
//! A plan takes as long as all that the module describes takes to be looked at, and an apply as long as
//! it takes to be made: both go on in the background, and whoever asks is told how far they are. The
//! plan stays in the folder, and the apply after it carries out exactly that plan. One that is of
//! another change, of other inputs or from another state is made anew.
//!
//! What a module reaches is known to Terraform alone, so each module has its guard: one whose runs fail
//! because of something that passes is left alone for a while, however many resources are made of it.

use std::collections::BTreeMap;
use std::time::Duration;

use data_encoding::HEXLOWER;
use futures_util::future::BoxFuture;
use model::resource::Difference;
use model::template::{self, with};
use model::{Invalid, Secret};
use port::{Answer, Fault, Files, Observed, Operation, Outcome, Progress, Task};
use serde_json::{Map, Value};
use tokio::time::sleep;

use crate::guard::Guards;

use super::inputs::Outputs;
use super::runs::{Look, Phase, Runs};
use super::workspace::Workspace;
use super::{Runner, adopting, files, task as of};

/// How often it is checked whether a run has written output, or whether one of an earlier server has ended.
const OUTPUT_CHECK: Duration = Duration::from_millis(250);

/// Said while a run makes way for the one that destroys.
const ENDING: &str = "Ending the previous Terraform run.";

/// What a run is for; of which change, and with which inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Aim {
    /// To find out what would change.
    Plan(String),
    /// To make it.
    Make(String),
    /// To take over what exists.
    Adopt(String),
    /// To see whether it is as it was made.
    Look(String),
    /// To destroy it.
    Destroy,
}

/// What came of a run.
#[derive(Debug, Clone)]
pub(super) enum Ran {
    Differences(Vec<Difference>),
    Outputs(Outputs),
    Adopted,
    Gone,
}

/// Carries out resources of the executor `terraform`.
pub struct Modules {
    pub(super) runner: Runner,
    runs: Runs<Aim, Ran>,
    guards: Guards,
}

impl Modules {
    /// Nothing is started yet. The runner needs no folder of modules.
    pub fn new(runner: Runner) -> Self {
        let runs = Runs::new(runner.options.at_once);
        Self { runner, runs, guards: Guards::default() }
    }

    /// Has one run with this aim come to its end; what came of it, none as long as it goes on.
    pub(super) fn pursue<F>(
        &self,
        task: &Task,
        workspace: &Workspace,
        aim: Aim,
        work: F,
    ) -> Result<Option<Ran>, Fault>
    where
        F: Future<Output = Result<Ran, Fault>> + Send + 'static,
    {
        let key = task.id.to_string();
        match self.runs.look(&key) {
            Look::Waits(now) | Look::Goes(now) if now == aim => {
                tell(task, workspace, &aim);
                return Ok(None);
            }
            // Who only looks makes way, and what shall go need not be made.
            Look::Waits(Aim::Look(_) | Aim::Plan(_)) | Look::Goes(Aim::Look(_) | Aim::Plan(_)) => {
                self.runs.forget(&key);
                return Ok(None);
            }
            Look::Waits(_) | Look::Goes(_) if aim == Aim::Destroy => self.runs.forget(&key),
            Look::Waits(_) | Look::Goes(_) => return Ok(None),
            Look::Ended(of, outcome) if of == aim => {
                tell(task, workspace, &aim);
                self.runs.forget(&key);
                return outcome.map(Some);
            }
            Look::Ended(..) | Look::None => {}
        }
        workspace.check_fence()?;
        if aim != Aim::Destroy {
            workspace.check()?;
        }
        if !workspace.is_busy() {
            let module = format!("Terraform's module {}", workspace.inputs.module);
            let guard = self.guards.of(task.organization, module);
            self.runs.start(&key, aim, async move { guard.once(work).await });
            return Ok(None);
        }
        // An earlier run, of a server that is no more or of another one.
        tell(task, workspace, &aim);
        if aim == Aim::Destroy {
            workspace.interrupt();
        } else {
            workspace.interrupt_overdue();
        }
        Ok(None)
    }

    /// What is under way, and how far it is.
    pub(super) fn running<T>(&self, task: &Task, workspace: &Workspace) -> Progress<T> {
        match self.runs.look(&task.id.to_string()) {
            Look::Waits(_) if self.runs.are_full() => {
                let most = workspace.options.at_once;
                Progress::running(format!("Terraform waits for its turn: {most} run at once."))
            }
            Look::Waits(_) => Progress::running("Terraform begins."),
            Look::Goes(_) | Look::None | Look::Ended(..) => {
                Progress::running(workspace.progress()).at(workspace.percent())
            }
        }
    }

    /// What the last run of a cluster's module gave, once; none while one is under way.
    pub(super) fn made(&self, task: &Task, workspace: &Workspace) -> Result<Option<Ran>, Fault> {
        let key = task.id.to_string();
        match self.runs.look(&key) {
            Look::Waits(_) | Look::Goes(_) => {
                task.log.say(workspace.news().join("\n"));
                Ok(None)
            }
            Look::Ended(Aim::Make(_), ran) => {
                task.log.say(workspace.news().join("\n"));
                self.runs.forget(&key);
                ran.map(Some)
            }
            Look::Ended(..) | Look::None => Ok(Some(Ran::Gone)),
        }
    }

    /// Is no run under way?
    pub(super) fn is_idle(&self, task: &Task) -> bool {
        let run = self.runs.look(&task.id.to_string());
        matches!(run, Look::None | Look::Ended(..))
    }

    /// Interrupts a run that is under way and does not destroy.
    pub(super) fn make_way(&self, task: &Task) -> Option<Progress<()>> {
        let key = task.id.to_string();
        let (Look::Waits(aim) | Look::Goes(aim)) = self.runs.look(&key) else { return None };
        if aim == Aim::Destroy {
            return None;
        }
        self.runs.forget(&key);
        Some(Progress::running(ENDING))
    }

    fn plan_once(&self, task: &Task) -> Result<Progress<Vec<Difference>>, Fault> {
        let workspace = of::workspace(&self.runner, task, &task.with)?;
        let (work, key) = (workspace.clone(), task.key.clone());
        let work = async move { work.plan_for(&key).await.map(Ran::Differences) };
        match self.pursue(task, &workspace, Aim::Plan(print(task, &workspace)), work)? {
            Some(Ran::Differences(differences)) => Ok(Progress::Done(differences)),
            _ => Ok(self.running(task, &workspace)),
        }
    }

    fn apply_once(&self, task: &Task) -> Result<Progress<Outcome>, Fault> {
        let workspace = of::workspace(&self.runner, task, &task.with)?;
        let (work, key) = (workspace.clone(), task.key.clone());
        let with = Value::Object(task.with.clone()).to_string();
        let work = async move { work.make(&key, &with).await.map(Ran::Outputs) };
        match self.pursue(task, &workspace, Aim::Make(print(task, &workspace)), work)? {
            Some(Ran::Outputs(outputs)) => {
                Ok(Progress::Done(of::applied(task, &workspace, &outputs)))
            }
            _ => Ok(self.running(task, &workspace)),
        }
    }

    fn observe_once(&self, task: &Task) -> Result<Progress<Observed>, Fault> {
        let made = task.applied.as_ref().unwrap_or(&task.with);
        let workspace = of::workspace(&self.runner, task, made)?;
        let aim = Aim::Look(print(task, &workspace));
        self.may_look(task, &workspace, &aim)?;
        let work = workspace.clone();
        let work = async move { work.look().await.map(Ran::Differences) };
        match self.pursue(task, &workspace, aim, work)? {
            Some(Ran::Differences(drift)) => {
                Ok(Progress::Done(Observed { drift, ..Observed::default() }))
            }
            _ => Ok(self.running(task, &workspace)),
        }
    }

    /// Nobody looks at what is being changed, and whoever would have to wait for a turn comes again: the
    /// worker has others to ask meanwhile.
    fn may_look(&self, task: &Task, workspace: &Workspace, aim: &Aim) -> Result<(), Fault> {
        let (is_free, is_begun) = match self.runs.look(&task.id.to_string()) {
            Look::Waits(now) | Look::Goes(now) => (now == *aim, true),
            Look::Ended(of, _) => (true, of == *aim),
            Look::None if workspace.is_busy() => {
                workspace.interrupt_overdue();
                (false, false)
            }
            Look::None => (true, false),
        };
        let why = if !is_free {
            "a run of Terraform goes on there; it is looked at afterwards"
        } else if !is_begun && self.runs.are_full() {
            "as many runs of Terraform go on as may; it is looked at afterwards"
        } else {
            return Ok(());
        };
        Err(Fault::Unavailable(why.into()))
    }

    /// Destroys what the module has created, in the folder of `bare`; `workspace` is how it was created.
    pub(super) fn destroy_in(
        &self,
        task: &Task,
        bare: &Workspace,
        workspace: impl FnOnce() -> Result<Workspace, Fault>,
    ) -> Result<Progress<()>, Fault> {
        bare.check_fence()?;
        let key = task.id.to_string();
        let is_over = match self.runs.look(&key) {
            Look::None => true,
            Look::Ended(aim, _) => aim != Aim::Destroy,
            Look::Waits(_) | Look::Goes(_) => false,
        };
        if is_over && !bare.is_busy() && !bare.holds_something() {
            self.runs.forget(&key);
            bare.remove()?;
            return Ok(Progress::Done(()));
        }
        let workspace = workspace()?;
        let work = workspace.clone();
        let work = async move { work.destroy().await.map(|()| Ran::Gone) };
        match self.pursue(task, &workspace, Aim::Destroy, work)? {
            // The state that says so is kept before its folder goes: nothing is destroyed twice.
            Some(_) => Ok(Progress::running("Terraform has removed it.").at(Some(99))),
            None if self.is_idle(task) => Ok(Progress::running(ENDING)),
            None => Ok(self.running(task, &workspace)),
        }
    }

    fn destroy_once(&self, task: &Task) -> Result<Progress<()>, Fault> {
        let bare = of::bare(&self.runner, task)?;
        self.destroy_in(task, &bare, || of::tried(&self.runner, task))
    }

    pub(super) fn cancel_in(&self, task: &Task, workspace: &Workspace) -> Result<bool, Fault> {
        workspace.check_fence()?;
        self.runs.forget(&task.id.to_string());
        if workspace.is_busy() {
            workspace.interrupt();
            return Ok(false);
        }
        task.log.say(workspace.news().join("\n"));
        Ok(true)
    }

    fn cancel_once(&self, task: &Task) -> Result<bool, Fault> {
        let workspace = of::tried(&self.runner, task).or_else(|_| of::bare(&self.runner, task))?;
        self.cancel_in(task, &workspace)
    }

    /// Resolves once a run has begun or ended, or has written output.
    async fn until_changed(&self, task: &Task) {
        let Ok(folder) = of::bare(&self.runner, task) else { return };
        let (mut runs, key) = (self.runs.changes(), task.id.to_string());
        let look = || (self.runs.phase(&key), folder.is_busy(), folder.log_bytes());
        let before = look();
        if before.0 == Phase::Ended {
            return;
        }
        while look() == before {
            tokio::select! {
                _ = runs.changed() => {}
                () = sleep(OUTPUT_CHECK) => {}
            }
        }
    }

    /// Imports what is not in the state yet. Asked again while it is applied, there is nothing to do.
    fn adopt_once(&self, task: &Task, what: &str) -> Result<Outcome, Fault> {
        let things = adopting::parse(what)?;
        let known = Outcome { outputs: task.outputs.clone(), link: None };
        let workspace = of::workspace(&self.runner, task, &task.with)?;
        let now = self.runs.look(&task.id.to_string());
        if let Look::Waits(Aim::Make(_)) | Look::Goes(Aim::Make(_)) | Look::Ended(Aim::Make(_), _) =
            now
        {
            return Ok(known);
        }
        let aim = Aim::Adopt(format!("{} {what}", print(task, &workspace)));
        let work = workspace.clone();
        let work = async move { work.adopt(&things).await.map(|()| Ran::Adopted) };
        match self.pursue(task, &workspace, aim, work)? {
            Some(_) => Ok(known),
            None => {
                let why = "Terraform takes over what exists; it is asked again";
                Err(Fault::Unavailable(why.into()))
            }
        }
    }
}

/// Tells what a run has said since the last time. One that only looks is not worth it.
fn tell(task: &Task, workspace: &Workspace, aim: &Aim) {
    if !matches!(aim, Aim::Look(_)) {
        task.log.say(workspace.news().join("\n"));
    }
}

/// Tells apart runs of different changes, or with different inputs.
pub(super) fn print(task: &Task, workspace: &Workspace) -> String {
    format!("{} {}", task.key, HEXLOWER.encode(&workspace.inputs.print()))
}

impl Operation for Modules {
    fn validate(&self, with: &Map<String, Value>, all: &Files) -> Result<(), Invalid> {
        with::check(template::Executor::Terraform, with)?;
        files::check(all, &with::read::<with::Terraform>(with)?.source)
    }

    fn plan<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Vec<Difference>>> {
        Box::pin(async move { self.plan_once(task) })
    }

    fn apply<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Outcome>> {
        Box::pin(async move { self.apply_once(task) })
    }

    fn observe<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Observed>> {
        Box::pin(async move { self.observe_once(task) })
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<()>> {
        Box::pin(async move { self.destroy_once(task) })
    }

    fn cancel<'a>(&'a self, task: &'a Task) -> Answer<'a, bool> {
        Box::pin(async move { self.cancel_once(task) })
    }

    fn keep<'a>(&'a self, task: &'a Task) -> Answer<'a, BTreeMap<String, Secret>> {
        Box::pin(async move { of::keep(&self.runner, task) })
    }

    fn adopt<'a>(&'a self, task: &'a Task, what: &'a str) -> Answer<'a, Outcome> {
        Box::pin(async move { self.adopt_once(task, what) })
    }

    fn changed<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, ()> {
        Box::pin(self.until_changed(task))
    }
}
