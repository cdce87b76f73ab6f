//! What goes wrong with a configuration, in words that name the place and the remedy.
//!
//! Always holds: every message names the file; a value's message names section, option, value and
//! what is expected. Keys and passwords are never repeated: an option whose name suggests a secret is
//! reported without its value.

use std::fmt;
use std::path::PathBuf;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file or directory cannot be read.
    #[error("cannot read {}: {reason}", file.display())]
    Unreadable {
        /// The file or directory.
        file: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// Not the file format.
    #[error("{} line {line}: {message}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// From 1.
        line: usize,
        /// What was found, and what to do.
        message: String,
    },
    /// A section that must be there is not.
    #[error("{} has no section [{section}]; {remedy}", file.display())]
    MissingSection {
        /// The file.
        file: PathBuf,
        /// Its name.
        section: String,
        /// What to do.
        remedy: String,
    },
    /// An option that must be there is not.
    #[error("{} [{section}] does not set {option}; {remedy}", file.display())]
    MissingOption {
        /// The file.
        file: PathBuf,
        /// Where it belongs.
        section: String,
        /// Its name.
        option: String,
        /// What to do.
        remedy: String,
    },
    /// A value of the wrong kind.
    #[error("{} [{section}] {option} = {}: expected {expected}", file.display(), shown(option, value))]
    Value {
        /// The file.
        file: PathBuf,
        /// The section it was found in.
        section: String,
        /// Its name.
        option: String,
        /// As written.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// The pipeline names something that cannot be built.
    #[error("{}: {message}", file.display())]
    Pipeline {
        /// The file.
        file: PathBuf,
        /// What is wrong and what to do.
        message: String,
    },
    /// The storage policies of `swift.conf` contradict each other.
    #[error("{}: {message}", file.display())]
    Policies {
        /// The file.
        file: PathBuf,
        /// What is wrong and what to do.
        message: String,
    },
}

fn shown(option: &str, value: &str) -> String {
    let lower = option.to_ascii_lowercase();
    let secret = ["key", "password", "secret", "user_", "user64_", "hash_path", "salt"];
    if secret.iter().any(|s| lower.contains(s)) {
        "(not shown)".into()
    } else {
        format!("{value:?}")
    }
}

/// How much a [`Warning`] matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The service works without it; the operator should know.
    Ignored,
    /// As [`Severity::Ignored`], and OpenStack Swift does not know it either: probably a slip. A test of the
    /// configuration fails.
    Unknown,
    /// Starting anyway would leave data or accounts less protected than the file asks for.
    /// A server must refuse to start and print it.
    Unsafe,
}

/// Something in a configuration that Martlet will not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The file that says it.
    pub file: PathBuf,
    /// The section that says it.
    pub section: String,
    /// The option, or the filter for warnings about a pipeline.
    pub subject: String,
    /// Whether a server may start nevertheless.
    pub severity: Severity,
    /// The whole sentence.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
