//! Docker and Podman of our own, each in a network and a mount namespace of its own, so that they
//! change nothing on the machine and all of theirs goes with them.

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
use tempfile::TempDir;

use crate::lab::{get, kill, processes, remove_groups};
use crate::packing;
use crate::registry::{Debian, Fake, digest_of};

type Job = Box<dyn FnOnce() + Send>;

/// A thread in namespaces of its own; what it starts is in them too.
pub(crate) struct Inside(mpsc::Sender<Job>);

impl Inside {
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

    /// Does something there.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (answer, done) = mpsc::channel();
        let _ = self.0.send(Box::new(move || drop(answer.send(job()))));
        done.recv().expect("it failed there")
    }
}

/// An engine that runs, with registries that it can reach.
pub(crate) struct Stand {
    pub(crate) options: Options,
    pub(crate) image: String,
    pub(crate) fake: Fake,
    pub(crate) inside: Inside,
    engine: Engine,
    process: Option<Child>,
    _registry: Debian,
    pub(crate) dir: TempDir,
}

impl Stand {
    pub(crate) async fn new(engine: Engine) -> (Self, Docker) {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().file_name().unwrap().to_str().unwrap();
        let instance = format!("t{}", &digest_of(name.as_bytes())[7..15]);
        let inside = Inside::new();
        let path = dir.path().to_owned();
        let (registry, image) = inside.run(move || {
            let registry = Debian::start(&path);
            let image = registry.push(&path, "web", &plain());
            (registry, image)
        });
        let fake = inside.run(Fake::start);
        let options = Options {
            socket: Some(dir.path().join("sock")),
            stop_grace: Duration::from_secs(1),
            cgroup_parent: Some(format!("/paddock-{instance}")),
            ..Options::new(&instance)
        };
        let mut stand =
            Self { options, image, fake, inside, engine, process: None, _registry: registry, dir };
        let runtime = stand.start().await;
        (stand, runtime)
    }

    /// Starts the engine, and asks it until it answers.
    pub(crate) async fn start(&mut self) -> Docker {
        let mut command = match self.engine {
            Engine::Docker => self.dockerd(),
            Engine::Podman => self.podman(),
        };
        // Podman's conmon writes a file `oom` where it was started.
        command.current_dir(self.dir.path());
        self.process = Some(self.inside.run(move || spawn(command)));
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
        let mut command = ends_with_us("dockerd");
        command.args(["--data-root", &at("data"), "--exec-root", &at("exec")]);
        command.args(["--pidfile", &at("pid"), "--config-file", &at("daemon.json")]);
        command.args(["-H", &format!("unix://{}", at("sock"))]);
        command.args(["--shutdown-timeout", "2", "--live-restore"]);
        command.stderr(File::options().create(true).append(true).open(at("engine.log")).unwrap());
        command
    }

    fn podman(&self) -> Command {
        let at = |name: &str| self.dir.path().join(name).display().to_string();
        // As many files as we may have: without the right to more, it asks for more.
        let conf = "[containers]\n\
            default_ulimits = [\"nofile=1024:1024\", \"nproc=4096:4096\"]\n\
            [engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n\
            [network]\nnetwork_backend = \"netavark\"\n";
        fs::write(at("containers.conf"), conf).unwrap();
        let insecure =
            |address: &str| format!("[[registry]]\nlocation = \"{address}\"\ninsecure = true\n");
        let ours = self.image.split('/').next().unwrap();
        fs::write(at("registries.conf"), insecure(ours) + &insecure(&self.fake.address)).unwrap();
        let mut command = ends_with_us("podman");
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

    /// Ends the engine without notice.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Asks a web server in there.
    pub(crate) fn get(&self, endpoint: &str) -> String {
        let endpoint = endpoint.to_owned();
        self.inside.run(move || get(&endpoint, "/"))
    }

    /// All containers and anonymous volumes that the engine has.
    pub(crate) async fn left(&self) -> Vec<String> {
        let socket = self.options.socket.as_ref().unwrap().to_str().unwrap();
        let api =
            bollard::Docker::connect_with_unix(socket, 30, bollard::API_DEFAULT_VERSION).unwrap();
        let api = api.negotiate_version().await.unwrap();
        let options =
            bollard::query_parameters::ListContainersOptions { all: true, ..Default::default() };
        let containers = api.list_containers(Some(options)).await.unwrap();
        let mut left: Vec<_> =
            containers.into_iter().map(|one| format!("{:?} {:?}", one.names, one.status)).collect();
        let volumes = api.list_volumes(None::<bollard::query_parameters::ListVolumesOptions>).await;
        let volumes = volumes.unwrap().volumes.unwrap_or_default();
        left.extend(volumes.into_iter().map(|volume| volume.name));
        left
    }

    /// The images that the engine has.
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

/// The web server's image in one layer, packed so that every engine can read it, with a volume.
pub(crate) fn plain() -> packing::Image {
    let mut config = packing::web().config;
    config["Volumes"] = serde_json::json!({"/data": {}});
    packing::Image::new(vec![packing::busybox().tar()], config)
}

/// A program that does not stay when a test is killed.
fn ends_with_us(program: &str) -> Command {
    let found = Command::new("which").arg(program).stdout(Stdio::null()).status();
    assert!(
        found.is_ok_and(|found| found.success()),
        "{program} is missing: install docker.io and podman"
    );
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", program]);
    command
}

/// With a group of its own: what is sent to the tests is not meant for it.
fn spawn(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    command.spawn().expect("the package util-linux is installed")
}

impl Drop for Stand {
    /// Ends all that was started for the directory, by it, and removes what it has left.
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
