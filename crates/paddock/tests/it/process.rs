//! Runs the binary: as a server on a port of its own, and as a client with a home of its own.

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
/// The password of everybody in these tests.
pub(crate) const PASSWORD: &str = "correct horse battery";
const STARTS_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How a server is run, and where it keeps its things.
pub(crate) struct Setup {
    place: TempDir,
    args: BTreeMap<String, String>,
    env: BTreeMap<String, String>,
}

impl Setup {
    /// A server on an empty directory, with simulated containers.
    pub(crate) fn new() -> Self {
        Self::plain().arg("--runtime", "simulated").env("PADDOCK_ADMIN_PASSWORD", PASSWORD)
    }

    /// A server on an empty directory, of which nothing else is said.
    pub(crate) fn plain() -> Self {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data").display().to_string();
        Self { place, args: BTreeMap::new(), env: BTreeMap::new() }
            .arg("--listen", "127.0.0.1:0")
            .arg("--data-dir", &data)
    }

    /// The usual server on an empty database of that kind.
    pub(crate) async fn on(engine: Engine) -> Self {
        match engine {
            Engine::Sqlite => Self::new(),
            Engine::Postgres => {
                Self::new().arg("--database-url", &testing::create_postgres().await)
            }
        }
    }

    /// With that flag, instead of what it was.
    pub(crate) fn arg(mut self, name: &str, value: &str) -> Self {
        self.args.insert(name.into(), value.into());
        self
    }

    /// Without that flag.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.args.remove(name);
        self
    }

    /// With that variable, instead of what it was.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// A file beside the data directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Starts it; it must come up.
    pub(crate) fn start(self) -> Server {
        let (child, address) = self.spawn();
        Server { child, address, setup: self }
    }

    /// Runs it to its end: it must not come up.
    pub(crate) fn refused(&self) -> Outcome {
        Outcome::new("server", self.command().output().unwrap())
    }

    fn command(&self) -> Command {
        let mut command = bare(BINARY);
        command.arg("server").envs(&self.env).current_dir(self.place.path());
        command.args(self.args.iter().map(|(name, value)| format!("{name}={value}")));
        command
    }

    fn spawn(&self) -> (Child, String) {
        let [out, err] = ["stdout", "stderr"].map(|name| File::create(self.file(name)).unwrap());
        let mut child = self.command().stdout(out).stderr(err).spawn().unwrap();
        let started = base::monotonic();
        while started.elapsed() < STARTS_WITHIN && child.try_wait().unwrap().is_none() {
            let said = fs::read_to_string(self.file("stdout")).unwrap();
            if let Some((_, rest)) = said.split_once("listening on ")
                && let Some((address, _)) = rest.split_once(' ')
            {
                return (child, address.into());
            }
            thread::sleep(LOOK_EVERY);
        }
        let _ = child.kill();
        panic!("no server: {}", fs::read_to_string(self.file("stderr")).unwrap());
    }
}

/// A server that ends with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    pub(crate) setup: Setup,
}

impl Server {
    /// Starts the usual server.
    pub(crate) fn start() -> Self {
        Setup::new().start()
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

    /// Somebody who speaks HTTP and checks every answer, not signed in.
    pub(crate) fn http(&self) -> testing::Client {
        let _ = rustls::crypto::ring::default_provider().install_default();
        testing::Client::new(&self.address)
    }

    /// The same, signed in.
    pub(crate) async fn http_as(&self, username: &str, password: &str) -> testing::Client {
        let body = json!({ "username": username, "password": password });
        let token = self.http().post("/api/v1/login", body).await.text("token");
        self.http().with_token(&token)
    }

    /// The same, as the owner of a new organization.
    pub(crate) async fn http_owner(&self, name: &str) -> testing::Client {
        let owner = json!({ "username": name, "password": PASSWORD });
        let body = json!({ "name": name, "owner": owner });
        self.http().post("/api/v1/organizations", body).await.expect(201);
        self.http_as(name, PASSWORD).await
    }

    /// A connection to it.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address.strip_prefix("http://").unwrap()).unwrap();
        stream.set_read_timeout(Some(STARTS_WITHIN)).unwrap();
        stream
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        let line = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self, within: Duration) -> ExitStatus {
        let started = base::monotonic();
        while started.elapsed() < within {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            thread::sleep(LOOK_EVERY);
        }
        panic!("it runs on after {within:?}: {}", self.stderr());
    }

    /// Starts it again where it was, on another port.
    pub(crate) fn again(&mut self) {
        (self.child, self.address) = self.setup.spawn();
    }

    /// What it has written to stdout since its last start.
    pub(crate) fn stdout(&self) -> String {
        fs::read_to_string(self.setup.file("stdout")).unwrap()
    }

    /// What it has written to stderr since its last start.
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
pub(crate) fn bare(program: &str) -> Command {
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
