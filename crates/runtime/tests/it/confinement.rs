//! Privileges of the processes that read what registries, users and containers wrote.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tempfile::TempDir;

use crate::lab::{Lab, container, entries, processes};
use crate::packing::{self, Image, Layer};

/// User of processes without rights.
const HELPER_ID: u32 = 1_000_000;
/// `CAP_DAC_OVERRIDE` and `CAP_FOWNER`.
const REMOVE: u64 = 1 << 1 | 1 << 3;
/// The same, `CAP_CHOWN`, `CAP_FSETID` and `CAP_SETFCAP`.
const UNPACK: u64 = REMOVE | 1 | 1 << 4 | 1 << 31;
/// Attempts to see a process that ends soon.
const ATTEMPTS: usize = 10;

/// A runtime whose helper processes have a path of their own, by which they are found.
struct Watched {
    lab: Lab,
    program: TempDir,
}

impl Watched {
    async fn new() -> Self {
        let program = tempfile::tempdir().unwrap();
        let path = program.path().join("helper");
        symlink(crate::HELPER, &path).unwrap();
        let lab = Lab::with(|options| {
            options.program = path;
            // No process ends for another reason while a test waits for it.
            options.read_timeout = Duration::from_mins(5);
        });
        Self { lab: lab.await, program }
    }

    /// Helper processes of a task.
    fn helpers(&self, task: &str) -> Vec<i32> {
        let is_task = |pid: &i32| {
            fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains(task))
        };
        processes(self.program.path().to_str().unwrap()).into_iter().filter(is_task).collect()
    }

    /// Processes that a helper process of a task has forked.
    fn forked(&self, task: &str) -> Vec<i32> {
        let all = self.helpers(task);
        let is_forked = |pid: &&i32| {
            let parent = field(**pid, "PPid").and_then(|parent| parent.parse().ok());
            parent.is_some_and(|parent| all.contains(&parent))
        };
        all.iter().filter(is_forked).copied().collect()
    }

    /// Waits until the registry got a request, and returns the process that sent it.
    async fn downloader(&self) -> i32 {
        let until = base::monotonic() + Duration::from_secs(30);
        while self.lab.registry.content.lock().unwrap().requests.is_empty() {
            assert!(base::monotonic() < until, "no request");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let forked = self.forked("runtime:fetch");
        assert_eq!(forked.len(), 1, "the fetcher talks to the registry itself");
        forked[0]
    }
}

/// A process, stopped as long as this exists.
struct Stopped(Pid);

impl Stopped {
    /// Stops a process; none if it has ended.
    fn new(pid: i32) -> Option<Self> {
        let stopped = Self(Pid::from_raw(pid));
        kill(stopped.0, Signal::SIGSTOP).ok()?;
        let until = base::monotonic() + Duration::from_secs(30);
        loop {
            match field(pid, "State")?.chars().next()? {
                'T' => return Some(stopped),
                'Z' | 'X' => return None,
                _ => assert!(base::monotonic() < until, "{pid} does not stop"),
            }
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGCONT);
    }
}

fn field(pid: i32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut lines = status.lines().filter_map(|line| line.split_once(":\t"));
    lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim().to_owned())
}

/// Privileges of a process, as the kernel reports them.
#[derive(Debug)]
struct Seen {
    fields: BTreeMap<&'static str, String>,
    root: PathBuf,
    directory: PathBuf,
    network: PathBuf,
    processes: PathBuf,
    open: Vec<PathBuf>,
}

fn see(pid: i32) -> Seen {
    let names = ["Uid", "Gid", "Groups", "CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"];
    let names = names.into_iter().chain(["NoNewPrivs"]);
    let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}")).unwrap();
    let open = entries(Path::new(&format!("/proc/{pid}/fd")));
    Seen {
        fields: names.map(|name| (name, field(pid, name).unwrap())).collect(),
        root: link("root"),
        directory: link("cwd"),
        network: link("ns/net"),
        processes: link("ns/pid"),
        open: open.iter().filter_map(|fd| fs::read_link(fd).ok()).collect(),
    }
}

