//! Seals the shim's program against writes by its container.
//!
//! A container can reach the program of a process in it through `/proc` and overwrite it
//! (CVE-2019-5736). The shim therefore runs from a read-only bind mount of the file.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use crate::Error;
use crate::child::{Task, report_ready};
use crate::raw;
use crate::unpack::overlay;

/// Entry point of the helper process: starts a session, seals its program and executes it again.
pub(crate) fn child(directory: &Path) -> ExitCode {
    raw::reset_signals();
    // Fails only if this process leads a session already.
    let _ = rustix::process::setsid();
    let error = match seal(directory) {
        Ok(program) => {
            Command::new(program).arg(Task::SealedShim.argument()).arg(directory).env_clear().exec()
        }
        Err(error) => error,
    };
    let context = "Mounting the shim's executable read-only failed";
    report_ready::<()>(&Err(Error::io(context, error)));
    ExitCode::FAILURE
}

fn seal(directory: &Path) -> std::io::Result<std::path::PathBuf> {
    // By descriptor, and before the new mount namespace exists: the running program is in the old
    // one, and an upgrade may have replaced the file at its path.
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let running = open_tree(rustix::fs::CWD, "/proc/self/exe", flags)?;
    overlay::new_mount_namespace()?;
    let program = directory.join("program");
    File::create(&program)?;
    let by_descriptor = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(&running, "", rustix::fs::CWD, &program, by_descriptor)?;
    rustix::mount::mount_remount(&program, MountFlags::BIND | MountFlags::RDONLY, "")?;
    Ok(program)
}
