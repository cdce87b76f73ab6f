//! Why a start failed: one message that names the thing and the remedy.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// See the variants; each is printed as it stands.
#[derive(Debug, thiserror::Error)]
pub enum CommandFailure {
    /// A configuration file.
    #[error("{0}")]
    Settings(#[from] settings::SettingsError),
    /// Settings that would lose data or open doors.
    #[error("{0}\nrefusing to start; change that and start again")]
    Unsafe(String),
    /// A ring file.
    #[error("{path}: {error}")]
    Ring {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        error: placement::RingError,
    },
    /// Making rings for a new cluster.
    #[error("cannot make rings for a new cluster: {0}")]
    Builder(#[from] placement::BuilderError),
    /// The file system.
    #[error("cannot {doing} {path}: {error}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// An address that cannot be listened on.
    #[error("cannot listen on {address}: {error}{}", remedy(error))]
    Listen {
        /// Where.
        address: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// The process that was to serve, which has said why.
    #[error("the worker ended with status {0}")]
    Worker(i32),
    /// A tool that ended with an exit status of its own, and has said why.
    #[error("ended with status {0}")]
    Tool(u8),
    /// Something the command line got wrong.
    #[error("{0}")]
    Usage(String),
}

/// What may help; nothing where the system's words say it.
fn remedy(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::AddrInUse => "; is another server running there?",
        ErrorKind::AddrNotAvailable => "; choose an address of this machine, or 0.0.0.0 for all of them",
        _ => "",
    }
}

impl CommandFailure {
    /// For `map_err`.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io { doing, path, error }
    }
}

/// The system has no threads left.
pub fn no_threads(error: std::io::Error) -> CommandFailure {
    CommandFailure::Io {
        doing: "start I/O threads for",
        path: "the devices".into(),
        error,
    }
}
