//! A folder in which one module runs for one key: its copy, its variables, its state, its logs.
//!
//! What was made must never be forgotten. The state lies here while Terraform runs and after it, however
//! it ended; whoever keeps it elsewhere gives it back with the next [`Inputs`], and the newer one counts.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use model::{Secret, name};
use port::Fault;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::dialect::{Dialect, with_path};
use super::hidden::{Hidden, looks_secret};
use super::inputs::{Inputs, Outputs};
use super::process::PLUGINS;
use super::stream::Told;
use super::{Options, Runner, files, folder, module, process, state};

/// Variables, as a file that Terraform reads by itself, and as one that it is told of: that one wins over
/// all that may lie beside the module.
const VARIABLES: &str = "terraform.tfvars.json";
const VARIABLES_TOLD: &str = "variables.json";

/// What must not be seen of the variables, and of the last plan, for whoever reads the logs later.
const SECRETS: &str = "secrets.json";
pub(super) const PLANNED_SECRETS: &str = "hidden.json";

/// Settles where the state is, whatever the module says: two keys must never share one. Of all files that
/// override others the last one counts, by name.
const OVERRIDE: &str = "~paddock_override.tf.json";
/// Where Terraform notes what it took for the place of the state.
const BACKEND: &str = "data/terraform.tfstate";

/// Whoever only looks whether a folder is taken holds it for a moment.
const LOCK_TRIES: u32 = 10;
const LOCK_DELAY: Duration = Duration::from_millis(20);

/// One module for one key.
#[derive(Clone)]
pub struct Workspace {
    pub(super) options: Arc<Options>,
    pub(super) dialect: Arc<OnceCell<Dialect>>,
    pub(super) inputs: Arc<Inputs>,
    folder: PathBuf,
}

/// The right to run something in a folder. It lasts as long as any process has it.
pub(super) struct Held {
    pub(super) lock: File,
    /// Until when all of it must be over, if the whole of it has a limit.
    pub(super) until: Option<Instant>,
}

impl Workspace {
    /// Nothing is made yet. The key becomes the name of the folder.
    pub(super) fn new(runner: &Runner, key: &str, inputs: Inputs) -> Result<Self, Fault> {
        if name::dns_label("key", key).is_err() {
            return Err(Fault::Refused(format!("{key} can't be the name of a folder")));
        }
        let Runner { options, dialect } = runner.clone();
        let folder = options.work.join(key);
        Ok(Self { options, dialect, inputs: Arc::new(inputs), folder })
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Where Terraform runs: in the module.
    pub(super) fn cwd(&self) -> PathBuf {
        match self.inputs.files {
            Some(_) => self.at("module").join(&self.inputs.module),
            None => self.at("module"),
        }
    }

    /// Where everything of it is.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Is there a folder at all?
    pub fn exists(&self) -> bool {
        self.folder.exists()
    }

    /// Is there such a module? One that came with its files is.
    pub fn check(&self) -> Result<(), Fault> {
        if self.inputs.files.is_some() {
            return Ok(());
        }
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
    /// there is, and ends. Asked again, what has not ended after a while is killed.
    pub fn interrupt(&self) {
        process::interrupt_left(&self.folder, self.options.grace);
    }

    /// Does the same if that has had its time, or was interrupted before.
    pub(super) fn interrupt_overdue(&self) {
        let limit = self.inputs.limit.unwrap_or(self.options.timeout);
        if process::is_overdue(&self.folder, limit) && self.check_fence().is_ok() {
            self.interrupt();
        }
    }

    /// Takes the folder, so that nobody else runs anything in it. It may wait a little.
    pub(super) fn take(&self) -> Result<Held, Fault> {
        let open = || -> io::Result<File> {
            folder::make_private(&self.options.work)?;
            folder::make_private(&self.options.work.join(PLUGINS))?;
            folder::make_private(&self.folder)?;
            File::options().create(true).append(true).read(true).open(self.at("lock"))
        };
        let file = open().map_err(|error| self.unwritable(&error))?;
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => {
                    self.check_fence()?;
                    self.note_fence().map_err(|error| self.unwritable(&error))?;
                    let until = self.inputs.limit.map(|limit| base::monotonic() + limit);
                    return Ok(Held { lock: file, until });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_DELAY),
                Err(TryLockError::Error(error)) => return Err(self.unwritable(&error)),
            }
        }
        let why = "an earlier run of Terraform is still at it; it is waited for";
        Err(Fault::Unavailable(why.into()))
    }

