//! Seals the shim's own program before a container can see it.
//!
//! A container can reach the program of a process in it through `/proc`, and has been known to
//! write to it (CVE-2019-5736). A read-only mount of the file, from which the shim runs, ends that.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use crate::Error;
use crate::child::{Task, tell};
use crate::raw;
use crate::unpack::overlay;

/// The child: leaves its starter's session, seals its program and runs it again.
pub(crate) fn child(directory: &Path) -> ExitCode {
    raw::reset_signals();
    // Fails only for a session's leader, which is what we want to be.
    let _ = rustix::process::setsid();
    let error = match seal(directory) {
        Ok(program) => {
            Command::new(program).arg(Task::SealedShim.argument()).arg(directory).env_clear().exec()
        }
        Err(error) => error,
    };
    tell::<()>(&Err(Error::io("The container's shim could not be sealed", error)));
    ExitCode::FAILURE
}

fn seal(directory: &Path) -> std::io::Result<std::path::PathBuf> {
    // By descriptor and before this process gets mounts of its own: the running program is in the
    // old ones, and its path may mean another file since an upgrade.
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let running = open_tree(rustix::fs::CWD, "/proc/self/exe", flags)?;
    overlay::own_mounts()?;
    let program = directory.join("program");
    File::create(&program)?;
    let by_descriptor = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(&running, "", rustix::fs::CWD, &program, by_descriptor)?;
    rustix::mount::mount_remount(&program, MountFlags::BIND | MountFlags::RDONLY, "")?;
    Ok(program)
}
