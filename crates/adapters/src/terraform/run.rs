//! The Terraform commands of a workspace.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use base::Instant;
use port::Fault;
use tokio::time::sleep;

use super::diagnostic::{self, Diagnostic};
use super::dialect::Dialect;
use super::events::Events;
use super::inputs::Outputs;
use super::process::{Exit, MAX_OUTPUT_BYTES, PLUGINS, Process};
use super::workspace::{Locked, Workspace};
use super::{folder, process};

/// How often to check whether another run still downloads plugins.
const DOWNLOAD_POLL: Duration = Duration::from_millis(50);

impl Workspace {
    /// Applies the module. Dropping the future interrupts it.
    pub async fn apply(&self) -> Result<Outputs, Fault> {
        let locked = self.begin(false).await?;
        self.run(&locked, &self.dialect().await?.apply(), "run.log", &[0]).await?;
        self.read_outputs(&locked).await
    }

    /// Destroys all resources in the state.
    pub async fn destroy(&self) -> Result<(), Fault> {
        let locked = self.begin(true).await?;
        let command = self.with_variables(self.dialect().await?.destroy());
        self.run(&locked, &command, "run.log", &[0]).await.map(drop)
    }

    /// The dialect of the program, determined once; the work folder must exist.
    pub(super) async fn dialect(&self) -> Result<Dialect, Fault> {
        let detect = || async {
            let output = process::version(&self.options, &self.options.work_dir).await;
            output.map(|output| Dialect::parse(&output)).map_err(|error| self.not_started(&error))
        };
        self.dialect.get_or_try_init(detect).await.copied()
    }

    /// Prepares a run that changes resources: the outputs are no longer valid.
    pub(super) async fn begin(&self, end: bool) -> Result<Locked, Fault> {
        let locked = self.prepare(end).await?;
        folder::remove(&self.at("outputs.json")).map_err(|error| self.unwritable(&error))?;
        self.init(&locked).await?;
        Ok(locked)
    }

    /// Locks the workspace and writes its files.
    pub(super) async fn prepare(&self, end: bool) -> Result<Locked, Fault> {
        let this = self.clone();
        let set_up = move || -> Result<Locked, Fault> {
            let locked = this.lock()?;
            this.set_up(end)?;
            Ok(locked)
        };
        tokio::task::spawn_blocking(set_up).await.unwrap_or_else(|error| {
            Err(Fault::Unavailable(format!("preparing the workspace failed: {error}")))
        })
    }

    pub(super) async fn init(&self, locked: &Locked) -> Result<(), Fault> {
        let command = Dialect::init();
        let download = self.lock_plugins(locked).await?;
        let status = self.start(locked, &command, "init.log", "init.log").await?;
        drop(download);
        if status.success() {
            return self.check_backend();
        }
        let output = folder::read_log(&self.at("init.log"));
        Err(self.failed(&command[0], status, Diagnostic::all_from_text(&output), &output))
    }

    /// Locks the shared plugin cache: Terraform itself does not serialise downloads.
    async fn lock_plugins(&self, locked: &Locked) -> Result<std::fs::File, Fault> {
        let open = || -> io::Result<_> {
            folder::create_private(&self.options.work_dir.join(PLUGINS))?;
            let lock = self.options.work_dir.join(format!("{PLUGINS}.lock"));
            std::fs::File::options().create(true).append(true).open(lock)
        };
        let lock = open().map_err(|error| self.unwritable(&error))?;
        let until = base::monotonic() + self.time_left(locked);
        while lock.try_lock().is_err() {
            if base::monotonic() >= until {
                return Err(self.timed_out("init", locked));
            }
            sleep(DOWNLOAD_POLL).await;
        }
        Ok(lock)
    }

    /// Runs a command that reports its progress. The state is recorded however it ends.
    pub(super) async fn run(
        &self,
        locked: &Locked,
        command: &[String],
        log: &str,
        good: &[i32],
    ) -> Result<Events, Fault> {
        self.forget_state_hash().map_err(|error| self.unwritable(&error))?;
        let before = folder::log_length(&self.at(log));
        let status = self.start(locked, command, log, log).await;
        folder::make_private(&self.at("terraform.tfstate"));
        self.record_state_hash().map_err(|error| self.unwritable(&error))?;
        let status = status?;
        let mut events = Events::parse(&folder::read_log_from(&self.at(log), before));
        if status.code().is_some_and(|code| good.contains(&code)) {
            return Ok(events);
        }
        let mut diagnostics = std::mem::take(&mut events.diagnostics);
        diagnostics.extend(Diagnostic::all_from_text(&events.rest));
        Err(self.failed(&command[0], status, diagnostics, &events.rest))
    }

