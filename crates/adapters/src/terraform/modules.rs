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
use model::resource::Difference;
use model::template::{self, with};
use model::{Invalid, Secret};
use port::{Answer, Applied, Doing, Executor, Fault, Files, Observed, Task};
use serde_json::{Map, Value};
use tokio::time::sleep;

use crate::guard::Guards;

use super::inputs::Outputs;
use super::runs::{Look, Runs};
use super::workspace::Workspace;
use super::{Runner, adopting, files, task as of};

/// How long whoever wants to know what there is waits for it; what takes longer is told the next time.
const LOOK_PATIENCE: Duration = Duration::from_secs(30);
/// How often it is seen whether that has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What a run is for; of which change, and with which inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Aim {
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
enum Outcome {
    Differences(Vec<Difference>),
    Outputs(Outputs),
    Adopted,
    Gone,
}

/// Carries out resources of the executor `terraform`.
pub struct Modules {
    runner: Runner,
    runs: Runs<Aim, Outcome>,
    guards: Guards,
}

impl Modules {
    /// Nothing is started yet. The runner needs no folder of modules.
    pub fn new(runner: Runner) -> Self {
        let runs = Runs::new(runner.options.at_once);
        Self { runner, runs, guards: Guards::default() }
    }

    /// Has one run with this aim come to its end; what came of it, none as long as it goes on.
    fn pursue<F>(
        &self,
        task: &Task,
        workspace: &Workspace,
        aim: Aim,
        work: F,
    ) -> Result<Option<Outcome>, Fault>
    where
        F: Future<Output = Result<Outcome, Fault>> + Send + 'static,
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

    /// What goes on, as a sentence, and how far it is.
    fn going<T>(&self, task: &Task, workspace: &Workspace) -> Doing<T> {
        let (words, percent) = match self.runs.look(&task.id.to_string()) {
            Look::Waits(_) if self.runs.are_full() => {
                let most = workspace.options.at_once;
                (format!("Terraform waits for its turn: {most} run at once."), None)
            }
            Look::Waits(_) => ("Terraform begins.".to_owned(), None),
            Look::Goes(_) | Look::None | Look::Ended(..) => {
                (workspace.progress(), workspace.percent())
            }
        };
        Doing::Going { words, percent }
    }

    fn plan_once(&self, task: &Task) -> Result<Doing<Vec<Difference>>, Fault> {
        let workspace = of::workspace(&self.runner, task, &task.with)?;
        let (work, key) = (workspace.clone(), task.key.clone());
        let work = async move { work.plan_for(&key).await.map(Outcome::Differences) };
        match self.pursue(task, &workspace, Aim::Plan(print(task, &workspace)), work)? {
            Some(Outcome::Differences(differences)) => Ok(Doing::Done(differences)),
            _ => Ok(self.going(task, &workspace)),
        }
    }

    fn apply_once(&self, task: &Task) -> Result<Doing<Applied>, Fault> {
        let workspace = of::workspace(&self.runner, task, &task.with)?;
        let (work, key) = (workspace.clone(), task.key.clone());
        let with = Value::Object(task.with.clone()).to_string();
        let work = async move { work.make(&key, &with).await.map(Outcome::Outputs) };
        match self.pursue(task, &workspace, Aim::Make(print(task, &workspace)), work)? {
            Some(Outcome::Outputs(outputs)) => {
                Ok(Doing::Done(of::applied(task, &workspace, &outputs)))
            }
            _ => Ok(self.going(task, &workspace)),
        }
    }

