//! The workspace of one module for one key: its copy, its variables, its state, its logs.
//!
//! Created resources must never be lost. The state is here during a run and after it, however it
//! ended; a copy stored elsewhere comes back with the next [`Inputs`], and the newer one counts.

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
use super::events::Events;
use super::inputs::{Inputs, Outputs};
use super::process::PLUGINS;
use super::redact::{Redactor, looks_secret};
use super::{Options, Runner, files, folder, module, process, state};

/// The variables, as a file that Terraform loads automatically, and as one for `-var-file`, which
/// overrides all files of the module.
const VARIABLES: &str = "terraform.tfvars.json";
const VAR_FILE: &str = "variables.json";

/// The secret variables, and the sensitive values of the last plan, to redact logs later.
const SECRETS: &str = "secrets.json";
pub(super) const PLANNED_SECRETS: &str = "hidden.json";

/// Configures the backend, whatever the module says: two keys must never share a state. Of all
/// override files the last one by name counts.
const OVERRIDE: &str = "~paddock_override.tf.json";
/// The file in which Terraform records the backend.
const BACKEND: &str = "data/terraform.tfstate";

/// Checking whether a workspace is busy locks it for a moment, hence the retries.
const LOCK_ATTEMPTS: u32 = 10;
const LOCK_DELAY: Duration = Duration::from_millis(20);

/// A module for one key.
#[derive(Clone)]
pub struct Workspace {
    pub(super) options: Arc<Options>,
    pub(super) dialect: Arc<OnceCell<Dialect>>,
    pub(super) inputs: Arc<Inputs>,
    folder: PathBuf,
}

/// The lock of a workspace. It lasts as long as any process holds the file.
pub(super) struct Locked {
    pub(super) file: File,
    /// The deadline of the whole run, if it has a timeout.
    pub(super) deadline: Option<Instant>,
}

