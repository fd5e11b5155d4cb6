//! Runs the binary as a server on a free port, and as a client with a temporary configuration.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use testing::Engine;

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_paddock");
/// Password of all users in these tests.
pub(crate) const PASSWORD: &str = "correct horse battery";
const START_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Settings and directory of a server.
pub(crate) struct Setup {
    dir: TempDir,
    args: BTreeMap<String, String>,
    env: BTreeMap<String, String>,
    /// Limits of open files, soft and hard.
    files: Option<(u32, u32)>,
}

impl Setup {
    /// A server on an empty directory, with simulated containers.
    pub(crate) fn new() -> Self {
        Self::plain().arg("--runtime", "simulated").env("PADDOCK_ADMIN_PASSWORD", PASSWORD)
    }

    /// A server on an empty directory with default settings.
    pub(crate) fn plain() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data").display().to_string();
        Self { dir, args: BTreeMap::new(), env: BTreeMap::new(), files: None }
            .arg("--listen", "127.0.0.1:0")
            .arg("--data-dir", &data)
    }

    /// A server on an empty database of the given engine.
    pub(crate) async fn on(engine: Engine) -> Self {
        match engine {
            Engine::Sqlite => Self::new(),
            Engine::Postgres => {
                Self::new().arg("--database-url", &testing::create_postgres().await)
            }
        }
    }

    /// The database that the server was told to use, if it isn't the one in its data directory.
    pub(crate) fn database_url(&self) -> Option<&str> {
        self.args.get("--database-url").map(String::as_str)
    }

    /// Sets a flag.
    pub(crate) fn arg(mut self, name: &str, value: &str) -> Self {
        self.args.insert(name.into(), value.into());
        self
    }

    /// Sets or removes a flag for the next start.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) {
        match value {
            Some(value) => self.args.insert(name.into(), value.into()),
            None => self.args.remove(name),
        };
    }

    /// Removes a flag.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.args.remove(name);
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the soft and the hard limit of open files.
    pub(crate) fn files(mut self, soft: u32, hard: u32) -> Self {
        self.files = Some((soft, hard));
        self
    }

    /// Path of a file next to the data directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts the server and waits until it listens.
    pub(crate) fn start(self) -> Server {
        let (child, address) = self.spawn();
        Server { child, address, setup: self }
    }

    /// Runs a server that is expected to exit by itself.
    pub(crate) fn run_to_exit(&self) -> Outcome {
        let mut command = self.command();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let started = base::monotonic();
        while child.try_wait().unwrap().is_none() {
            if started.elapsed() > START_TIMEOUT {
                let _ = child.kill();
                panic!("server did not exit: {:?}", child.wait_with_output().unwrap());
            }
            thread::sleep(POLL_INTERVAL);
        }
        Outcome::new("server", child.wait_with_output().unwrap())
    }

    fn command(&self) -> Command {
        let mut command = match self.files {
            None => bare(BINARY),
            Some((soft, hard)) => {
                let mut command = bare("sh");
                let script = format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$@\"");
                command.args(["-c", &script, "sh", BINARY]);
                command
            }
        };
        command.arg("server").envs(&self.env).current_dir(self.dir.path());
        command.args(self.args.iter().map(|(name, value)| format!("{name}={value}")));
        command
    }

    fn spawn(&self) -> (Child, String) {
        let [out, err] = ["stdout", "stderr"].map(|name| File::create(self.file(name)).unwrap());
        let mut child = self.command().stdout(out).stderr(err).spawn().unwrap();
        let started = base::monotonic();
        while started.elapsed() < START_TIMEOUT && child.try_wait().unwrap().is_none() {
            let stdout = fs::read_to_string(self.file("stdout")).unwrap();
            if let Some((_, rest)) = stdout.split_once("listening on ")
                && let Some((address, _)) = rest.split_once(' ')
            {
                return (child, address.into());
            }
            thread::sleep(POLL_INTERVAL);
        }
        let _ = child.kill();
        panic!("server did not start: {}", fs::read_to_string(self.file("stderr")).unwrap());
    }
}

/// A server process, killed on drop.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    pub(crate) setup: Setup,
}

impl Server {
    /// Starts a server with simulated containers.
    pub(crate) fn start() -> Self {
        Setup::new().start()
    }

