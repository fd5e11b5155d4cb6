//! Real servers as child processes of a test: external systems, and a gate in front of them. They
//! end with the test, even if it is killed.

mod bind;
mod consul;
mod gate;
mod moto;
mod oidc_provider;
mod vault;

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub use bind::Bind;
pub use consul::{Consul, Pair, ROOT_TOKEN};
pub use gate::{Gate, Mode};
pub use moto::Moto;
pub use oidc_provider::{INITIAL_TOKEN, OidcProvider, claims};
pub use vault::RustyVault;

/// DNS zone of the tests' name servers.
pub const ZONE: &str = "fleet.example.test";

/// Startup timeout, for a loaded machine.
const START_TIMEOUT: Duration = Duration::from_mins(3);

/// A running server.
pub struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    /// Starts a program; its output goes to `log` in the folder.
    pub fn start(command: &Command, folder: &Path) -> Self {
        let log = folder.join("log");
        let output = File::options().create(true).append(true).open(&log).unwrap();
        // If the test is killed, the kernel kills the program.
        let mut tied = Command::new("setpriv");
        tied.args(["--pdeathsig", "KILL", "--"]).arg(command.get_program());
        tied.args(command.get_args()).current_dir(folder).stdin(Stdio::null());
        let both = (output.try_clone().unwrap(), output);
        let child = tied.stdout(both.0).stderr(both.1).spawn();
        let child = child.unwrap_or_else(|error| panic!("setpriv: {error}; run ./test once"));
        Self { child, log }
    }

    /// Waits until it is ready; panics with its output if it fails.
    pub fn wait_until(mut self, is_ready: impl Fn() -> bool) -> Self {
        let began = base::monotonic();
        while !is_ready() {
            let ended = self.child.try_wait().unwrap();
            let is_late = began.elapsed() > START_TIMEOUT;
            let output = || std::fs::read_to_string(&self.log).unwrap_or_default();
            assert!(ended.is_none() && !is_late, "it did not start: {ended:?}\n{}", output());
            std::thread::sleep(Duration::from_millis(50));
        }
        self
    }

    /// Kills it.
    pub fn kill(self) {
        drop(self);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Path of a program: set by a variable of `./test`, or on the path.
pub fn find(name: &str, variable: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let mut candidates = std::env::var_os(variable)
        .map(PathBuf::from)
        .into_iter()
        .chain(folders.map(|folder| folder.join(name)));
    candidates.find(|path| path.is_file()).unwrap_or_else(|| {
        panic!("{name} is neither set by {variable} nor on the path: run ./test, which installs it")
    })
}

/// A free port. Another process could bind it first, which is rare enough.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