impl Seen {
    fn assert_confined(&self, capabilities: u64, allowed: &[&Path]) {
        let ids = [HELPER_ID; 4].map(|id| id.to_string()).join("\t");
        let set = |name: &str| u64::from_str_radix(&self.fields[name], 16).unwrap();
        assert_eq!((&self.fields["Uid"], &self.fields["Gid"]), (&ids, &ids), "{self:?}");
        assert_eq!(self.fields["Groups"], "", "{self:?}");
        assert_eq!((set("CapEff"), set("CapPrm")), (capabilities, capabilities), "{self:?}");
        assert_eq!((set("CapInh"), set("CapBnd"), set("CapAmb")), (0, 0, 0), "{self:?}");
        assert_eq!(self.fields["NoNewPrivs"], "1", "{self:?}");
        for open in &self.open {
            let is_nowhere = ["socket:", "pipe:", "anon_inode:"];
            let is_nowhere = is_nowhere.iter().any(|kind| open.to_str().unwrap().starts_with(kind));
            let is_allowed = allowed.iter().any(|path| open.starts_with(path));
            let is_null = open == Path::new("/dev/null");
            assert!(is_nowhere || is_allowed || is_null, "{} in {self:?}", open.display());
        }
    }

    fn assert_without_network(&self) {
        assert_ne!(self.network, fs::read_link("/proc/self/ns/net").unwrap());
    }
}

