//! Why the runtime could not do what it was asked for.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::message;

/// Why the runtime could not do what it was asked for. A variant is what a caller can do differently;
/// `Display` is a message for the user.
///
/// Causes are kept as text: a helper process sends its error to the process that started it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Error {
    /// The name of a container or an instance can't be used. Choose another.
    #[error("{0:?} is not a container's name: a-z, 0-9 and -, at most 60.")]
    InvalidName(String),
    /// The image's name can't be parsed. Correct it.
    #[error("{image} is not an image's name ({cause}): write registry/name:tag.")]
    InvalidImageName {
        /// The name.
        image: String,
        /// What the parser says.
        cause: String,
    },
    /// No container starts with so little memory. Raise the limit.
    #[error(
        "{} of ram is too little to start a container: ask for at least 6Mi (amounts of ram are \
         bytes, write 512Mi or 4Gi).",
        message::bytes(*bytes)
    )]
    TooLittleRam {
        /// The limit that was asked for.
        bytes: i64,
    },
    /// Neither the container nor its image says what to run. Give a command.
    #[error("{0}")]
    BadCommand(String),
    /// The image does not have the command. Give another.
    #[error("{message}")]
    CommandNotFound {
        /// The command.
        command: String,
        /// What is wrong, as a sentence.
        message: String,
    },
    /// The command is not executable in the image. Give another.
    #[error("{message}")]
    CommandNotExecutable {
        /// The command.
        command: String,
        /// What is wrong, as a sentence.
        message: String,
    },
    /// The registry has no such image. Check name and tag.
    #[error("The image {image} does not exist in the registry {registry}: check its name and tag.")]
    ImageNotFound {
        /// The image's name.
        image: String,
        /// The registry that was asked.
        registry: String,
    },
    /// The registry refuses access. Set credentials in [`Options::registries`](crate::Options).
    #[error(
        "The registry {registry} does not let us have {image}: set credentials for {registry}, or \
         check the ones that are set."
    )]
    Unauthorised {
        /// The image's name.
        image: String,
        /// The registry that was asked.
        registry: String,
    },
    /// The registry does not deliver. Retry later; a retry continues what has arrived.
    #[error("{0}")]
    RegistryUnavailable(String),
    /// The registry does not answer in time. Retry later; a retry continues what has arrived.
    #[error("{0}")]
    RegistryTimedOut(String),
    /// The image is damaged or hostile. Use another image.
    #[error("{0}")]
    BadImage(String),
    /// The image is larger than allowed. Use another image.
    #[error("{0}")]
    ImageTooLarge(String),
    /// The image is built for another platform. Use another image.
    #[error("{0}")]
    WrongPlatform(String),
    /// The image names a user or a working directory that it does not have. Use another image.
    #[error("{0}")]
    BadImageConfig(String),
    /// Something else listens on the port. Only without a network namespace per container.
    #[error(
        "Port {port} can't be used: {cause}. Containers share this machine's network here; choose \
         another port or stop what uses it."
    )]
    PortInUse {
        /// The port.
        port: u16,
        /// What the kernel says.
        cause: String,
    },
    /// The container's ports can't be published. Retry.
    #[error("No port could be opened: {0}.")]
    PortNotOpened(String),
    /// Every address of the installation's network is in use. Stop other containers.
    #[error("The network is full: too many containers run on this machine.")]
    NetworkFull,
    /// The disk is full. Free some space.
    #[error("{context}: no space is left on the device. Free some, then try again.")]
    NoSpace {
        /// What failed.
        context: String,
    },
    /// Another process works with the directory. Use another one.
    #[error("{} is used by another paddock: give each its own directory.", dir.display())]
    DirectoryInUse {
        /// The directory.
        dir: PathBuf,
    },
    /// The process lacks a privilege. Run it as root, or privileged.
    #[error("{0}")]
    NotPermitted(String),
    /// The kernel lacks a feature. Load or mount it.
    #[error("{0}")]
    Unsupported(String),
    /// A helper process ended early or is stuck. Retry.
    #[error("{0}")]
    Helper(String),
    /// Processes or files of the container could not be removed. Retry.
    #[error("The container {0} does not go away.")]
    NotRemoved(String),
    /// A system call failed.
    #[error("{context}: {cause}.")]
    Io {
        /// What failed.
        context: String,
        /// What the system says.
        cause: String,
    },
}

impl Error {
    /// A failed system call; `context` says what failed, without a full stop.
    pub(crate) fn io(context: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        let (context, cause) = (context.into(), cause.into());
        match cause.kind() {
            io::ErrorKind::StorageFull => Error::NoSpace { context },
            _ => Error::Io { context, cause: cause.to_string() },
        }
    }
}
