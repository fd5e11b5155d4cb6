//! The options of the Terraform runner.

use std::path::PathBuf;
use std::time::Duration;

/// How Terraform (or OpenTofu) is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The program: `terraform`, `tofu`, or a path. The setting `--terraform-program`.
    pub program: PathBuf,
    /// The folder of modules, one folder each. The setting `--terraform-modules`. Modules of
    /// templates do not need it.
    pub module_dir: PathBuf,
    /// The folder of workspaces, with states and logs. It must be private; servers that share a
    /// database must share it, too. The setting `--terraform-work`.
    pub work_dir: PathBuf,
    /// The timeout of one command.
    pub timeout: Duration,
    /// How long an interrupted command may take to write its state before it is killed.
    pub grace: Duration,
    /// The maximum number of concurrent runs.
    pub max_concurrent_runs: usize,
    /// Names of environment variables for the program, such as cloud credentials. It gets no others
    /// except those that it needs.
    pub inherited_env: Vec<String>,
}

impl Options {
    /// The defaults: an hour per command, 30 seconds after an interrupt, two concurrent runs.
    pub fn new(
        program: impl Into<PathBuf>,
        modules: impl Into<PathBuf>,
        work: impl Into<PathBuf>,
    ) -> Self {
        Self {
            program: program.into(),
            module_dir: modules.into(),
            work_dir: work.into(),
            timeout: Duration::from_hours(1),
            grace: Duration::from_secs(30),
            max_concurrent_runs: 2,
            inherited_env: Vec::new(),
        }
    }

    /// The same without a module folder, for modules of templates.
    pub fn without_modules(program: impl Into<PathBuf>, work: impl Into<PathBuf>) -> Self {
        Self::new(program, "", work)
    }
}
