//! Runs of a template's module: planned, then applied exactly as planned.

use model::resource::Difference;
use port::Fault;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::adoption::Import;
use super::diagnostic::Diagnostic;
use super::dialect::{Dialect, with_path};
use super::inputs::Outputs;
use super::workspace::{Locked, PLANNED_SECRETS, Workspace};
use super::{folder, plan, state};

/// The last plan, and the file with its preconditions.
const PLAN: &str = "plan";
const PLAN_INFO: &str = "plan.json";
/// A plan that is not applied.
const DIFF: &str = "look";
/// The file with the spec of the last apply attempt, which a destroy needs.
pub(super) const LAST_SPEC: &str = "with.json";

/// The preconditions of a plan.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PlanInfo {
    /// The change for which it was created.
    key: String,
    /// A hash of the module and its variables.
    inputs: Vec<u8>,
    /// The lineage and serial of the state.
    state: String,
}

impl Workspace {
    /// Plans an apply, and retains the plan for it.
    pub(super) async fn plan_for(&self, key: &str) -> Result<Vec<Difference>, Fault> {
        let locked = self.prepare(false).await?;
        self.init(&locked).await?;
        self.create_plan(&locked, key).await
    }

    /// Applies the plan of this change; plans again if it is missing or stale.
    pub(super) async fn apply_plan_for(&self, key: &str, with: &str) -> Result<Outputs, Fault> {
        let locked = self.begin(false).await?;
        folder::write(&self.at(LAST_SPEC), with).map_err(|error| self.unwritable(&error))?;
        if !self.has_plan(key) {
            self.create_plan(&locked, key).await?;
        }
        match self.apply_plan(&locked).await {
            Err(fault) if is_stale(&fault) => {
                self.create_plan(&locked, key).await?;
                self.apply_plan(&locked).await?;
            }
            done => done?,
        }
        self.read_outputs(&locked).await
    }

    /// Detects drift. The plan is discarded.
    pub(super) async fn diff(&self) -> Result<Vec<Difference>, Fault> {
        let locked = self.prepare(false).await?;
        self.init(&locked).await?;
        self.plan_into(&locked, DIFF).await
    }

    /// Imports existing objects into the state.
    pub(super) async fn adopt(&self, imports: &[Import]) -> Result<(), Fault> {
        let locked = self.prepare(false).await?;
        self.init(&locked).await?;
        for import in imports {
            self.import(&locked, import).await?;
        }
        Ok(())
    }

    async fn import(&self, locked: &Locked, import: &Import) -> Result<(), Fault> {
        let command = Dialect::import(&import.address, &import.id, &self.variables());
        match self.run(locked, &command, "run.log", &[0]).await {
            // It is already imported.
            Err(fault) if is_managed(&fault) => Ok(()),
            done => done.map(drop),
        }
    }

    async fn create_plan(&self, locked: &Locked, key: &str) -> Result<Vec<Difference>, Fault> {
        self.delete_plan()?;
        let state = state::position(self.local_state().as_ref());
        let differences = self.plan_into(locked, PLAN).await?;
        let info = PlanInfo { key: key.to_owned(), inputs: self.inputs.hash(), state };
        let info = serde_json::to_string(&info).expect("plain data can be written as JSON");
        folder::write(&self.at(PLAN_INFO), &info).map_err(|error| self.unwritable(&error))?;
        Ok(differences)
    }

    /// Whether there is a plan of this change from the current state.
    fn has_plan(&self, key: &str) -> bool {
        let info = folder::read(&self.at(PLAN_INFO)).ok().flatten();
        let info = info.and_then(|text| serde_json::from_str::<PlanInfo>(&text).ok());
        let state = state::position(self.local_state().as_ref());
        let now = PlanInfo { key: key.to_owned(), inputs: self.inputs.hash(), state };
        self.at(PLAN).exists() && info == Some(now)
    }

    fn delete_plan(&self) -> Result<(), Fault> {
        let deleted = [PLAN_INFO, PLAN].iter().try_for_each(|name| folder::remove(&self.at(name)));
        deleted.map_err(|error| self.unwritable(&error))
    }

    async fn apply_plan(&self, locked: &Locked) -> Result<(), Fault> {
        // After a crash the plan must not be applied twice.
        folder::remove(&self.at(PLAN_INFO)).map_err(|error| self.unwritable(&error))?;
        let command = self.dialect().await?.apply_plan(&self.at(PLAN));
        let done = self.run(locked, &command, "run.log", &[0]).await;
        self.delete_plan()?;
        done.map(drop)
    }

    async fn plan_into(&self, locked: &Locked, name: &str) -> Result<Vec<Difference>, Fault> {
        let (dialect, path) = (self.dialect().await?, self.at(name));
        let command = self.with_variables(with_path(dialect.plan(), "-out=", &path));
        let events = self.run(locked, &command, "plan.log", &[0, 2]).await;
        folder::make_private(&path);
        let events = events?;
        let differences = if dialect.shows_plans() {
            self.show_plan(locked, name).await
        } else {
            Ok(plan::differences_from_text(&events.rest))
        };
        if name == DIFF {
            folder::remove(&path).map_err(|error| self.unwritable(&error))?;
        }
        differences
    }

    /// Reads the differences of a plan, and records its sensitive values.
    async fn show_plan(&self, locked: &Locked, name: &str) -> Result<Vec<Difference>, Fault> {
        let command = Dialect::show(&self.at(name));
        let status = self.start(locked, &command, "show.json", "show.log").await?;
        if !status.success() {
            let output = folder::read_log(&self.at("show.log"));
            return Err(self.failed(
                &command[0],
                status,
                Diagnostic::all_from_text(&output),
                &output,
            ));
        }
        let text = folder::read(&self.at("show.json")).map_err(|error| self.unwritable(&error))?;
        folder::remove(&self.at("show.json")).map_err(|error| self.unwritable(&error))?;
        let shown: Value = serde_json::from_str(&text.unwrap_or_default())
            .map_err(|_| Fault::Unavailable("Terraform's plan is not valid JSON".into()))?;
        let secrets = Value::from(plan::secrets(&shown));
        folder::write(&self.at(PLANNED_SECRETS), &secrets.to_string())
            .map_err(|error| self.unwritable(&error))?;
        Ok(plan::differences(&shown, &self.redactor()))
    }
}

fn is_stale(fault: &Fault) -> bool {
    contains_any(fault, &["plan is stale", "plan file is stale", "created from an older state"])
}

fn is_managed(fault: &Fault) -> bool {
    contains_any(fault, &["already managed by ", "would collide with an existing resource"])
}

fn contains_any(fault: &Fault, texts: &[&str]) -> bool {
    let why = fault.to_string().to_lowercase();
    texts.iter().any(|text| why.contains(text))
}