    /// A command-line client, not logged in.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.address)
    }

    /// A command-line client, logged in as owner of a new organization.
    pub(crate) fn owner(&self, organization: &str, username: &str) -> Client {
        let client = self.client();
        client.run(&format!("org create {organization} --username {username}")).succeeds();
        client
    }

    /// An HTTP client that validates every response, not logged in.
    pub(crate) fn http(&self) -> testing::Client {
        let _ = rustls::crypto::ring::default_provider().install_default();
        testing::Client::new(&self.address)
    }

    /// An HTTP client, logged in.
    pub(crate) async fn http_as(&self, username: &str, password: &str) -> testing::Client {
        let body = json!({ "username": username, "password": password });
        let token = self.http().post("/api/v1/login", body).await.text("token");
        self.http().with_token(&token)
    }

    /// An HTTP client, logged in as owner of a new organization.
    pub(crate) async fn http_owner(&self, name: &str) -> testing::Client {
        let owner = json!({ "username": name, "password": PASSWORD });
        let body = json!({ "name": name, "owner": owner });
        self.http().post("/api/v1/organizations", body).await.expect(201);
        self.http_as(name, PASSWORD).await
    }

    /// Opens a TCP connection.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address.strip_prefix("http://").unwrap()).unwrap();
        stream.set_read_timeout(Some(START_TIMEOUT)).unwrap();
        stream
    }

    /// Id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let line = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
    }

    /// Waits until the server exits.
    pub(crate) fn wait_for_exit(&mut self, timeout: Duration) -> ExitStatus {
        let started = base::monotonic();
        while started.elapsed() < timeout {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            thread::sleep(POLL_INTERVAL);
        }
        panic!("server still running after {timeout:?}: {}", self.stderr());
    }

    /// Starts the server again on the same directory and another port.
    pub(crate) fn restart(&mut self) {
        (self.child, self.address) = self.setup.spawn();
    }

    /// Stdout since the last start.
    pub(crate) fn stdout(&self) -> String {
        fs::read_to_string(self.setup.file("stdout")).unwrap()
    }

    /// Stderr since the last start.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.setup.file("stderr")).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command-line client with its own configuration directory.
pub(crate) struct Client {
    pub(crate) server: String,
    home: TempDir,
}

impl Client {
    /// A client that is not logged in.
    pub(crate) fn new(server: &str) -> Self {
        Self { server: server.into(), home: tempfile::tempdir().unwrap() }
    }

    /// A client with a stored token.
    pub(crate) fn logged_in(server: &str) -> Self {
        let client = Self::new(server);
        let config = format!("server = {server:?}\nusername = \"ann\"\ntoken = \"t0ken\"\n");
        fs::write(client.config_file(), config).unwrap();
        client
    }

    /// File with the stored token.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.home.path().join("client.toml")
    }

    /// A command, not yet run.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = bare(BINARY);
        command
            .args(line.split_whitespace())
            .env("PADDOCK_SERVER", &self.server)
            .env("PADDOCK_CONFIG_DIR", self.home.path())
            .env("PADDOCK_PASSWORD", PASSWORD);
        command
    }

    /// Runs a command.
    pub(crate) fn run(&self, line: &str) -> Outcome {
        Outcome::new(line, self.command(line).output().unwrap())
    }

    /// Runs a command with `input` on stdin and without a password in the environment.
    pub(crate) fn run_with_input(&self, line: &str, input: &str) -> Outcome {
        let mut command = self.command(line);
        command.env_remove("PADDOCK_PASSWORD").stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Outcome::new(line, child.wait_with_output().unwrap())
    }

    /// Runs a command and parses its JSON output.
    pub(crate) fn json(&self, line: &str) -> Value {
        let outcome = self.run(&format!("-o json {line}")).succeeds();
        serde_json::from_str(&outcome.stdout).unwrap()
    }
}

/// A command without inherited environment, except `PATH`.
pub(crate) fn bare(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().stdin(Stdio::null());
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command
}

/// Result of a command.
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

    /// Asserts success.
    #[track_caller]
    pub(crate) fn succeeds(self) -> Self {
        self.ends(0)
    }

    /// Asserts an exit code, these texts on stderr and an empty stdout.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, words: &[&str]) -> Self {
        let outcome = self.ends(code);
        assert_eq!(outcome.stdout, "", "{}", outcome.line);
        outcome.notes(words)
    }

    /// Asserts that stdout contains these texts.
    #[track_caller]
    pub(crate) fn prints(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stdout.contains(word), "no {word:?} on stdout: {self:#?}");
        }
        self
    }

    /// Asserts that stderr contains these texts.
    #[track_caller]
    pub(crate) fn notes(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} on stderr: {self:#?}");
        }
        self
    }

    /// Asserts an exit code.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{self:#?}");
        self
    }
}
