//! The writable layer of a container: a file system of limited size below the overlay.
//!
//! An ext4 image on a loop device, or tmpfs where the host has neither loop devices nor `mkfs.ext4`.
//! Mounted in the shim's mount namespace, so that mount and loop device vanish with its last process.
//! Its content needs not survive a reboot: containers of another boot are removed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use serde::{Deserialize, Serialize};

use crate::raw;

/// Where `mkfs.ext4` is. The shim has no `PATH`.
const MKFS: [&str; 4] =
    ["/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4", "/usr/bin/mkfs.ext4", "/bin/mkfs.ext4"];
/// No journal: nothing is recovered after a crash. No reserve for root: containers run as root.
const MKFS_OPTIONS: [&str; 10] = [
    "-q",
    "-F",
    "-O",
    "^has_journal,^resize_inode",
    "-E",
    "lazy_itable_init=1,nodiscard",
    "-m",
    "0",
    "-i",
    "8192",
];
/// No flushes: a stop does not wait for the disk. Freed blocks are returned to the host.
const MOUNT_OPTIONS: &std::ffi::CStr = c"barrier=0,noinit_itable,discard,errors=remount-ro";
/// Number of attempts to get a loop device that others take, too.
const LOOP_ATTEMPTS: usize = 100;

/// How writable layers are limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DiskKind {
    /// An ext4 image on a loop device.
    Ext4,
    /// A tmpfs, which counts as memory of the container.
    Tmpfs,
}

/// Writable layer of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Disk {
    pub(crate) kind: DiskKind,
    pub(crate) bytes: u64,
    /// Formatted image of this size, created at its first use: copying is faster than formatting.
    pub(crate) template: Option<PathBuf>,
}

impl Disk {
    /// Mounts the layer at `directory`; `image` is the file of its content.
    pub(crate) fn mount(&self, image: &Path, directory: &Path) -> io::Result<()> {
        fs::create_dir_all(directory)?;
        match self.kind {
            DiskKind::Ext4 => self.mount_ext4(image, directory),
            DiskKind::Tmpfs => {
                let data = std::ffi::CString::new(format!("mode=755,size={}", self.bytes))?;
                Ok(mount("tmpfs", directory, "tmpfs", MountFlags::NODEV, data.as_c_str())?)
            }
        }
    }

    fn mount_ext4(&self, image: &Path, directory: &Path) -> io::Result<()> {
        match &self.template {
            Some(template) => {
                if !template.exists() {
                    self.create_template(template)?;
                }
                copy_sparse(template, image)?;
            }
            None => format(image, self.bytes)?,
        }
        let file = File::options().read(true).write(true).open(image)?;
        let (device, _attached) = attach(&file)?;
        Ok(mount(&device, directory, "ext4", MountFlags::NODEV, MOUNT_OPTIONS)?)
    }

    /// Creates the template under its name only when it is complete.
    fn create_template(&self, template: &Path) -> io::Result<()> {
        if let Some(parent) = template.parent() {
            fs::create_dir_all(parent)?;
        }
        let part = template.with_extension(std::process::id().to_string());
        format(&part, self.bytes)?;
        fs::rename(&part, template)
    }
}

/// Which kind works on this host: tries it in a directory of its own.
pub(crate) fn probe(work: &Path) -> io::Result<DiskKind> {
    let works = |kind| {
        let disk = Disk { kind, bytes: 16 << 20, template: None };
        let directory = work.join("disk");
        disk.mount(&work.join("disk.img"), &directory)?;
        fs::write(directory.join("file"), "")?;
        crate::unpack::overlay::unmount(&directory)
    };
    match works(DiskKind::Ext4) {
        Ok(()) => Ok(DiskKind::Ext4),
        Err(_) => works(DiskKind::Tmpfs).map(|()| DiskKind::Tmpfs),
    }
}

/// Creates an image with an empty ext4 file system.
fn format(image: &Path, bytes: u64) -> io::Result<()> {
    File::create(image)?.set_len(bytes)?;
    let program = MKFS.into_iter().find(|path| Path::new(path).exists());
    let program = program.ok_or_else(|| io::Error::other("mkfs.ext4 is not installed"))?;
    let formatted = Command::new(program)
        .args(MKFS_OPTIONS)
        .arg(image)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if formatted.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("mkfs.ext4 failed: {formatted}")))
}

/// Copies a file without its holes.
fn copy_sparse(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (File::open(from)?, File::create(to)?);
    let size = from.metadata()?.len();
    to.set_len(size)?;
    let mut buffer = vec![0; 128 << 10];
    let mut at = 0;
    while at < size {
        let start = match seek(&from, SeekFrom::Data(at)) {
            Ok(start) => start,
            // Only a hole is left.
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let end = seek(&from, SeekFrom::Hole(start))?;
        at = start;
        while at < end {
            let want = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
            let n = from.read_at(&mut buffer[..want], at)?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            to.write_all_at(&buffer[..n], at)?;
            at += n as u64;
        }
    }
    Ok(())
}

/// Attaches a file to a free loop device, which is freed when the returned handle and the mount are
/// gone.
fn attach(image: &File) -> io::Result<(PathBuf, File)> {
    let control = File::options().read(true).write(true).open("/dev/loop-control")?;
    let mut last = io::Error::other("no loop device is free");
    for _ in 0..LOOP_ATTEMPTS {
        let device = PathBuf::from(format!("/dev/loop{}", raw::free_loop_device(&control)?));
        let attached = File::options()
            .read(true)
            .write(true)
            .open(&device)
            .and_then(|file| raw::attach_loop_device(&file, image).map(|()| file));
        match attached {
            Ok(file) => return Ok((device, file)),
            // Another process was faster.
            Err(error) => last = error,
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Err(last)
}
