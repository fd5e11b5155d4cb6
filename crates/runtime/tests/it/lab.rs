//! A runtime per test, and a check for leftovers.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use futures_util::StreamExt;
use model::address::Policy;
use model::deployment::Restart;
use model::log::LogsFrom;
use runtime::{Condition, Container, Embedded, Options};
use tempfile::TempDir;

use crate::packing;
use crate::registry::{Fake, digest_of};

pub(crate) struct Lab {
    pub(crate) runtime: Option<Embedded>,
    pub(crate) options: Options,
    pub(crate) registry: Fake,
    pub(crate) dir: TempDir,
}

/// Registries of tests are on loopback.
pub(crate) fn loopback() -> Policy {
    Policy { allowed: vec!["127.0.0.0/8".parse().unwrap()], ..Policy::default() }
}

impl Lab {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// A runtime with changed options.
    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().file_name().unwrap().to_str().unwrap();
        let instance = format!("t{}", &digest_of(name.as_bytes())[7..15]);
        let mut options = Options::new(dir.path().join("rt"), instance);
        options.program = PathBuf::from(crate::HELPER);
        options.egress = false;
        (options.default_cpu_milli, options.default_ram_bytes) = (2000, 512 << 20);
        options.registries.addresses = loopback();
        options.stop_grace = Duration::from_secs(3);
        options.restart_backoff = Duration::from_millis(100);
        change(&mut options);
        let runtime = Embedded::probe(options.clone()).await.expect("tests run as root");
        Self { runtime: Some(runtime), options, registry: Fake::start(), dir }
    }

    pub(crate) fn runtime(&self) -> &Embedded {
        self.runtime.as_ref().unwrap()
    }

    /// A container of the standard image that runs a shell script.
    pub(crate) fn shell(&self, name: &str, script: &str) -> Container {
        let image = self.registry.name("web");
        if !self.registry.content.lock().unwrap().manifests.contains_key("web/1.0") {
            self.registry.put("web", &packing::web());
        }
        let command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        Container { command, ..container(name, &image) }
    }

    /// Starts a container that serves `/www`, and returns its endpoint.
    pub(crate) async fn web(&self, name: &str) -> String {
        let image = self.registry.put("web", &packing::web());
        let web = Container { ports: vec![8080], ..container(name, &image) };
        self.runtime().start(&web).await.unwrap().remove(0)
    }

    /// Waits until nothing is left of containers.
    pub(crate) async fn until_no_leftovers(&self, timeout: Duration) {
        let until = base::monotonic() + timeout;
        while !self.leftovers().is_empty() && base::monotonic() < until {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(self.leftovers(), Vec::<String>::new());
    }

    /// Runs a container to its end. Returns its condition and its log.
    pub(crate) async fn run(&self, container: &Container) -> (Condition, Vec<String>) {
        let endpoints = self.runtime().start(container).await.unwrap();
        let running = Condition::Running { endpoints };
        let ended = self.runtime().changed(&container.name, &running);
        let ended = tokio::time::timeout(Duration::from_mins(1), ended).await.unwrap();
        (ended, self.lines(&container.name).await)
    }

    pub(crate) async fn lines(&self, name: &str) -> Vec<String> {
        self.runtime().logs(name, &LogsFrom::Start, false).map(|line| line.text).collect().await
    }

    fn dir_of(&self, name: &str) -> PathBuf {
        self.options.dir.join(name)
    }

    /// Everything that is left of containers.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let mut left = Vec::new();
        let dir = self.options.dir.to_str().unwrap().to_owned();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        left.extend(mounts.lines().filter(|line| line.contains(&dir)).map(str::to_owned));
        for group in groups(&self.options.instance) {
            left.push(group.display().to_string());
        }
        let id = digest_of(self.options.instance.as_bytes())[7..15].to_owned();
        for link in entries(Path::new("/sys/class/net")) {
            let name = link.file_name().unwrap().to_str().unwrap();
            if name.starts_with(&format!("pd-{id}")) || name.starts_with(&format!("pd{}", &id[..6]))
            {
                left.push(name.to_owned());
            }
        }
        let tables = Command::new("nft").args(["list", "tables"]).output();
        let tables = tables.expect("the package nftables is installed").stdout;
        let tables = String::from_utf8_lossy(&tables).into_owned();
        left.extend(tables.lines().filter(|line| line.contains(&id)).map(str::to_owned));
        left.extend(processes(&dir).into_iter().map(|pid| format!("process {pid}")));
        for part in ["containers", "tmp", "trash"] {
            left.extend(entries(&self.dir_of(part)).iter().map(|path| path.display().to_string()));
        }
        left
    }

    /// MAC address of the bridge.
    pub(crate) fn bridge_address(&self) -> String {
        let id = digest_of(self.options.instance.as_bytes())[7..15].to_owned();
        let file = format!("/sys/class/net/pd-{id}/address");
        fs::read_to_string(file).unwrap().trim().to_owned()
    }

    /// Loop devices whose file is in our directory.
    pub(crate) fn loop_devices(&self) -> Vec<String> {
        let dir = self.options.dir.to_str().unwrap();
        let files = entries(Path::new("/sys/block")).into_iter();
        let files =
            files.filter_map(|path| fs::read_to_string(path.join("loop/backing_file")).ok());
        files.filter(|file| file.contains(dir)).collect()
    }

    /// IP and MAC addresses of our containers in the host's ARP cache.
    pub(crate) fn neighbours(&self) -> std::collections::BTreeSet<(String, String)> {
        let id = digest_of(self.options.instance.as_bytes())[7..15].to_owned();
        let table = fs::read_to_string("/proc/net/arp").unwrap();
        let ours = table.lines().filter(|line| line.ends_with(&format!("pd-{id}")));
        let words = ours.map(|line| line.split_whitespace().collect::<Vec<_>>());
        words.map(|words| (words[0].to_owned(), words[3].to_owned())).collect()
    }

    /// Stored files of images.
    pub(crate) fn stored(&self) -> Vec<PathBuf> {
        ["layers", "images", "loaded", "pulls", "tmp", "trash"]
            .iter()
            .flat_map(|part| entries(&self.dir_of(part)))
            .collect()
    }
}