    pub(super) async fn read_outputs(&self, locked: &Locked) -> Result<Outputs, Fault> {
        let command = Dialect::output();
        let status = self.start(locked, &command, "outputs.new", "output.log").await?;
        let output = folder::read_log(&self.at("output.log"));
        if !status.success() {
            return Err(self.failed(
                &command[0],
                status,
                Diagnostic::all_from_text(&output),
                &output,
            ));
        }
        let read = || -> io::Result<Option<Outputs>> {
            let outputs = folder::read(&self.at("outputs.new"))?;
            std::fs::rename(self.at("outputs.new"), self.at("outputs.json"))?;
            Ok(outputs.as_deref().and_then(Outputs::parse))
        };
        let outputs = read().map_err(|error| self.unwritable(&error))?;
        outputs.ok_or_else(|| Fault::Unavailable("Terraform's outputs are not valid JSON".into()))
    }

    pub(super) async fn start(
        &self,
        locked: &Locked,
        command: &[String],
        output: &str,
        log: &str,
    ) -> Result<ExitStatus, Fault> {
        let files = || -> io::Result<_> {
            let lock = locked.file.try_clone()?;
            // A concurrent reader of the log must not miss the output of an earlier command.
            if log == output {
                let file = folder::append(&self.at(log))?;
                return Ok((lock, file.try_clone()?, file));
            }
            Ok((lock, folder::create(&self.at(output))?, folder::create(&self.at(log))?))
        };
        let files = files().map_err(|error| self.unwritable(&error))?;
        let process = Process::start(
            (&self.options, &self.inputs.credentials),
            self.folder(),
            &self.cwd(),
            command,
            files,
        );
        let process = process.map_err(|error| self.not_started(&error))?;
        let logs = [self.at(output), self.at(log)];
        let exit = process.wait(self.time_left(locked), &logs).await;
        match exit.map_err(|error| self.not_started(&error))? {
            Exit::Status(status) => Ok(status),
            Exit::TimedOut => Err(self.timed_out(&command[0], locked)),
            Exit::OutputLimit => Err(Fault::Refused(format!(
                "{}: stopped after more than {} MiB of output. Check the output of the module's \
                 programs",
                self.failed_command(&command[0]),
                MAX_OUTPUT_BYTES / 1024 / 1024
            ))),
        }
    }

    /// The timeout of the next command.
    fn time_left(&self, locked: &Locked) -> Duration {
        let left = |until: Instant| until.saturating_duration_since(base::monotonic());
        locked.deadline.map_or(self.options.timeout, left)
    }

    fn timed_out(&self, command: &str, locked: &Locked) -> Fault {
        let failed = self.failed_command(command);
        let (limit, is_own) = match self.inputs.limit.filter(|_| locked.deadline.is_some()) {
            Some(limit) => (limit.as_secs(), true),
            None => (self.options.timeout.as_secs(), false),
        };
        let message =
            format!("{failed}: timed out after {limit} s. Created resources are in the state");
        if is_own {
            let last = self.progress();
            return Fault::Refused(format!("{message}. Last progress: {last}"));
        }
        Fault::Unavailable(format!("{message}; the next run continues from there"))
    }

    fn not_started(&self, error: &io::Error) -> Fault {
        Fault::Unavailable(format!(
            "cannot start {}: {error}. Set Terraform or OpenTofu with --terraform-program",
            self.options.program.display()
        ))
    }

    fn failed_command(&self, command: &str) -> String {
        format!("Terraform {command} failed for module {}", self.inputs.module)
    }

    pub(super) fn failed(
        &self,
        command: &str,
        status: ExitStatus,
        diagnostics: Vec<Diagnostic>,
        output: &str,
    ) -> Fault {
        let (failed, redactor) = (self.failed_command(command), self.redactor());
        if status.code().is_none() {
            return Fault::Unavailable(format!("{failed}: killed ({status})"));
        }
        let diagnostics = if diagnostics.is_empty() {
            diagnostic::last_lines(output, &redactor)
        } else {
            diagnostics
        };
        diagnostic::fault(&failed, diagnostics, &redactor)
    }
}
