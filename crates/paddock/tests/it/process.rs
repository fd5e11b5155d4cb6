//! Runs the binary: as a server on a port of its own, and as a client with a home of its own.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_paddock");
/// The password of everybody in these tests.
pub(crate) const PASSWORD: &str = "correct horse battery";
const STARTS_WITHIN: Duration = Duration::from_secs(30);

/// A server that ends with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    _data: TempDir,
}

impl Server {
    /// Starts a server on an empty directory, with simulated containers.
    pub(crate) fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let log = data.path().join("stderr.log");
        let mut child = bare(BINARY)
            .args(["server", "--runtime", "simulated", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data.path().join("data"))
            .env("PADDOCK_ADMIN_PASSWORD", PASSWORD)
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let Some(address) = address(&mut child) else {
            let _ = child.kill();
            panic!("the server did not start: {}", fs::read_to_string(log).unwrap());
        };
        Self { child, address, _data: data }
    }

    /// Somebody at a terminal of this server, not signed in.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.address)
    }

    /// The owner of a new organization.
    pub(crate) fn owner(&self, organization: &str, username: &str) -> Client {
        let client = self.client();
        client.run(&format!("org create {organization} --username {username}")).succeeds();
        client
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address that the server says it listens on. Its output is read to the end, since a full
/// pipe would stop it.
fn address(child: &mut Child) -> Option<String> {
    let output = BufReader::new(child.stdout.take().unwrap());
    let (found, address) = mpsc::channel();
    thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if let Some((_, rest)) = line.split_once("listening on http://") {
                let end = rest.find(|c: char| !(c.is_ascii_digit() || ".:".contains(c)));
                let _ = found.send(format!("http://{}", &rest[..end.unwrap_or(rest.len())]));
            }
        }
    });
    address.recv_timeout(STARTS_WITHIN).ok()
}

/// Somebody at a terminal.
pub(crate) struct Client {
    server: String,
    home: TempDir,
}

impl Client {
    /// Somebody who has never signed in to `server`.
    pub(crate) fn new(server: &str) -> Self {
        Self { server: server.into(), home: tempfile::tempdir().unwrap() }
    }

    /// Somebody whom `server` takes for signed in.
    pub(crate) fn signed_in(server: &str) -> Self {
        let client = Self::new(server);
        let config = format!("server = {server:?}\nusername = \"ann\"\ntoken = \"t0ken\"\n");
        fs::write(client.config_file(), config).unwrap();
        client
    }

    /// Where the client keeps its token.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.home.path().join("client.toml")
    }

    /// The command, ready to be changed and run.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = bare(BINARY);
        command
            .args(line.split_whitespace())
            .env("PADDOCK_SERVER", &self.server)
            .env("PADDOCK_CONFIG_DIR", self.home.path())
            .env("PADDOCK_PASSWORD", PASSWORD);
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, line: &str) -> Outcome {
        Outcome::new(line, self.command(line).output().unwrap())
    }

    /// Runs a command that reads `input`, without a password in the environment.
    pub(crate) fn run_with_input(&self, line: &str, input: &str) -> Outcome {
        let mut command = self.command(line);
        command.env_remove("PADDOCK_PASSWORD").stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Outcome::new(line, child.wait_with_output().unwrap())
    }

    /// Runs a command for its JSON.
    pub(crate) fn json(&self, line: &str) -> Value {
        let outcome = self.run(&format!("-o json {line}")).succeeds();
        serde_json::from_str(&outcome.stdout).unwrap()
    }
}

/// A command that inherits nothing from whoever runs the tests.
fn bare(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().stdin(Stdio::null());
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    line: String,
    status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn new(line: &str, output: Output) -> Self {
        let stdout = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!stderr.contains("panicked"), "{line}: {stderr}");
        Self { line: line.into(), status: output.status, stdout, stderr }
    }

    /// It must have worked.
    #[track_caller]
    pub(crate) fn succeeds(self) -> Self {
        self.ends(0)
    }

    /// It must have failed with this code, saying this on stderr and nothing on stdout.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, words: &[&str]) -> Self {
        let outcome = self.ends(code);
        assert_eq!(outcome.stdout, "", "{}", outcome.line);
        outcome.remarks(words)
    }

    /// Each of these must be on stdout.
    #[track_caller]
    pub(crate) fn prints(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stdout.contains(word), "no {word:?} on stdout: {self:#?}");
        }
        self
    }

    /// Each of these must be on stderr.
    #[track_caller]
    pub(crate) fn remarks(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} on stderr: {self:#?}");
        }
        self
    }

    /// It must have ended with this code.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{self:#?}");
        self
    }
}