/// Looks at a process that `find` returns once `has_begun`, while `work` runs.
async fn catch(
    work: impl Future<Output = ()>,
    find: impl Fn() -> Vec<i32>,
    has_begun: impl Fn() -> bool,
) -> Option<Seen> {
    let look = async {
        loop {
            for pid in find() {
                if let Some(_stopped) = Stopped::new(pid)
                    && has_begun()
                {
                    return see(pid);
                }
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        seen = look => Some(seen),
        () = work => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn downloader_has_no_privileges() {
    let watched = Watched::new().await;
    let (lab, image) = (&watched.lab, watched.lab.registry.name("hang/x"));
    let hanging = container("hang-0", &image);
    let seen = tokio::select! {
        started = lab.runtime().start(&hanging) => panic!("{started:?}"),
        pid = watched.downloader() => see(pid),
    };
    let pulls = lab.options.dir.join("pulls");
    seen.assert_confined(0, &[&pulls]);
    assert!(seen.directory.starts_with(&pulls), "{seen:?}");
    assert_ne!(seen.processes, fs::read_link("/proc/self/ns/pid").unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn downloader_ends_with_its_fetcher() {
    let watched = Watched::new().await;
    let (lab, image) = (&watched.lab, watched.lab.registry.name("hang/x"));
    let hanging = container("hang-0", &image);
    tokio::select! {
        started = lab.runtime().start(&hanging) => panic!("{started:?}"),
        _ = watched.downloader() => {}
    }
    let until = base::monotonic() + Duration::from_secs(30);
    while !watched.helpers("runtime:fetch").is_empty() {
        assert!(base::monotonic() < until, "{:?}", watched.helpers("runtime:fetch"));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unpacker_is_confined_to_the_tree() {
    let watched = Watched::new().await;
    let (lab, temporary) = (&watched.lab, watched.lab.options.dir.join("tmp"));
    // Once a file of the second layer exists, the process is confined.
    let has_begun = || {
        let works = entries(&temporary).into_iter();
        works.flat_map(|work| entries(&work.join("upper"))).any(|path| path.ends_with("many"))
    };
    for attempt in 0..ATTEMPTS {
        let many = (0..20_000).fold(Layer::new().dir("many/"), |layer, at| {
            layer.file(&format!("many/{attempt}-{at}"), b"")
        });
        let image = Image::new(vec![packing::busybox().tar(), many.tar()], json!({}));
        let image = lab.registry.put(&format!("many{attempt}"), &image);
        let start = async {
            let _ = lab.runtime().start(&container("many-0", &image)).await;
        };
        let find = || watched.forked("runtime:fetch");
        if let Some(seen) = catch(start, find, has_begun).await {
            seen.assert_confined(UNPACK, &[&temporary, &lab.options.dir.join("pulls")]);
            seen.assert_without_network();
            assert!(seen.root.starts_with(&temporary), "{seen:?}");
            assert_eq!(seen.root.file_name().unwrap(), "merged");
            return;
        }
    }
    panic!("no unpacker was seen");
}

#[tokio::test(flavor = "multi_thread")]
async fn remover_is_confined_to_the_tree() {
    const FILES: usize = 20_000;
    let watched = Watched::new().await;
    let (lab, trash) = (&watched.lab, watched.lab.options.dir.join("trash"));
    for attempt in 0..ATTEMPTS {
        let tree = trash.join(format!("tree-{attempt}"));
        fs::create_dir(&tree).unwrap();
        (0..FILES).for_each(|at| fs::write(tree.join(at.to_string()), "").unwrap());
        // Once a file is gone, the process is confined.
        let has_begun = || (1..FILES).contains(&entries(&tree).len());
        let collect = async {
            lab.runtime().gc(Duration::ZERO).await;
        };
        if let Some(seen) = catch(collect, || watched.helpers("runtime:remove"), has_begun).await {
            seen.assert_confined(REMOVE, &[&tree]);
            seen.assert_without_network();
            assert_eq!(seen.root, tree);
            return;
        }
    }
    panic!("no remover was seen");
}

#[tokio::test(flavor = "multi_thread")]
async fn extractor_of_archives_is_confined_to_its_directory() {
    let watched = Watched::new().await;
    let (lab, temporary) = (&watched.lab, watched.lab.options.dir.join("tmp"));
    let files = (0..9000).fold(Layer::new(), |archive, at| archive.file(&format!("f{at}"), b""));
    let archive = files.tar();
    for _ in 0..ATTEMPTS {
        let mut file = tempfile::tempfile_in(watched.program.path()).unwrap();
        std::io::Write::write_all(&mut file, &archive).unwrap();
        let load = async {
            let _ = lab.runtime().load_images("ann", file, None).await;
        };
        let has_begun = || entries(&temporary).iter().any(|work| !entries(work).is_empty());
        if let Some(seen) = catch(load, || watched.forked("runtime:load"), has_begun).await {
            seen.assert_confined(0, &[&temporary, watched.program.path()]);
            seen.assert_without_network();
            assert!(seen.root.starts_with(&temporary), "{seen:?}");
            return;
        }
    }
    panic!("no extractor was seen");
}

#[tokio::test(flavor = "multi_thread")]
async fn unpacked_files_have_the_owners_modes_and_capabilities_of_the_layer() {
    let lab = Lab::new().await;
    // Version 2, effective: CAP_NET_RAW.
    let capability = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let layer = || {
        Layer::new()
            .owned("implied/directory/plain", 0o640, 33, b"")
            .owned("setuid", 0o6755, 33, b"")
            .attribute("security.capability", &capability)
            .file("ping", b"")
    };
    let image = Image::new(vec![layer().tar(), layer().file("second", b"").tar()], json!({}));
    // It has no command.
    lab.runtime().start(&container("x-0", &lab.registry.put("x", &image))).await.unwrap_err();
    let layers = entries(&lab.options.dir.join("layers"));
    assert_eq!(layers.len(), 2);
    for layer in layers {
        let found = |path: &str| {
            let found = fs::symlink_metadata(layer.join(path)).unwrap();
            (found.uid(), found.gid(), found.mode() & 0o7777)
        };
        assert_eq!(found("."), (0, 0, 0o755));
        assert_eq!(found("implied"), (0, 0, 0o755));
        assert_eq!(found("implied/directory"), (0, 0, 0o755));
        assert_eq!(found("implied/directory/plain"), (33, 0, 0o640));
        assert_eq!(found("setuid"), (33, 0, 0o6755));
        let mut value = [0; 64];
        let length = rustix::fs::getxattr(layer.join("ping"), "security.capability", &mut value);
        assert_eq!(&value[..length.unwrap()], capability);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_pull_of_an_older_version_does_not_prevent_a_retry() {
    let lab = Lab::new().await;
    let web = container("web-0", &lab.registry.put("web", &packing::web()));
    lab.registry.content.lock().unwrap().cut_once = Some(200_000);
    lab.runtime().start(&web).await.unwrap_err();
    // Older versions stored blobs as root.
    for pull in entries(&lab.options.dir.join("pulls")) {
        for path in entries(&pull).iter().chain([&pull]) {
            assert_eq!(fs::metadata(path).unwrap().uid(), HELPER_ID);
            std::os::unix::fs::chown(path, Some(0), Some(0)).unwrap();
        }
    }
    lab.runtime().start(&web).await.unwrap();
    lab.runtime().stop("web-0").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_for_another_engine_is_rewritten_without_privileges() {
    let dir = tempfile::tempdir().unwrap();
    let repack = runtime::Repack {
        program: PathBuf::from(crate::HELPER),
        dir: dir.path().join("work"),
        max_bytes: 64 << 20,
        timeout: Duration::from_mins(1),
        prefix: "localhost/org".to_owned(),
    };
    fs::create_dir(&repack.dir).unwrap();
    let archive = crate::loading::file(&runtime::builtin_archive("web:1"));
    let (images, output) = runtime::repack(&repack, archive, None).await.unwrap();
    assert_eq!(images[0].name, "localhost/web:1");
    assert_eq!(output, repack.dir.join("repacked.tar"));
    assert_eq!(fs::metadata(&output).unwrap().uid(), HELPER_ID);
    let mut tar = tar::Archive::new(fs::File::open(output).unwrap());
    let is_manifest = |entry: tar::Entry<'_, _>| entry.path().unwrap().ends_with("manifest.json");
    assert!(tar.entries().unwrap().any(|entry| is_manifest(entry.unwrap())));
}
