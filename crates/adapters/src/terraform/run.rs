//! The commands of Terraform, as Paddock uses them.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use base::Instant;
use port::Fault;
use tokio::time::sleep;

use super::dialect::Dialect;
use super::inputs::Outputs;
use super::process::{Ended, MOST_BYTES, PLUGINS, Running};
use super::stream::Told;
use super::words::{self, Complaint};
use super::workspace::{Held, Workspace};
use super::{folder, process};

/// How soon to look again whether somebody else still fetches plugins.
const FETCH_LOOK: Duration = Duration::from_millis(50);

impl Workspace {
    /// Makes what the module describes, or brings it to that. Dropped, it is interrupted.
    pub async fn apply(&self) -> Result<Outputs, Fault> {
        let held = self.begin(false).await?;
        self.run(&held, &self.dialect().await?.apply(), "run.log", &[0]).await?;
        self.read_outputs(&held).await
    }

    /// Destroys all that is in the state.
    pub async fn destroy(&self) -> Result<(), Fault> {
        let held = self.begin(true).await?;
        let command = self.with_variables(self.dialect().await?.destroy());
        self.run(&held, &command, "run.log", &[0]).await.map(drop)
    }

    /// How the program is spoken to. It is asked once; the folder of work must be there.
    pub(super) async fn dialect(&self) -> Result<Dialect, Fault> {
        let ask = || async {
            let said = process::version(&self.options, &self.options.work).await;
            said.map(|said| Dialect::parse(&said)).map_err(|error| self.unstarted(&error))
        };
        self.dialect.get_or_try_init(ask).await.copied()
    }

    /// From here on what is there is not known to be whole.
    pub(super) async fn begin(&self, end: bool) -> Result<Held, Fault> {
        let held = self.held(end).await?;
        folder::remove(&self.at("outputs.json")).map_err(|error| self.unwritable(&error))?;
        self.init(&held).await?;
        Ok(held)
    }

    pub(super) async fn held(&self, end: bool) -> Result<Held, Fault> {
        let this = self.clone();
        let set_up = move || -> Result<Held, Fault> {
            let held = this.take()?;
            this.set_up(end)?;
            Ok(held)
        };
        tokio::task::spawn_blocking(set_up)
            .await
            .unwrap_or_else(|error| Err(Fault::Unavailable(format!("it broke off: {error}"))))
    }

    pub(super) async fn init(&self, held: &Held) -> Result<(), Fault> {
        let command = Dialect::init();
        let fetching = self.fetching(held).await?;
        let ended = self.start(held, &command, "init.log", "init.log").await?;
        drop(fetching);
        if ended.success() {
            return self.check_backend();
        }
        let said = folder::read_log(&self.at("init.log"));
        Err(self.failed(&command[0], ended, Complaint::all_from_text(&said), &said))
    }

    /// The right to fetch plugins into the folder that all share: only one may at a time, because
    /// Terraform itself does not see to that.
    async fn fetching(&self, held: &Held) -> Result<std::fs::File, Fault> {
        let open = || -> io::Result<_> {
            folder::make_private(&self.options.work.join(PLUGINS))?;
            let lock = self.options.work.join(format!("{PLUGINS}.lock"));
            std::fs::File::options().create(true).append(true).open(lock)
        };
        let lock = open().map_err(|error| self.unwritable(&error))?;
        let until = base::monotonic() + self.left(held);
        while lock.try_lock().is_err() {
            if base::monotonic() >= until {
                return Err(self.late("init", held));
            }
            sleep(FETCH_LOOK).await;
        }
        Ok(lock)
    }

    /// Runs a command that tells what it does. The state is there afterwards, however it ends.
    pub(super) async fn run(
        &self,
        held: &Held,
        command: &[String],
        log: &str,
        good: &[i32],
    ) -> Result<Told, Fault> {
        self.forget_seen().map_err(|error| self.unwritable(&error))?;
        let before = folder::log_length(&self.at(log));
        let ended = self.start(held, command, log, log).await;
        folder::keep_private(&self.at("terraform.tfstate"));
        self.note_seen().map_err(|error| self.unwritable(&error))?;
        let ended = ended?;
        let mut told = Told::read(&folder::read_log_from(&self.at(log), before));
        if ended.code().is_some_and(|code| good.contains(&code)) {
            return Ok(told);
        }
        let mut complaints = std::mem::take(&mut told.complaints);
        complaints.extend(Complaint::all_from_text(&told.rest));
        Err(self.failed(&command[0], ended, complaints, &told.rest))
    }