    async fn observe_once(&self, task: &Task) -> Result<Observed, Fault> {
        let made = task.applied.as_ref().unwrap_or(&task.with);
        let workspace = of::workspace(&self.runner, task, made)?;
        let aim = Aim::Look(print(task, &workspace));
        let until = base::monotonic() + LOOK_PATIENCE;
        loop {
            self.may_look(task, &workspace, &aim)?;
            let work = workspace.clone();
            let work = async move { work.look().await.map(Outcome::Differences) };
            if let Some(Outcome::Differences(drift)) =
                self.pursue(task, &workspace, aim.clone(), work)?
            {
                return Ok(Observed { drift, unexpected: Vec::new() });
            }
            if base::monotonic() >= until {
                let why = "Terraform still looks at what there is; it is asked again";
                return Err(Fault::Unavailable(why.into()));
            }
            sleep(LOOK_AGAIN).await;
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

    fn destroy_once(&self, task: &Task) -> Result<Doing<()>, Fault> {
        let bare = of::bare(&self.runner, task)?;
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
            return Ok(Doing::Done(()));
        }
        let workspace = of::tried(&self.runner, task)?;
        let work = workspace.clone();
        let work = async move { work.destroy().await.map(|()| Outcome::Gone) };
        match self.pursue(task, &workspace, Aim::Destroy, work)? {
            // The state that says so is kept before its folder goes: nothing is destroyed twice.
            Some(_) => {
                Ok(Doing::Going { words: "Terraform has removed it.".into(), percent: Some(99) })
            }
            None => Ok(self.going(task, &workspace)),
        }
    }

    fn cancel_once(&self, task: &Task) -> Result<bool, Fault> {
        let workspace = of::tried(&self.runner, task).or_else(|_| of::bare(&self.runner, task))?;
        workspace.check_fence()?;
        self.runs.forget(&task.id.to_string());
        if workspace.is_busy() {
            workspace.interrupt();
            return Ok(false);
        }
        task.log.say(workspace.news().join("\n"));
        Ok(true)
    }

    /// Imports what is not in the state yet. Asked again while it is applied, there is nothing to do.
    fn adopt_once(&self, task: &Task, what: &str) -> Result<Applied, Fault> {
        let things = adopting::parse(what)?;
        let known = Applied { outputs: task.outputs.clone(), link: None };
        let workspace = of::workspace(&self.runner, task, &task.with)?;
        let now = self.runs.look(&task.id.to_string());
        if let Look::Waits(Aim::Make(_)) | Look::Goes(Aim::Make(_)) | Look::Ended(Aim::Make(_), _) =
            now
        {
            return Ok(known);
        }
        let aim = Aim::Adopt(format!("{} {what}", print(task, &workspace)));
        let work = workspace.clone();
        let work = async move { work.adopt(&things).await.map(|()| Outcome::Adopted) };
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
fn print(task: &Task, workspace: &Workspace) -> String {
    format!("{} {}", task.key, HEXLOWER.encode(&workspace.inputs.print()))
}

impl Executor for Modules {
    fn validate(&self, with: &Map<String, Value>, all: &Files) -> Result<(), Invalid> {
        with::check(template::Executor::Terraform, with)?;
        files::check(all, &with::read::<with::Terraform>(with)?.source)
    }

    fn plan<'a>(&'a self, task: &'a Task) -> Answer<'a, Doing<Vec<Difference>>> {
        Box::pin(async move { self.plan_once(task) })
    }

    fn apply<'a>(&'a self, task: &'a Task) -> Answer<'a, Doing<Applied>> {
        Box::pin(async move { self.apply_once(task) })
    }

    fn observe<'a>(&'a self, task: &'a Task) -> Answer<'a, Observed> {
        Box::pin(self.observe_once(task))
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> Answer<'a, Doing<()>> {
        Box::pin(async move { self.destroy_once(task) })
    }

    fn cancel<'a>(&'a self, task: &'a Task) -> Answer<'a, bool> {
        Box::pin(async move { self.cancel_once(task) })
    }

    fn keep<'a>(&'a self, task: &'a Task) -> Answer<'a, BTreeMap<String, Secret>> {
        Box::pin(async move { of::keep(&self.runner, task) })
    }

    fn adopt<'a>(&'a self, task: &'a Task, what: &'a str) -> Answer<'a, Applied> {
        Box::pin(async move { self.adopt_once(task, what) })
    }
}
