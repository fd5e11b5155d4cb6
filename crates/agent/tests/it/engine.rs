//! Separate instances of Docker and Podman, each in its own network and mount namespace, so that
//! they change nothing on the host and leave nothing behind.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use agent::Docker;
use agent::docker::{Engine, Options};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use runtime::Registries;
use tempfile::TempDir;

use crate::lab::{get, kill, processes, remove_groups};
use crate::packing;
use crate::registry::{Debian, Fake, digest_of};

type Job = Box<dyn FnOnce() + Send>;

/// A thread in its own namespaces, inherited by the processes that it starts.
pub(crate) struct Namespace(mpsc::Sender<Job>);

impl Namespace {
    fn new() -> Self {
        let (jobs, todo) = mpsc::channel::<Job>();
        std::thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).expect("tests run as root");
            let none = None::<&str>;
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
            for dir in
                ["/run", "/dev/shm", "/etc/docker"].iter().filter(|dir| Path::new(dir).exists())
            {
                mount(Some("none"), *dir, Some("tmpfs"), MsFlags::empty(), none).unwrap();
            }
            let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
            assert!(up.expect("the package iproute2 is installed").success());
            for job in todo {
                job();
            }
        });
        Self(jobs)
    }

    /// Runs a function in the thread.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (result, done) = mpsc::channel();
        let _ = self.0.send(Box::new(move || drop(result.send(job()))));
        done.recv().expect("the job panicked")
    }
}

/// A running engine, with registries that it can reach.
pub(crate) struct EngineLab {
    pub(crate) options: Options,
    pub(crate) image: String,
    pub(crate) fake: Fake,
    pub(crate) namespace: Namespace,
    engine: Engine,
    process: Option<Child>,
    _registry: Debian,
    pub(crate) dir: TempDir,
}

impl EngineLab {
    pub(crate) async fn new(engine: Engine) -> (Self, Docker) {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().file_name().unwrap().to_str().unwrap();
        let instance = format!("t{}", &digest_of(name.as_bytes())[7..15]);
        let namespace = Namespace::new();
        let path = dir.path().to_owned();
        let (registry, image) = namespace.run(move || {
            let registry = Debian::start(&path);
            let image = registry.push(&path, "web", &plain());
            (registry, image)
        });
        let fake = namespace.run(Fake::start);
        let addresses = crate::lab::loopback();
        let options = Options {
            registries: Registries { addresses, ..Registries::default() },
            socket: Some(dir.path().join("sock")),
            dir: dir.path().join("archives"),
            program: crate::HELPER.into(),
            stop_grace: Duration::from_secs(1),
            cgroup_parent: Some(format!("/paddock-{instance}")),
            ..Options::new(&instance)
        };
        let mut lab = Self {
            options,
            image,
            fake,
            namespace,
            engine,
            process: None,
            _registry: registry,
            dir,
        };
        let runtime = lab.start().await;
        (lab, runtime)
    }