    /// Nothing may be begun by a server that another one has taken over from.
    pub(super) fn check_fence(&self) -> Result<(), Fault> {
        let seen = folder::read(&self.at("fence")).map_err(|error| self.unwritable(&error))?;
        let seen = seen.and_then(|text| text.parse::<i64>().ok());
        match (self.inputs.fence, seen) {
            (Some(ours), Some(seen)) if ours < seen => Err(Fault::Refused(format!(
                "another server has taken over (its fence is {seen}, ours {ours}); nothing is begun"
            ))),
            _ => Ok(()),
        }
    }

    fn note_fence(&self) -> io::Result<()> {
        match self.inputs.fence {
            Some(fence) => folder::write(&self.at("fence"), &fence.to_string()),
            None => Ok(()),
        }
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
        self.forget_logs().map_err(|error| self.unwritable(&error))?;
        match &self.inputs.files {
            Some(all) => self.place_files(all, end)?,
            None => self.copy_module(end)?,
        }
        self.place_state()?;
        self.place_inputs().map_err(|error| self.unwritable(&error))
    }

    fn copy_module(&self, end: bool) -> Result<(), Fault> {
        let (to, known) = (self.at("module"), &self.inputs.module);
        match module::find(&self.options.modules, known) {
            Ok(found) => module::copy(&found, &self.options.modules, &to).map_err(|error| {
                Fault::Refused(format!("the module {known} can't be copied: {error}"))
            }),
            Err(_) if end && to.exists() => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    fn place_files(&self, all: &port::Files, end: bool) -> Result<(), Fault> {
        let known = &self.inputs.module;
        match files::check(all, known) {
            Err(_) if end && self.cwd().exists() => return Ok(()),
            checked => checked.map_err(|invalid| Fault::Refused(invalid.to_string()))?,
        }
        let placed = files::place(all, &self.at("module"), &self.at("files"));
        placed.and_then(|()| self.place_providers()).map_err(|error| {
            Fault::Refused(format!("the files of the module {known} can't be written: {error}"))
        })
    }

    fn place_inputs(&self) -> io::Result<()> {
        let variables = serde_json::to_string(&self.inputs.all_variables())?;
        let to = match self.inputs.files {
            Some(_) => self.at(VARIABLES_TOLD),
            None => self.cwd().join(VARIABLES),
        };
        folder::write(&to, &variables)?;
        let secrets = serde_json::to_string(&self.inputs.secret_variables)?;
        folder::write(&self.at(SECRETS), &secrets)?;
        let path = self.at("terraform.tfstate");
        let local = json!({"terraform": {"backend": {"local": {"path": path}}}});
        folder::write(&self.cwd().join(OVERRIDE), &local.to_string())
    }

    /// Is the state where it shall be? A module may have a file that moves it elsewhere: nothing would be
    /// known of what it makes.
    pub(super) fn check_backend(&self) -> Result<(), Fault> {
        let noted: Value = self.read_json(BACKEND);
        let path = noted["backend"]["config"]["path"].as_str().map(Path::new);
        let is_ours = path == Some(&self.at("terraform.tfstate"));
        if is_ours && noted["backend"]["type"] == "local" {
            return Ok(());
        }
        Err(Fault::Refused(format!(
            "the module {} keeps its state elsewhere than Paddock does; take the backend, or cloud, \
             out of its files *_override.tf",
            self.inputs.module
        )))
    }

    /// A command that needs the variables of a module that came with its files.
    pub(super) fn with_variables(&self, command: Vec<String>) -> Vec<String> {
        match self.inputs.files {
            Some(_) => with_path(command, "-var-file=", &self.at(VARIABLES_TOLD)),
            None => command,
        }
    }

    pub(super) fn variables(&self) -> PathBuf {
        self.at(VARIABLES_TOLD)
    }

    fn place_state(&self) -> Result<(), Fault> {
        let path = self.at("terraform.tfstate");
        let here = folder::read(&path).map_err(|error| self.unwritable(&error))?;
        let here = here.filter(|text| !text.trim().is_empty()).map(Secret::new);
        let known = &self.inputs.module;
        let is_ours = self.is_ours(here.as_ref());
        let newest = state::chosen(here.clone(), self.kept(), is_ours).map_err(|why| {
            Fault::Refused(format!(
                "somebody has changed the state of the module {known} in {}: {why}. Nothing was \
                 done. Put the right one in its place, or take it away to go on from the kept one",
                path.display()
            ))
        })?;
        let Some(newest) = newest else { return Ok(()) };
        if state::serial(&newest).is_none() {
            return Err(Fault::Refused(format!(
                "the state of the module {known} can't be read; put a good one in place of {}",
                path.display()
            )));
        }
        let place = || -> io::Result<()> {
            self.tell_unseen(here.as_ref(), &newest)?;
            if here.as_ref() == Some(&newest) {
                return Ok(());
            }
            if let Some(here) = &here {
                folder::write(&self.at("terraform.tfstate.aside"), here.reveal())?;
            }
            folder::write(&path, newest.reveal())
        };
        place().map_err(|error| self.unwritable(&error))
    }

    fn kept(&self) -> Option<Secret> {
        self.inputs.state.clone().filter(|state| !state.reveal().trim().is_empty())
    }

    /// The newest state there is: in the folder, or as it was given.
    pub fn state(&self) -> Option<Secret> {
        // While Terraform writes, it can't be read.
        let here = self.state_here().filter(|state| state::serial(state).is_some());
        let is_ours = self.is_ours(here.as_ref());
        // One that somebody else put there must not take the place of ours.
        state::chosen(here, self.kept(), is_ours).unwrap_or_else(|_| self.kept())
    }

    pub(super) fn state_here(&self) -> Option<Secret> {
        let here = folder::read(&self.at("terraform.tfstate")).ok().flatten();
        here.filter(|text| !text.trim().is_empty()).map(Secret::new)
    }

    /// May there be something that has to be destroyed?
    pub fn holds_something(&self) -> bool {
        let here = self.state_here();
        let is_ours = self.is_ours(here.as_ref());
        let newest = state::chosen(here, self.kept(), is_ours);
        newest.map_or(true, |newest| newest.is_some_and(|state| state::holds(&state)))
    }

    /// The outputs of the last apply, if it came to its end.
    pub fn outputs(&self) -> Option<Outputs> {
        Outputs::parse(&folder::read(&self.at("outputs.json")).ok()??)
    }

    /// How far the run is that goes on here, as a sentence.
    pub fn progress(&self) -> String {
        let is_there = |log: &str| self.at(log).exists();
        let Some(log) = ["run.log", "plan.log"].into_iter().find(|log| is_there(log)) else {
            return format!("Terraform fetches what the module {} needs.", self.inputs.module);
        };
        let told = Told::read(&folder::read_log(&self.at(log)));
        let said = match told.rest.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) if !told.is_stream => format!("Terraform: {}", line.trim()),
            _ => told.sentence(),
        };
        self.hidden().blot(&said)
    }

