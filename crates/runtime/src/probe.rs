//! Finds out what works on this machine, by trying it in a child process.

use std::fs;
use std::path::Path;
use std::process::{ExitCode, Stdio};

use serde::{Deserialize, Serialize};

use super::Error;
use super::child::Task;
use super::network::attach;
use super::options::Options;
use super::unpack::overlay;

/// What works.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Abilities {
    /// Can containers have a network of their own?
    pub(crate) own_network: bool,
}

/// Tries; the error says what is missing and what to do.
pub(crate) async fn probe(options: &Options) -> Result<Abilities, Error> {
    if !rustix::process::geteuid().is_root() {
        let why = "The embedded runtime needs root to make containers: start paddock as root, \
                   or use Docker or Podman with --runtime docker.";
        return Err(Error::NotPermitted(why.to_owned()));
    }
    let output = tokio::process::Command::new(&options.program)
        .arg(Task::Probe.argument())
        .arg(&options.dir)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| Error::io("The embedded runtime can't start its own program", error))?;
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        let why = format!("The embedded runtime's probe ended with {}.", output.status);
        Err(Error::Helper(why))
    })
}

/// The child.
pub(crate) fn child(directory: &Path) -> ExitCode {
    let work = directory.join(format!("tmp/probe-{}", std::process::id()));
    let answer = attempt(&work);
    let _ = fs::remove_dir_all(&work);
    match serde_json::to_writer(std::io::stdout().lock(), &answer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn attempt(work: &Path) -> Result<Abilities, Error> {
    overlay::own_mounts().map_err(|error| {
        Error::NotPermitted(format!(
            "This process may not make mount namespaces ({error}): it lacks CAP_SYS_ADMIN; inside \
             a container, start it privileged."
        ))
    })?;
    mount(work).map_err(|error| {
        Error::Unsupported(format!(
            "overlayfs does not work in {} ({error}): load it with `modprobe overlay`, and keep \
             the data directory on a local file system such as ext4 or xfs.",
            work.parent().unwrap_or(work).display()
        ))
    })?;
    Ok(Abilities { own_network: attach::isolate().is_ok() })
}

fn mount(work: &Path) -> std::io::Result<()> {
    for name in ["lower", "upper", "work", "root"] {
        fs::create_dir_all(work.join(name))?;
    }
    let root = work.join("root");
    overlay::mount(&[work.join("lower")], &work.join("upper"), &work.join("work"), &root)?;
    let wrote = fs::write(root.join("file"), "");
    overlay::unmount(&root)?;
    wrote
}
