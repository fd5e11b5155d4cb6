//! The runs of a module that comes with a template: planned, then applied exactly as planned.

use model::resource::Difference;
use port::Fault;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::adopting::Thing;
use super::dialect::{Dialect, with_path};
use super::hidden::Hidden;
use super::inputs::Outputs;
use super::words::Complaint;
use super::workspace::{Held, PLANNED_SECRETS, Workspace};
use super::{draft, folder, state};

/// The plan that was made last, and what it is for.
const PLAN: &str = "plan";
const PLAN_NOTE: &str = "plan.json";
/// A plan that is only looked at.
const LOOK: &str = "look";
/// What was last tried to be made: what destroys it has to be told the same.
pub(super) const TRIED: &str = "with.json";

/// What a plan is good for.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// The change that it was made for.
    key: String,
    /// The module and its variables.
    inputs: Vec<u8>,
    /// The state that it starts from.
    state: String,
}

impl Workspace {
    /// What an apply would change. The plan is kept for it.
    pub(super) async fn plan_for(&self, key: &str) -> Result<Vec<Difference>, Fault> {
        let held = self.held(false).await?;
        self.init(&held).await?;
        self.draft(&held, key).await
    }

    /// Applies the plan that was made for this; plans anew if there is none, or if it has become stale.
    pub(super) async fn make(&self, key: &str, with: &str) -> Result<Outputs, Fault> {
        let held = self.begin(false).await?;
        folder::write(&self.at(TRIED), with).map_err(|error| self.unwritable(&error))?;
        if !self.has_draft(key) {
            self.draft(&held, key).await?;
        }
        match self.carry_out(&held).await {
            Err(fault) if is_stale(&fault) => {
                self.draft(&held, key).await?;
                self.carry_out(&held).await?;
            }
            done => done?,
        }
        self.read_outputs(&held).await
    }

    /// What is not as it was made. Nothing is kept.
    pub(super) async fn look(&self) -> Result<Vec<Difference>, Fault> {
        let held = self.held(false).await?;
        self.init(&held).await?;
        self.planned(&held, LOOK).await
    }

    /// Has things that exist be known to the state.
    pub(super) async fn adopt(&self, things: &[Thing]) -> Result<(), Fault> {
        let held = self.held(false).await?;
        self.init(&held).await?;
        for thing in things {
            self.import(&held, thing).await?;
        }
        Ok(())
    }

    async fn import(&self, held: &Held, thing: &Thing) -> Result<(), Fault> {
        let command = Dialect::import(&thing.address, &thing.id, &self.variables());
        match self.run(held, &command, "run.log", &[0]).await {
            // It was before.
            Err(fault) if is_managed(&fault) => Ok(()),
            done => done.map(drop),
        }
    }

    async fn draft(&self, held: &Held, key: &str) -> Result<Vec<Difference>, Fault> {
        self.forget_draft()?;
        let state = state::position(self.state_here().as_ref());
        let differences = self.planned(held, PLAN).await?;
        let note = Note { key: key.to_owned(), inputs: self.inputs.print(), state };
        let note = serde_json::to_string(&note).expect("a note is plain");
        folder::write(&self.at(PLAN_NOTE), &note).map_err(|error| self.unwritable(&error))?;
        Ok(differences)
    }

    /// Is there a plan of this change, from what is there now?
    fn has_draft(&self, key: &str) -> bool {
        let note = folder::read(&self.at(PLAN_NOTE)).ok().flatten();
        let note = note.and_then(|text| serde_json::from_str::<Note>(&text).ok());
        let state = state::position(self.state_here().as_ref());
        let now = Note { key: key.to_owned(), inputs: self.inputs.print(), state };
        self.at(PLAN).exists() && note == Some(now)
    }

    fn forget_draft(&self) -> Result<(), Fault> {
        let gone = [PLAN_NOTE, PLAN].iter().try_for_each(|name| folder::remove(&self.at(name)));
        gone.map_err(|error| self.unwritable(&error))
    }

    async fn carry_out(&self, held: &Held) -> Result<(), Fault> {
        // Whoever dies meanwhile must not have it applied twice.
        folder::remove(&self.at(PLAN_NOTE)).map_err(|error| self.unwritable(&error))?;
        let command = self.dialect().await?.apply_plan(&self.at(PLAN));
        let done = self.run(held, &command, "run.log", &[0]).await;
        self.forget_draft()?;
        done.map(drop)
    }

    async fn planned(&self, held: &Held, name: &str) -> Result<Vec<Difference>, Fault> {
        let (dialect, plan) = (self.dialect().await?, self.at(name));
        let command = self.with_variables(with_path(dialect.plan(), "-out=", &plan));
        let told = self.run(held, &command, "plan.log", &[0, 2]).await;
        folder::keep_private(&plan);
        let told = told?;
        let differences = if dialect.shows_plans() {
            self.shown(held, name).await
        } else {
            Ok(draft::differences_from_text(&told.rest))
        };
        if name == LOOK {
            folder::remove(&plan).map_err(|error| self.unwritable(&error))?;
        }
        differences
    }

    /// Has the program show a plan, and notes what of it must not be seen.
    async fn shown(&self, held: &Held, name: &str) -> Result<Vec<Difference>, Fault> {
        let command = Dialect::show(&self.at(name));
        let ended = self.start(held, &command, "show.json", "show.log").await?;
        if !ended.success() {
            let said = folder::read_log(&self.at("show.log"));
            return Err(self.failed(&command[0], ended, Complaint::all_from_text(&said), &said));
        }
        let text = folder::read(&self.at("show.json")).map_err(|error| self.unwritable(&error))?;
        folder::remove(&self.at("show.json")).map_err(|error| self.unwritable(&error))?;
        let plan: Value = serde_json::from_str(&text.unwrap_or_default())
            .map_err(|_| Fault::Unavailable("Terraform shows its plan, but not as JSON".into()))?;
        let secrets = Value::from(draft::secrets(&plan));
        folder::write(&self.at(PLANNED_SECRETS), &secrets.to_string())
            .map_err(|error| self.unwritable(&error))?;
        let hidden: Hidden = self.hidden();
        Ok(draft::differences(&plan, &hidden))
    }
}

fn is_stale(fault: &Fault) -> bool {
    says(fault, &["plan is stale", "plan file is stale", "created from an older state"])
}

fn is_managed(fault: &Fault) -> bool {
    says(fault, &["already managed by ", "would collide with an existing resource"])
}

fn says(fault: &Fault, words: &[&str]) -> bool {
    let why = fault.to_string().to_lowercase();
    words.iter().any(|words| why.contains(words))
}
