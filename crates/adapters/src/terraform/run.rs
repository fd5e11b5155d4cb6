//! The commands of Terraform, as Paddock uses them.

use std::io;
use std::process::ExitStatus;

use engine::port::Fault;

use super::folder;
use super::inputs::{Change, Outputs};
use super::process::Running;
use super::stream::Told;
use super::words::{self, Complaint};
use super::workspace::{Held, Workspace};

const INIT: [&str; 4] = ["init", "-input=false", "-no-color", "-reconfigure"];
const APPLY: [&str; 5] = ["apply", "-auto-approve", "-input=false", "-no-color", "-json"];
const DESTROY: [&str; 5] = ["destroy", "-auto-approve", "-input=false", "-no-color", "-json"];
const PLAN: [&str; 5] = ["plan", "-detailed-exitcode", "-input=false", "-no-color", "-json"];
const OUTPUT: [&str; 3] = ["output", "-json", "-no-color"];

impl Workspace {
    /// Makes what the module describes, or brings it to that. Dropped, it is interrupted.
    pub async fn apply(&self) -> Result<Outputs, Fault> {
        let held = self.begin(false).await?;
        self.run(&held, &APPLY, &[0]).await?;
        self.read_outputs(&held).await
    }

    /// Destroys all that is in the state.
    pub async fn destroy(&self) -> Result<(), Fault> {
        let held = self.begin(true).await?;
        self.run(&held, &DESTROY, &[0]).await.map(drop)
    }

    /// What an apply would change: nothing, if all is as it was made.
    pub async fn plan(&self) -> Result<Vec<Change>, Fault> {
        let held = self.held(false).await?;
        self.init(&held).await?;
        Ok(self.run(&held, &PLAN, &[0, 2]).await?.changes)
    }

    /// From here on what is there is not known to be whole.
    async fn begin(&self, end: bool) -> Result<Held, Fault> {
        let held = self.held(end).await?;
        folder::remove(&self.at("outputs.json")).map_err(|error| self.unwritable(&error))?;
        self.init(&held).await?;
        Ok(held)
    }

    async fn held(&self, end: bool) -> Result<Held, Fault> {
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

    async fn init(&self, held: &Held) -> Result<(), Fault> {
        let ended = self.start(held, &INIT, "init.log", "init.log").await?;
        if ended.success() {
            return Ok(());
        }
        let said = folder::read_log(&self.at("init.log"));
        Err(self.failed(INIT[0], ended, Complaint::all_from_text(&said), &said))
    }

    /// Runs a command that tells what it does. The state is there afterwards, however it ends.
    async fn run(&self, held: &Held, words: &[&str], good: &[i32]) -> Result<Told, Fault> {
        let ended = self.start(held, words, "run.log", "run.log").await;
        folder::keep_private(&self.at("terraform.tfstate"));
        let ended = ended?;
        let mut told = Told::read(&folder::read_log(&self.at("run.log")));
        if ended.code().is_some_and(|code| good.contains(&code)) {
            return Ok(told);
        }
        let mut complaints = std::mem::take(&mut told.complaints);
        complaints.extend(Complaint::all_from_text(&told.rest));
        Err(self.failed(words[0], ended, complaints, &told.rest))
    }

    async fn read_outputs(&self, held: &Held) -> Result<Outputs, Fault> {
        let ended = self.start(held, &OUTPUT, "outputs.new", "output.log").await?;
        let said = folder::read_log(&self.at("output.log"));
        if !ended.success() {
            return Err(self.failed(OUTPUT[0], ended, Complaint::all_from_text(&said), &said));
        }
        let read = || -> io::Result<Option<Outputs>> {
            let outputs = folder::read(&self.at("outputs.new"))?;
            std::fs::rename(self.at("outputs.new"), self.at("outputs.json"))?;
            Ok(outputs.as_deref().and_then(Outputs::parse))
        };
        let outputs = read().map_err(|error| self.unwritable(&error))?;
        outputs.ok_or_else(|| Fault::Unavailable("Terraform's outputs are no JSON".into()))
    }

    async fn start(
        &self,
        held: &Held,
        words: &[&str],
        output: &str,
        log: &str,
    ) -> Result<ExitStatus, Fault> {
        let files = || -> io::Result<_> {
            let lock = held.0.try_clone()?;
            let written = folder::create(&self.at(output))?;
            let said =
                if log == output { written.try_clone()? } else { folder::create(&self.at(log))? };
            Ok((lock, written, said))
        };
        let files = files().map_err(|error| self.unwritable(&error))?;
        let module = self.at("module");
        let running = Running::start(&self.options, self.folder(), &module, words, files);
        let running = running.map_err(|error| self.unstarted(&error))?;
        let ended = running.ended(self.options.timeout).await;
        let ended = ended.map_err(|error| self.unstarted(&error))?;
        ended.ok_or_else(|| {
            let seconds = self.options.timeout.as_secs();
            let known = self.cannot(words[0]);
            Fault::Unavailable(format!(
                "{known}: it took longer than {seconds} s and was stopped; what it had made is \
                 kept, and it goes on from there"
            ))
        })
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

    fn failed(
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