    /// Starts the engine and waits until it responds.
    pub(crate) async fn start(&mut self) -> Docker {
        let mut command = match self.engine {
            Engine::Docker => self.dockerd(),
            Engine::Podman => self.podman(),
        };
        // Podman's conmon writes a file `oom` into its working directory.
        command.current_dir(self.dir.path());
        self.process = Some(self.namespace.run(move || spawn(command)));
        let until = base::monotonic() + Duration::from_secs(30);
        loop {
            match Docker::probe(self.options.clone()).await {
                Ok(runtime) => return runtime,
                Err(why) => assert!(base::monotonic() < until, "{why}\n{}", self.log()),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("engine.log")).unwrap_or_default()
    }

    fn dockerd(&self) -> Command {
        let at = |name: &str| self.dir.path().join(name).display().to_string();
        fs::write(at("daemon.json"), "{}").unwrap();
        let mut command = bound_to_parent("dockerd");
        command.args(["--data-root", &at("data"), "--exec-root", &at("exec")]);
        command.args(["--pidfile", &at("pid"), "--config-file", &at("daemon.json")]);
        command.args(["-H", &format!("unix://{}", at("sock"))]);
        command.args(["--shutdown-timeout", "2", "--live-restore"]);
        command.stderr(File::options().create(true).append(true).open(at("engine.log")).unwrap());
        command
    }

    fn podman(&self) -> Command {
        let at = |name: &str| self.dir.path().join(name).display().to_string();
        // Podman requests higher limits by default, which need a privilege.
        let conf = "[containers]\n\
            default_ulimits = [\"nofile=1024:1024\", \"nproc=4096:4096\"]\n\
            [engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n\
            [network]\nnetwork_backend = \"netavark\"\n";
        fs::write(at("containers.conf"), conf).unwrap();
        let insecure =
            |address: &str| format!("[[registry]]\nlocation = \"{address}\"\ninsecure = true\n");
        let ours = self.image.split('/').next().unwrap();
        fs::write(at("registries.conf"), insecure(ours) + &insecure(&self.fake.address)).unwrap();
        let mut command = bound_to_parent("podman");
        fs::create_dir_all(at("part")).unwrap();
        command.env("TMPDIR", at("part"));
        command.env("CONTAINERS_CONF", at("containers.conf"));
        command.env("CONTAINERS_REGISTRIES_CONF", at("registries.conf"));
        command.args(["--root", &at("data"), "--runroot", &at("run"), "--tmpdir", &at("tmp")]);
        command.args(["--network-config-dir", &at("networks")]);
        command.args(["system", "service", "--time=0", &format!("unix://{}", at("sock"))]);
        command.stderr(File::options().create(true).append(true).open(at("engine.log")).unwrap());
        command
    }

    /// Kills the engine.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Requests a page in the namespace.
    pub(crate) fn get(&self, endpoint: &str) -> String {
        let endpoint = endpoint.to_owned();
        self.namespace.run(move || get(&endpoint, "/"))
    }

    /// All containers, anonymous volumes and our networks of the engine.
    pub(crate) async fn leftovers(&self) -> Vec<String> {
        let socket = self.options.socket.as_ref().unwrap().to_str().unwrap();
        let api =
            bollard::Docker::connect_with_unix(socket, 30, bollard::API_DEFAULT_VERSION).unwrap();
        let api = api.negotiate_version().await.unwrap();
        let options =
            bollard::query_parameters::ListContainersOptions { all: true, ..Default::default() };
        let containers = api.list_containers(Some(options)).await.unwrap();
        let mut left: Vec<_> =
            containers.into_iter().map(|it| format!("{:?} {:?}", it.names, it.status)).collect();
        let volumes = api.list_volumes(None::<bollard::query_parameters::ListVolumesOptions>).await;
        let volumes = volumes.unwrap().volumes.unwrap_or_default();
        left.extend(volumes.into_iter().map(|volume| volume.name));
        let networks =
            api.list_networks(None::<bollard::query_parameters::ListNetworksOptions>).await;
        let networks = networks.unwrap().into_iter().filter_map(|network| network.name);
        left.extend(networks.filter(|name| name.starts_with("paddock-")));
        left
    }

    /// All images of the engine.
    pub(crate) async fn images(&self) -> Vec<String> {
        let socket = self.options.socket.as_ref().unwrap().to_str().unwrap();
        let api =
            bollard::Docker::connect_with_unix(socket, 30, bollard::API_DEFAULT_VERSION).unwrap();
        let api = api.negotiate_version().await.unwrap();
        let all =
            api.list_images(None::<bollard::query_parameters::ListImagesOptions>).await.unwrap();
        all.into_iter().flat_map(|image| image.repo_tags).collect()
    }
}

/// The web server's image as one gzip layer, which every engine can read, with a volume.
pub(crate) fn plain() -> packing::Image {
    let mut config = packing::web().config;
    config["Volumes"] = serde_json::json!({"/data": {}});
    packing::Image::new(vec![packing::busybox().tar()], config)
}

/// A program that ends when the test process is killed.
fn bound_to_parent(program: &str) -> Command {
    let found = Command::new("which").arg(program).stdout(Stdio::null()).status();
    assert!(
        found.is_ok_and(|found| found.success()),
        "{program} is missing: install docker.io and podman"
    );
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", program]);
    command
}

/// Starts it in its own process group, without the signals of the tests.
fn spawn(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    command.spawn().expect("the package util-linux is installed")
}

impl Drop for EngineLab {
    /// Kills all processes started for the directory and removes their cgroups.
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let pid = nix::unistd::Pid::from_raw(i32::try_from(process.id()).unwrap());
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::SIGTERM);
            let until = base::monotonic() + Duration::from_secs(10);
            while base::monotonic() < until && process.try_wait().is_ok_and(|ended| ended.is_none())
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = process.kill();
            let _ = process.wait();
        }
        let dir = self.dir.path().to_str().unwrap().to_owned();
        let until = base::monotonic() + Duration::from_secs(5);
        while base::monotonic() < until && !processes(&dir).is_empty() {
            processes(&dir).into_iter().for_each(kill);
            std::thread::sleep(Duration::from_millis(20));
        }
        remove_groups(&self.options.instance);
    }
}
