//! Checks what the host supports, by trying it in a helper process.

use std::fs;
use std::path::Path;
use std::process::{ExitCode, Stdio};

use serde::{Deserialize, Serialize};

use super::Error;
use super::child::Task;
use super::network::attach;
use super::network::firewall::Tried;
use super::options::Options;
use super::shim::{DiskKind, probe_disk};
use super::unpack::overlay;
use super::userns::{self, LayerIds};

/// What the host supports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Capabilities {
    /// Programs that can isolate containers.
    pub(crate) firewalls: Tried,
    /// How writable layers are limited.
    pub(crate) disk: DiskKind,
    /// How containers run in user namespaces; the error says why they can't.
    pub(crate) user_ns: Result<LayerIds, String>,
}

/// Second argument of the helper process: don't use idmapped mounts.
const NO_IDMAPPED_MOUNTS: &str = "no-idmapped-mounts";

/// Runs the checks; the error says what is missing and how to provide it.
pub(crate) async fn probe(options: &Options) -> Result<Capabilities, Error> {
    if !rustix::process::geteuid().is_root() {
        let why = "The embedded runtime needs root: start paddock as root, or use Docker or Podman \
                   with --runtime docker.";
        return Err(Error::NotPermitted(why.to_owned()));
    }
    let output = tokio::process::Command::new(&options.program)
        .arg(Task::Probe.argument())
        .arg(&options.dir)
        .args((!options.idmapped_mounts).then_some(NO_IDMAPPED_MOUNTS))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| Error::io("Starting the probe failed", error))?;
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        let why = format!("Probe failed: {}.", output.status);
        Err(Error::Helper(why))
    })
}

/// Entry point of the helper process.
pub(crate) fn child(directory: &Path) -> ExitCode {
    let work = directory.join(format!("tmp/probe-{}", std::process::id()));
    let use_idmapped = std::env::args().nth(3).is_none_or(|mode| mode != NO_IDMAPPED_MOUNTS);
    let response = run_checks(&work, use_idmapped);
    let _ = base::tree::remove(&work);
    match serde_json::to_writer(std::io::stdout().lock(), &response) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run_checks(work: &Path, use_idmapped: bool) -> Result<Capabilities, Error> {
    overlay::new_mount_namespace().map_err(|error| {
        Error::NotPermitted(format!(
            "Mount namespaces are not permitted ({error}): CAP_SYS_ADMIN is missing. Inside a \
            container, run privileged."
        ))
    })?;
    mount(work).map_err(|error| {
        Error::Unsupported(format!(
            "overlayfs does not work in {} ({error}). Load it with `modprobe overlay` and keep the \
            data directory on a local file system such as ext4 or xfs.",
            work.parent().unwrap_or(work).display()
        ))
    })?;
    let disk = probe_disk(work).map_err(|error| {
        Error::Unsupported(format!(
            "Writable layers of containers cannot be limited: neither a loop device with mkfs.ext4 \
            nor tmpfs works ({error}). Install e2fsprogs and load the module `loop`."
        ))
    })?;
    let user_ns = userns::probe(work, use_idmapped);
    attach::new_network_namespace().map_err(|error| {
        Error::NotPermitted(format!(
            "Network namespaces are not permitted ({error}): CAP_SYS_ADMIN is missing. Inside a \
             container, run privileged."
        ))
    })?;
    Ok(Capabilities { firewalls: Tried::new(), disk, user_ns })
}

fn mount(work: &Path) -> std::io::Result<()> {
    for name in ["lower", "upper", "work", "root"] {
        fs::create_dir_all(work.join(name))?;
    }
    let root = work.join("root");
    let (upper, inner) = (work.join("upper"), work.join("work"));
    overlay::mount(&[work.join("lower")], &upper, &inner, &root, overlay::COPY_WHOLE)?;
    let wrote = fs::write(root.join("file"), "");
    overlay::unmount(&root)?;
    wrote
}
