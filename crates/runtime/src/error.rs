//! Errors of the runtime.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::message;

/// An error of the runtime. Each variant is one that a caller handles differently; `Display` is a
/// message for users.
///
/// Causes are text: a helper process sends its error to the process that started it. The `String`
/// of a pull or port error is the cause alone, for callers that add their own context.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Error {
    /// Name of a container or an instance is invalid. Choose another.
    #[error(
        "Invalid name {0:?}: must be 1 to 60 characters of a-z, 0-9 and -, not starting with -."
    )]
    InvalidName(String),
    /// Image reference is invalid. Correct it.
    #[error("Invalid image name {image}: {cause}.")]
    InvalidImageName {
        /// The image reference.
        image: String,
        /// The parser's message.
        cause: String,
    },
    /// Memory limit is too low to start a container. Raise it.
    #[error(
        "Memory limit of {} is below the minimum of 4 MiB. `ram` is in bytes: write 512Mi or 4Gi.",
        message::bytes(*bytes)
    )]
    TooLittleRam {
        /// The requested limit.
        bytes: i64,
    },
    /// Disk limit is too low for a file system. Raise it.
    #[error(
        "Disk limit of {} is below the minimum of 4 MiB. `disk` is in bytes: write 512Mi or 4Gi.",
        message::bytes(*bytes)
    )]
    TooLittleDisk {
        /// The requested limit.
        bytes: i64,
    },
    /// Neither the container nor its image has a command. Set one.
    #[error("{0}")]
    BadCommand(String),
    /// The image lacks the command. Set another.
    #[error("{message}")]
    CommandNotFound {
        /// The command.
        command: String,
        /// What is wrong.
        message: String,
    },
    /// The command is not executable. Set another.
    #[error("{message}")]
    CommandNotExecutable {
        /// The command.
        command: String,
        /// What is wrong.
        message: String,
    },
    /// The registry does not have the image. Check name and tag.
    #[error("Image {image} not found in registry {registry}.")]
    ImageNotFound {
        /// The image reference.
        image: String,
        /// The registry.
        registry: String,
    },
    /// No image of this name was loaded for the container's owner. Load it.
    #[error("Image {image} is not on this machine.")]
    ImageNotLoaded {
        /// The image reference.
        image: String,
    },
    /// The image archive is invalid. Create it again.
    #[error("Invalid image archive: {0}.")]
    InvalidArchive(String),
    /// Containers use the image. Stop them.
    #[error("Image {image} is in use by a container. Stop the container first.")]
    ImageInUse {
        /// The image reference.
        image: String,
    },
    /// The registry denies access. Set credentials in [`Options::registries`](crate::Options).
    #[error("Registry {registry} denied access to {image}.")]
    Unauthorised {
        /// The image reference.
        image: String,
        /// The registry.
        registry: String,
    },
    /// The registry is unreachable or fails. Retry later; a retry resumes the pull.
    #[error("Image pull failed: {0}.")]
    RegistryUnavailable(String),
    /// The registry does not answer in time. Retry later; a retry resumes the pull.
    #[error("Image pull failed: {0}.")]
    RegistryTimedOut(String),
    /// The registry has an address that is not permitted, or refers to a host that is not allowed.
    /// Allow it in [`Registries`](crate::Registries).
    #[error("Image pull failed: {0}.")]
    RegistryRefused(String),
    /// The image is corrupt or malicious. Use another image.
    #[error("Image pull failed: {0}.")]
    BadImage(String),
    /// The image exceeds a size limit. Use another image.
    #[error("Image pull failed: {0}.")]
    ImageTooLarge(String),
    /// The image is for another platform. Use another image.
    #[error("Image pull failed: {0}.")]
    WrongPlatform(String),
    /// The image's user or working directory does not exist in the image. Use another image.
    #[error("{0}")]
    BadImageConfig(String),
    /// The container's ports can't be published. Retry.
    #[error("Publishing ports failed: {0}.")]
    PortNotOpened(String),
    /// Every address of the container subnet is in use. Stop other containers.
    #[error(
        "Network is full: every address of the container subnet is in use. Stop other containers."
    )]
    NetworkFull,
    /// The network policy of containers can't be applied. Install a program that applies it.
    #[error(
        "Containers can't be isolated from the host's network: {0}. Install nftables or iptables and \
         retry."
    )]
    NotIsolated(String),
    /// The disk is full. Free disk space.
    #[error("{context}: no space left on device. Free disk space and retry.")]
    NoSpace {
        /// The operation that failed.
        context: String,
    },
    /// Another process uses the directory. Use another one.
    #[error("Directory {} is in use by another process. Use another directory.", dir.display())]
    DirectoryInUse {
        /// The directory.
        dir: PathBuf,
    },
    /// A privilege is missing. Run as root, or privileged.
    #[error("{0}")]
    NotPermitted(String),
    /// A kernel feature is missing. Load or mount it.
    #[error("{0}")]
    Unsupported(String),
    /// A helper process exited early or hangs. Retry.
    #[error("{0}")]
    Helper(String),
    /// Processes or files of the container remain. Retry.
    #[error("Container {0} could not be removed: processes or files remain.")]
    NotRemoved(String),
    /// A system call failed.
    #[error("{context}: {cause}.")]
    Io {
        /// The operation that failed.
        context: String,
        /// The system's message.
        cause: String,
    },
}

impl Error {
    /// A failed system call; `context` names the operation, without a full stop.
    pub(crate) fn io(context: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        let (context, cause) = (context.into(), cause.into());
        match cause.kind() {
            io::ErrorKind::StorageFull => Error::NoSpace { context },
            _ => Error::Io { context, cause: cause.to_string() },
        }
    }
}