    /// How much of the run is done that goes on here, in percent, if it says so.
    pub fn percent(&self) -> Option<u8> {
        Told::read(&folder::read_log(&self.at("run.log"))).percent()
    }

    /// What must not be in anything that Terraform says.
    pub(super) fn hidden(&self) -> Hidden {
        let state = self.state();
        Hidden::of(&self.inputs.secret_variables)
            .and_variables(&self.inputs.past_secrets)
            .and_variables(&self.read_json(SECRETS))
            .and_outputs(state.as_ref())
            .and_attributes(state.as_ref())
            .and_values(&self.read_json::<Vec<_>>(PLANNED_SECRETS))
            .and_values(&self.passed_secrets())
    }

    fn read_json<T: DeserializeOwned + Default>(&self, name: &str) -> T {
        let text = folder::read(&self.at(name)).ok().flatten();
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Credentials that the program gets from the server's environment.
    fn passed_secrets(&self) -> Vec<Value> {
        let named = self.options.pass.iter().filter(|name| looks_secret(name));
        named.filter_map(|name| std::env::var(name).ok()).map(Into::into).collect()
    }

    /// Takes the folder away. Whoever does so must know that nothing is left to be destroyed.
    pub fn remove(&self) -> Result<(), Fault> {
        match std::fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.unwritable(&error)),
            _ => Ok(()),
        }
    }
}
