//! A folder in which one module runs for one key: its copy, its variables, its state, its logs.
//!
//! What was made must never be forgotten. The state lies here while Terraform runs and after it, however
//! it ended; whoever keeps it elsewhere gives it back with the next [`Inputs`], and the newer one counts.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::port::Fault;
use model::{Secret, name};
use serde_json::json;

use super::hidden::Hidden;
use super::inputs::{Inputs, Outputs};
use super::stream::Told;
use super::{Options, folder, module, process, state};

/// Settles where the state is, whatever the module says: two clusters must never share one.
const OVERRIDE: &str = "paddock_override.tf.json";

/// Whoever only looks whether a folder is taken holds it for a moment.
const LOCK_TRIES: u32 = 10;
const LOCK_DELAY: Duration = Duration::from_millis(20);

/// One module for one key.
#[derive(Clone)]
pub struct Workspace {
    pub(super) options: Arc<Options>,
    pub(super) inputs: Arc<Inputs>,
    folder: PathBuf,
}

/// The right to run something in a folder. It lasts as long as any process has it.
pub(super) struct Held(pub(super) File);

impl Workspace {
    /// Nothing is made yet. The key becomes the name of the folder.
    pub(super) fn new(options: Arc<Options>, key: &str, inputs: Inputs) -> Result<Self, Fault> {
        if name::dns_label("key", key).is_err() {
            return Err(Fault::Refused(format!("{key} can't be the name of a folder")));
        }
        let folder = options.work.join(key);
        Ok(Self { options, inputs: Arc::new(inputs), folder })
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Where everything of it is.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Is there a folder at all?
    pub fn exists(&self) -> bool {
        self.folder.exists()
    }

    /// Is there such a module?
    pub fn check(&self) -> Result<(), Fault> {
        module::find(&self.options.modules, &self.inputs.module).map(drop)
    }

    /// Does the module declare this variable?
    pub fn declares(&self, variable: &str) -> bool {
        let found = module::find(&self.options.modules, &self.inputs.module);
        found.is_ok_and(|module| module::declared(&module).contains(variable))
    }

    /// Does a process run here, of this server, of one before it, or of another?
    pub fn is_busy(&self) -> bool {
        let Ok(file) = File::open(self.at("lock")) else { return false };
        matches!(file.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Interrupts what a server that is no more has left running here. Terraform then writes down what
    /// there is, and ends.
    pub fn interrupt(&self) {
        process::interrupt_left(&self.folder, &self.at("module"));
    }

    /// Takes the folder, so that nobody else runs anything in it. It may wait a little.
    pub(super) fn take(&self) -> Result<Held, Fault> {
        let open = || -> io::Result<File> {
            folder::make_private(&self.options.work)?;
            folder::make_private(&self.folder)?;
            File::options().create(true).append(true).read(true).open(self.at("lock"))
        };
        let file = open().map_err(|error| self.unwritable(&error))?;
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Held(file)),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_DELAY),
                Err(TryLockError::Error(error)) => return Err(self.unwritable(&error)),
            }
        }
        let why = "an earlier run of Terraform is still at it; it is waited for";
        Err(Fault::Unavailable(why.into()))
    }

    pub(super) fn unwritable(&self, error: &io::Error) -> Fault {
        Fault::Unavailable(format!(
            "the folder in which Terraform runs, {}, can't be used: {error}; look at \
             --terraform-work",
            self.options.work.display()
        ))
    }

    /// Puts the module, its variables and the newest state in place. A module that is no more can still
    /// `end` what it has made.
    pub(super) fn set_up(&self, end: bool) -> Result<(), Fault> {
        let (to, known) = (self.at("module"), &self.inputs.module);
        match module::find(&self.options.modules, known) {
            Ok(found) => module::copy(&found, &self.options.modules, &to).map_err(|error| {
                Fault::Refused(format!("the module {known} can't be copied: {error}"))
            })?,
            Err(_) if end && to.exists() => {}
            Err(fault) => return Err(fault),
        }
        self.place_state()?;
        self.place_inputs(&to).map_err(|error| self.unwritable(&error))
    }

    fn place_inputs(&self, to: &Path) -> io::Result<()> {
        let variables = serde_json::to_string(&self.inputs.all_variables())?;
        folder::write(&to.join("terraform.tfvars.json"), &variables)?;
        let local = json!({"terraform": {"backend": {"local": {"path": "../terraform.tfstate"}}}});
        folder::write(&to.join(OVERRIDE), &local.to_string())?;
        for log in ["init.log", "run.log"] {
            folder::remove(&self.at(log))?;
        }
        Ok(())
    }

    fn place_state(&self) -> Result<(), Fault> {
        let path = self.at("terraform.tfstate");
        let here = folder::read(&path).map_err(|error| self.unwritable(&error))?;
        let here = here.filter(|text| !text.trim().is_empty()).map(Secret::new);
        let Some(newest) = state::newer(here.clone(), self.kept()) else { return Ok(()) };
        if state::serial(&newest).is_none() {
            return Err(Fault::Refused(format!(
                "the state of the module {} can't be read; put a good one in place of {}",
                self.inputs.module,
                path.display()
            )));
        }
        if here.as_ref() == Some(&newest) {
            return Ok(());
        }
        folder::write(&path, newest.reveal()).map_err(|error| self.unwritable(&error))
    }

    fn kept(&self) -> Option<Secret> {
        self.inputs.state.clone().filter(|state| !state.reveal().trim().is_empty())
    }

    /// The newest state there is: in the folder, or as it was given.
    pub fn state(&self) -> Option<Secret> {
        let here = folder::read(&self.at("terraform.tfstate")).ok().flatten().map(Secret::new);
        // While Terraform writes, it can't be read.
        state::newer(here.filter(|state| state::serial(state).is_some()), self.kept())
    }

    /// May there be something that has to be destroyed?
    pub fn holds_something(&self) -> bool {
        let here = folder::read(&self.at("terraform.tfstate"));
        let here = here.unwrap_or_default().filter(|text| !text.is_empty()).map(Secret::new);
        state::newer(here, self.kept()).is_some_and(|state| state::holds(&state))
    }

    /// The outputs of the last apply, if it came to its end.
    pub fn outputs(&self) -> Option<Outputs> {
        Outputs::parse(&folder::read(&self.at("outputs.json")).ok()??)
    }

    /// How far the run is that goes on here, as a sentence.
    pub fn progress(&self) -> String {
        if !self.at("run.log").exists() {
            return format!("Terraform fetches what the module {} needs.", self.inputs.module);
        }
        self.hidden().blot(&Told::read(&folder::read_log(&self.at("run.log"))).sentence())
    }

    /// What must not be in anything that Terraform says.
    pub(super) fn hidden(&self) -> Hidden {
        Hidden::of(&self.inputs.secret_variables).and_outputs(self.state().as_ref())
    }

    /// Takes the folder away. Whoever does so must know that nothing is left to be destroyed.
    pub fn remove(&self) -> Result<(), Fault> {
        match std::fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.unwritable(&error)),
            _ => Ok(()),
        }
    }
}