impl Workspace {
    /// Creates nothing yet. The key is the name of the folder.
    pub(super) fn new(runner: &Runner, key: &str, inputs: Inputs) -> Result<Self, Fault> {
        if name::dns_label("key", key).is_err() {
            return Err(Fault::Refused(format!("{key} is not a valid workspace name")));
        }
        let Runner { options, dialect } = runner.clone();
        let folder = options.work_dir.join(key);
        Ok(Self { options, dialect, inputs: Arc::new(inputs), folder })
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The working directory of Terraform: the module.
    pub(super) fn cwd(&self) -> PathBuf {
        match self.inputs.files {
            Some(_) => self.at("module").join(&self.inputs.module),
            None => self.at("module"),
        }
    }

    /// The folder of the workspace.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the folder exists.
    pub fn exists(&self) -> bool {
        self.folder.exists()
    }

    /// Checks that the module exists. One with files does.
    pub fn check(&self) -> Result<(), Fault> {
        if self.inputs.files.is_some() {
            return Ok(());
        }
        module::find(&self.options.module_dir, &self.inputs.module).map(drop)
    }

    /// Whether the module declares this variable.
    pub fn declares(&self, variable: &str) -> bool {
        let found = module::find(&self.options.module_dir, &self.inputs.module);
        found.is_ok_and(|module| module::declared(&module).contains(variable))
    }

    /// Whether a process of any server runs here.
    pub fn is_busy(&self) -> bool {
        let Ok(file) = File::open(self.at("lock")) else { return false };
        matches!(file.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Interrupts a process that an earlier server left here. Terraform then writes its state and
    /// exits. Later calls kill it after the grace period.
    pub fn interrupt(&self) {
        process::interrupt_orphan(&self.folder, self.options.grace);
    }

    /// The same if the process exceeds its timeout, or was interrupted before.
    pub(super) fn interrupt_overdue(&self) {
        let limit = self.inputs.limit.unwrap_or(self.options.timeout);
        if process::is_overdue(&self.folder, limit) && self.check_fence().is_ok() {
            self.interrupt();
        }
    }

    /// Locks the workspace. It may block for a moment.
    pub(super) fn lock(&self) -> Result<Locked, Fault> {
        let open = || -> io::Result<File> {
            folder::create_private(&self.options.work_dir)?;
            folder::create_private(&self.options.work_dir.join(PLUGINS))?;
            folder::create_private(&self.folder)?;
            File::options().create(true).append(true).read(true).open(self.at("lock"))
        };
        let file = open().map_err(|error| self.unwritable(&error))?;
        for _ in 0..LOCK_ATTEMPTS {
            match file.try_lock() {
                Ok(()) => {
                    self.check_fence()?;
                    self.record_fence().map_err(|error| self.unwritable(&error))?;
                    let deadline = self.inputs.limit.map(|limit| base::monotonic() + limit);
                    return Ok(Locked { file, deadline });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_DELAY),
                Err(TryLockError::Error(error)) => return Err(self.unwritable(&error)),
            }
        }
        let why = "waiting for an earlier Terraform run to end";
        Err(Fault::Unavailable(why.into()))
    }

    /// Checks the fencing token: a server that was replaced must not start a run.
    pub(super) fn check_fence(&self) -> Result<(), Fault> {
        let recorded = folder::read(&self.at("fence")).map_err(|error| self.unwritable(&error))?;
        let recorded = recorded.and_then(|text| text.parse::<i64>().ok());
        match (self.inputs.fence, recorded) {
            (Some(ours), Some(theirs)) if ours < theirs => Err(Fault::Refused(format!(
                "another server has taken over: its fencing token is {theirs}, ours is {ours}"
            ))),
            _ => Ok(()),
        }
    }

    fn record_fence(&self) -> io::Result<()> {
        match self.inputs.fence {
            Some(fence) => folder::write(&self.at("fence"), &fence.to_string()),
            None => Ok(()),
        }
    }

    pub(super) fn unwritable(&self, error: &io::Error) -> Fault {
        Fault::Unavailable(format!(
            "cannot use the Terraform work folder {}: {error}. Check --terraform-work",
            self.options.work_dir.display()
        ))
    }

    /// Writes the module, its variables and the newest state. With `end`, a module that no longer
    /// exists is not an error: its copy destroys the resources.
    pub(super) fn set_up(&self, end: bool) -> Result<(), Fault> {
        self.delete_logs().map_err(|error| self.unwritable(&error))?;
        match &self.inputs.files {
            Some(all) => self.write_files(all, end)?,
            None => self.copy_module(end)?,
        }
        self.write_state()?;
        self.write_inputs().map_err(|error| self.unwritable(&error))
    }

    fn copy_module(&self, end: bool) -> Result<(), Fault> {
        let (to, module) = (self.at("module"), &self.inputs.module);
        match module::find(&self.options.module_dir, module) {
            Ok(found) => module::copy(&found, &self.options.module_dir, &to).map_err(|error| {
                Fault::Refused(format!("cannot copy the module {module}: {error}"))
            }),
            Err(_) if end && to.exists() => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    fn write_files(&self, all: &port::Files, end: bool) -> Result<(), Fault> {
        let module = &self.inputs.module;
        match files::check(all, module) {
            Err(_) if end && self.cwd().exists() => return Ok(()),
            checked => checked.map_err(|invalid| Fault::Refused(invalid.to_string()))?,
        }
        let written = files::write_all(all, &self.at("module"), &self.at("files"));
        written.and_then(|()| self.restore_providers()).map_err(|error| {
            Fault::Refused(format!("cannot write the files of the module {module}: {error}"))
        })
    }

    fn write_inputs(&self) -> io::Result<()> {
        let variables = serde_json::to_string(&self.inputs.all_variables())?;
        let to = match self.inputs.files {
            Some(_) => self.at(VAR_FILE),
            None => self.cwd().join(VARIABLES),
        };
        folder::write(&to, &variables)?;
        let secrets = serde_json::to_string(&self.inputs.secret_variables)?;
        folder::write(&self.at(SECRETS), &secrets)?;
        let path = self.at("terraform.tfstate");
        let local = json!({"terraform": {"backend": {"local": {"path": path}}}});
        folder::write(&self.cwd().join(OVERRIDE), &local.to_string())
    }

    /// Checks that the state is in the workspace. With an override file in the module that moves it
    /// elsewhere, created resources would be lost.
    pub(super) fn check_backend(&self) -> Result<(), Fault> {
        let recorded: Value = self.read_json(BACKEND);
        let path = recorded["backend"]["config"]["path"].as_str().map(Path::new);
        let is_ours = path == Some(&self.at("terraform.tfstate"));
        if is_ours && recorded["backend"]["type"] == "local" {
            return Ok(());
        }
        Err(Fault::Refused(format!(
            "the module {} configures another backend for its state. Remove `backend` and `cloud` \
             from its files *_override.tf",
            self.inputs.module
        )))
    }

    /// Adds the variables to a command of a module with files.
    pub(super) fn with_variables(&self, command: Vec<String>) -> Vec<String> {
        match self.inputs.files {
            Some(_) => with_path(command, "-var-file=", &self.at(VAR_FILE)),
            None => command,
        }
    }

    pub(super) fn variables(&self) -> PathBuf {
        self.at(VAR_FILE)
    }

    fn write_state(&self) -> Result<(), Fault> {
        let path = self.at("terraform.tfstate");
        let local = folder::read(&path).map_err(|error| self.unwritable(&error))?;
        let local = local.filter(|text| !text.trim().is_empty()).map(Secret::new);
        let module = &self.inputs.module;
        let is_own = self.is_own_state(local.as_ref());
        let newest = state::select(local.clone(), self.stored_state(), is_own).map_err(|why| {
    Fault::Refused(format!(
    "the state of the module {module} in {} was changed externally: {why}. Nothing was changed. \
     Restore the right state, or delete the file to use the stored one",
    path.display()
    ))
    })?;
        let Some(newest) = newest else { return Ok(()) };
        if state::serial(&newest).is_none() {
            return Err(Fault::Refused(format!(
                "the state of the module {module} is invalid. Restore {}",
                path.display()
            )));
        }
        let write = || -> io::Result<()> {
            self.note_external_change(local.as_ref(), &newest)?;
            if local.as_ref() == Some(&newest) {
                return Ok(());
            }
            if let Some(local) = &local {
                folder::write(&self.at("terraform.tfstate.aside"), local.reveal())?;
            }
            folder::write(&path, newest.reveal())
        };
        write().map_err(|error| self.unwritable(&error))
    }

    fn stored_state(&self) -> Option<Secret> {
        self.inputs.state.clone().filter(|state| !state.reveal().trim().is_empty())
    }

    /// The newest state: in the workspace, or stored.
    pub fn state(&self) -> Option<Secret> {
        // While Terraform writes it, the file may be incomplete.
        let local = self.local_state().filter(|state| state::serial(state).is_some());
        let is_own = self.is_own_state(local.as_ref());
        // An external state must not replace ours.
        state::select(local, self.stored_state(), is_own).unwrap_or_else(|_| self.stored_state())
    }

    pub(super) fn local_state(&self) -> Option<Secret> {
        let local = folder::read(&self.at("terraform.tfstate")).ok().flatten();
        local.filter(|text| !text.trim().is_empty()).map(Secret::new)
    }

    /// Whether there may be resources to destroy.
    pub fn may_hold_resources(&self) -> bool {
        let local = self.local_state();
        let is_own = self.is_own_state(local.as_ref());
        let newest = state::select(local, self.stored_state(), is_own);
        newest.map_or(true, |newest| newest.is_some_and(|state| state::may_have_resources(&state)))
    }

    /// The outputs of the last apply, if it succeeded.
    pub fn outputs(&self) -> Option<Outputs> {
        Outputs::parse(&folder::read(&self.at("outputs.json")).ok()??)
    }

    /// The progress of the current run, as a message.
    pub fn progress(&self) -> String {
        let exists = |log: &str| self.at(log).exists();
        let Some(log) = ["run.log", "plan.log"].into_iter().find(|log| exists(log)) else {
            return format!("Initializing the module {}.", self.inputs.module);
        };
        let events = Events::parse(&folder::read_log(&self.at(log)));
        let message = match events.rest.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) if !events.is_stream => format!("Terraform: {}", line.trim()),
            _ => events.message(),
        };
        self.redactor().redact(&message)
    }

    /// The completed part of the current run, in percent, if known.
    pub fn percent(&self) -> Option<u8> {
        Events::parse(&folder::read_log(&self.at("run.log"))).percent()
    }

    /// Redacts all known secrets.
    pub(super) fn redactor(&self) -> Redactor {
        let state = self.state();
        Redactor::new(&self.inputs.secret_variables)
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

    /// Credentials in the program's environment.
    fn passed_secrets(&self) -> Vec<Value> {
        let named = self.options.inherited_env.iter().filter(|name| looks_secret(name));
        let is_shown =
            |name: &str| ["_ID", "_PROJECT", "_REGION"].iter().any(|end| name.ends_with(end));
        let own = self.inputs.credentials.iter().filter(|(name, _)| !is_shown(name));
        let own = own.map(|(_, secret)| secret.reveal().to_owned());
        named.filter_map(|name| std::env::var(name).ok()).chain(own).map(Into::into).collect()
    }

    /// Deletes the workspace. The caller must know that no resource is left.
    pub fn remove(&self) -> Result<(), Fault> {
        // Modules and providers may have created trees of any depth.
        base::tree::remove(&self.folder).map_err(|error| self.unwritable(&error))
    }
}