    pub(super) async fn read_outputs(&self, held: &Held) -> Result<Outputs, Fault> {
        let command = Dialect::output();
        let ended = self.start(held, &command, "outputs.new", "output.log").await?;
        let said = folder::read_log(&self.at("output.log"));
        if !ended.success() {
            return Err(self.failed(&command[0], ended, Complaint::all_from_text(&said), &said));
        }
        let read = || -> io::Result<Option<Outputs>> {
            let outputs = folder::read(&self.at("outputs.new"))?;
            std::fs::rename(self.at("outputs.new"), self.at("outputs.json"))?;
            Ok(outputs.as_deref().and_then(Outputs::parse))
        };
        let outputs = read().map_err(|error| self.unwritable(&error))?;
        outputs.ok_or_else(|| Fault::Unavailable("Terraform's outputs are no JSON".into()))
    }

    pub(super) async fn start(
        &self,
        held: &Held,
        command: &[String],
        output: &str,
        log: &str,
    ) -> Result<ExitStatus, Fault> {
        let files = || -> io::Result<_> {
            let lock = held.lock.try_clone()?;
            // Whoever reads a log meanwhile must not miss what a command before this one has said.
            if log == output {
                let said = folder::append(&self.at(log))?;
                return Ok((lock, said.try_clone()?, said));
            }
            Ok((lock, folder::create(&self.at(output))?, folder::create(&self.at(log))?))
        };
        let files = files().map_err(|error| self.unwritable(&error))?;
        let running = Running::start(&self.options, self.folder(), &self.cwd(), command, files);
        let running = running.map_err(|error| self.unstarted(&error))?;
        let logs = [self.at(output), self.at(log)];
        let ended = running.ended(self.left(held), &logs).await;
        match ended.map_err(|error| self.unstarted(&error))? {
            Ended::With(status) => Ok(status),
            Ended::Late => Err(self.late(&command[0], held)),
            Ended::Flooded => Err(Fault::Refused(format!(
                "{}: it wrote more than {} MiB and was stopped; look at what the module's \
                 programs write",
                self.cannot(&command[0]),
                MOST_BYTES / 1024 / 1024
            ))),
        }
    }

    /// How long the next command may take.
    fn left(&self, held: &Held) -> Duration {
        let left = |until: Instant| until.saturating_duration_since(base::monotonic());
        held.until.map_or(self.options.timeout, left)
    }

    fn late(&self, command: &str, held: &Held) -> Fault {
        let known = self.cannot(command);
        let (limit, is_own) = match self.inputs.limit.filter(|_| held.until.is_some()) {
            Some(limit) => (limit.as_secs(), true),
            None => (self.options.timeout.as_secs(), false),
        };
        let late = format!("{known}: it took longer than {limit} s and was stopped");
        if is_own {
            let last = self.progress();
            return Fault::Refused(format!(
                "{late}; what it had made is kept. The last of it: {last}"
            ));
        }
        Fault::Unavailable(format!("{late}; what it had made is kept, and it goes on from there"))
    }

    fn unstarted(&self, error: &io::Error) -> Fault {
        Fault::Unavailable(format!(
            "{} can't be started: {error}; name Terraform or OpenTofu with --terraform-program",
            self.options.program.display()
        ))
    }

    fn cannot(&self, command: &str) -> String {
        format!("Terraform can't {command} the module {}", self.inputs.module)
    }

    pub(super) fn failed(
        &self,
        command: &str,
        ended: ExitStatus,
        complaints: Vec<Complaint>,
        said: &str,
    ) -> Fault {
        let (known, hidden) = (self.cannot(command), self.hidden());
        if ended.code().is_none() {
            return Fault::Unavailable(format!("{known}: it was ended from outside ({ended})"));
        }
        let complaints =
            if complaints.is_empty() { words::last_words(said, &hidden) } else { complaints };
        words::fault(&known, complaints, &hidden)
    }
}
