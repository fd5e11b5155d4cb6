//! The shell that executes a page, with its server and external systems.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use testing::programs::{self, Consul, Program, RustyVault};

use crate::process::{BINARY, bare};
use crate::real::traces;

const START_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A bash process in an empty directory.
pub(super) struct Shell {
    dir: TempDir,
    child: Child,
    stdin: ChildStdin,
    /// Exit codes and process ids.
    stdout: BufReader<ChildStdout>,
    /// Address of its servers.
    pub(super) address: String,
    /// Servers that were started.
    servers: Vec<String>,
    systems: Vec<System>,
}

/// A running external system.
#[expect(dead_code, reason = "dropping it stops it")]
enum System {
    Consul(Consul, Program),
    Vault(RustyVault),
}

impl Shell {
    /// Opens a shell with the binary on its path and a link to these examples.
    pub(super) fn open(examples: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        for folder in ["bin", "home", "work"] {
            fs::create_dir(file(folder)).unwrap();
        }
        symlink(BINARY, file("bin/paddock")).unwrap();
        fs::write(file("bin/sudo"), "#!/bin/sh\nexec \"$@\"\n").unwrap();
        set_executable(&file("bin/sudo"));
        symlink(examples, file("work/examples")).unwrap();
        let address = format!("127.0.0.1:{}", programs::free_port());
        let path = std::env::var("PATH").unwrap();
        let mut child = bare("bash")
            .arg("--norc")
            .current_dir(file("work"))
            .env("PATH", format!("{}:{path}", file("bin").display()))
            .env("HOME", file("home"))
            .env("LANG", "C.UTF-8")
            .env("PADDOCK_SERVER", format!("http://{address}"))
            .env("PADDOCK_LISTEN", &address)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let stdout = BufReader::new(stdout);
        Self { dir, child, stdin, stdout, address, servers: Vec::new(), systems: Vec::new() }
    }

    /// Runs a command, and returns its exit code and its output. A server is started in the
    /// background; its output ends when it listens.
    pub(super) fn run(&mut self, command: &str) -> (i32, Vec<String>) {
        if is_server(command) {
            return (0, self.start_server(command));
        }
        let code = self.execute(command, "output", "$?").parse().unwrap();
        let output = fs::read_to_string(self.file("output")).unwrap();
        let output = output.lines().filter(|line| !is_notice(line));
        (code, output.map(str::trim_end).map(String::from).collect())
    }

    /// Starts external systems, and names them in the environment of the next server.
    pub(super) async fn provide(&mut self, systems: &[String]) {
        for system in systems {
            match system.as_str() {
                "consul" => {
                    let consul = Consul::prepare();
                    let running = consul.start();
                    consul.delete("is-ready").await;
                    self.export("PADDOCK_CONSUL_ADDR", &consul.url());
                    self.systems.push(System::Consul(consul, running));
                }
                "vault" => {
                    let vault = RustyVault::start().await;
                    self.export("PADDOCK_VAULT_ADDR", &vault.address());
                    self.export("PADDOCK_VAULT_TOKEN", &vault.root);
                    self.systems.push(System::Vault(vault));
                }
                "terraform" => {
                    let program = programs::find("terraform", "PADDOCK_TEST_TERRAFORM");
                    symlink(program, self.file("bin/terraform")).unwrap();
                }
                other => panic!("unknown system {other}"),
            }
        }
    }

    fn export(&mut self, name: &str, value: &str) {
        self.execute(&format!("export {name}='{value}'"), "output", "$?");
    }

    fn start_server(&mut self, command: &str) -> Vec<String> {
        let pid = self.execute(&format!("{command} 2>../server.log &"), "server", "$!");
        self.servers.push(pid);
        let started = base::monotonic();
        while started.elapsed() < START_TIMEOUT {
            let output = fs::read_to_string(self.file("server")).unwrap();
            if output.lines().any(|line| line.starts_with("listening on ")) {
                return output.lines().map(String::from).collect();
            }
            thread::sleep(POLL_INTERVAL);
        }
        panic!("server did not start: {}", fs::read_to_string(self.file("server.log")).unwrap());
    }

    /// Executes a command in the shell itself, with its output in a file, and returns a parameter.
    fn execute(&mut self, command: &str, output: &str, parameter: &str) -> String {
        let output = self.file(output);
        let script = format!(
            "{{ {command}\n}} >{} 2>&1 </dev/null; echo \"{parameter}\"\n",
            output.display()
        );
        self.stdin.write_all(script.as_bytes()).unwrap();
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

impl Drop for Shell {
    /// Stops the servers, and removes containers that would outlive them.
    fn drop(&mut self) {
        for pid in &self.servers {
            let _ = Command::new("kill").args(["-9", pid]).output();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        traces::clean_up(&self.file("work/paddock-data"));
    }
}

/// Whether bash wrote a line about a background job that was killed.
fn is_notice(line: &str) -> bool {
    line.starts_with("bash: line ") && line.contains("Killed")
}

/// Whether a command runs a server, which does not end.
fn is_server(command: &str) -> bool {
    let is_before = |word: &&str| word.contains('=') || *word == "sudo" || word.starts_with('-');
    let words: Vec<&str> = command.split_whitespace().skip_while(is_before).collect();
    words.starts_with(&["paddock", "server"])
}

fn set_executable(file: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}