impl Drop for Lab {
    /// Cleans up after a failed test.
    fn drop(&mut self) {
        self.runtime = None;
        for pid in processes(self.options.dir.to_str().unwrap()) {
            kill(pid);
        }
        remove_groups(&self.options.instance);
        let id = digest_of(self.options.instance.as_bytes())[7..15].to_owned();
        let (link, table) = (format!("pd-{id}"), format!("paddock_{id}"));
        for command in
            [["ip", "link", "del", "dev", &link], ["nft", "delete", "table", "inet", &table]]
        {
            let mut cleanup = Command::new(command[0]);
            let _ = cleanup.args(&command[1..]).stderr(Stdio::null()).status();
        }
    }
}

pub(crate) fn container(name: &str, image: &str) -> Container {
    Container {
        name: name.to_owned(),
        image: image.to_owned(),
        owner: None,
        command: Vec::new(),
        env: BTreeMap::new(),
        ports: Vec::new(),
        cpu: None,
        ram: None,
        disk: None,
        restart: Restart::Never,
        pull: None,
    }
}

/// A number in a JSON file of a container.
pub(crate) fn number(lab: &Lab, file: &str, field: &str) -> i32 {
    let text = fs::read(lab.dir_of("containers").join(file)).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&text).unwrap();
    i32::try_from(document[field].as_i64().unwrap()).unwrap()
}

pub(crate) fn kill(pid: i32) {
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGKILL);
}

pub(crate) fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The cgroups of an installation, in every hierarchy.
pub(crate) fn groups(instance: &str) -> Vec<PathBuf> {
    let roots = entries(Path::new("/sys/fs/cgroup")).into_iter().chain(["/sys/fs/cgroup".into()]);
    roots
        .map(|root| root.join(format!("paddock-{instance}")))
        .filter(|group| group.exists())
        .collect()
}

/// Kills the processes in an installation's cgroups and removes them.
pub(crate) fn remove_groups(instance: &str) {
    let until = base::monotonic() + Duration::from_secs(5);
    while base::monotonic() < until && !groups(instance).is_empty() {
        for group in groups(instance) {
            for group in entries(&group).into_iter().filter(|path| path.is_dir()).chain([group]) {
                let procs = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
                procs.lines().filter_map(|line| line.parse().ok()).for_each(kill);
                let _ = fs::remove_dir(group);
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Processes whose command line contains a directory.
pub(crate) fn processes(dir: &str) -> Vec<i32> {
    let pids = entries(Path::new("/proc")).into_iter();
    pids.filter_map(|path| {
        let pid: i32 = path.file_name()?.to_str()?.parse().ok()?;
        let words = fs::read(path.join("cmdline")).ok()?;
        String::from_utf8_lossy(&words).contains(dir).then_some(pid)
    })
    .collect()
}

/// Requests a path from a web server until it responds.
pub(crate) fn get(endpoint: &str, path: &str) -> String {
    let until = base::monotonic() + Duration::from_secs(30);
    loop {
        let ask = || -> std::io::Result<String> {
            let mut stream = std::net::TcpStream::connect(endpoint)?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        match ask() {
            Ok(answer) if !answer.is_empty() => return answer,
            _ if base::monotonic() > until => panic!("{endpoint} does not answer"),
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}
