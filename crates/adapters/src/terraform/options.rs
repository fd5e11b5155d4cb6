//! What a runner of Terraform has to be told.

use std::path::PathBuf;
use std::time::Duration;

/// How Terraform (or OpenTofu) is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The program: `terraform`, `tofu`, or the path of one. The setting `--terraform-program`.
    pub program: PathBuf,
    /// Where modules are, one folder each. The setting `--terraform-modules`. Modules of templates need
    /// none.
    pub modules: PathBuf,
    /// Where each key has its folder, with state and log. Nobody else should be able to read it;
    /// servers that share a database must share it, too. The setting `--terraform-work`.
    pub work: PathBuf,
    /// How long one command may take.
    pub timeout: Duration,
    /// How long one that was interrupted may take to write down what it has made, before it is killed.
    pub grace: Duration,
    /// How many run at once.
    pub at_once: usize,
    /// Names of variables of the environment that it gets, such as credentials of clouds. It gets no
    /// others but those that it can't do without.
    pub pass: Vec<String>,
}

impl Options {
    /// The usual patience: an hour for a command, half a minute for an interrupted one, two at once.
    pub fn new(
        program: impl Into<PathBuf>,
        modules: impl Into<PathBuf>,
        work: impl Into<PathBuf>,
    ) -> Self {
        Self {
            program: program.into(),
            modules: modules.into(),
            work: work.into(),
            timeout: Duration::from_hours(1),
            grace: Duration::from_secs(30),
            at_once: 2,
            pass: Vec::new(),
        }
    }

    /// The same for whoever brings the modules along: there is no folder of them.
    pub fn without_modules(program: impl Into<PathBuf>, work: impl Into<PathBuf>) -> Self {
        Self::new(program, "", work)
    }
}
