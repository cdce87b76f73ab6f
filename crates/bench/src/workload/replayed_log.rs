//! What is replayed of a log: operations one by one, on numbered containers and objects.
//!
//! Always holds: steps name containers and objects that there are, by numbers from 1 on, and operations by their
//! places; requests are in the order in which they are due.

use super::OperationKind;
use super::script::ScriptStep;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Requests of a log that is replayed: each takes about a hundred bytes of memory.
pub const MOST_REQUESTS: usize = 20_000_000;

/// A log without its names.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplayedLog {
    /// What is sent, due at the speed of the replay.
    pub requests: Arc<[ScriptStep]>,
    /// Kinds of requests that there are; steps name them by their places.
    pub operations: Vec<LoggedKind>,
    /// Objects that are made beforehand.
    pub prepared: Arc<[ScriptStep]>,
    /// Objects that may be there at the end.
    pub deleted: Arc<[ScriptStep]>,
    /// How many there are.
    pub containers: u32,
    /// How many there are.
    pub objects: u32,
}

/// Requests that are replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LoggedKind {
    /// GET of an object.
    Read,
    /// PUT of an object.
    Write,
    /// HEAD of an object.
    Head,
    /// POST to an object.
    Post,
    /// DELETE of an object.
    Delete,
    /// GET of a container.
    List,
    /// HEAD of a container.
    HeadContainer,
    /// PUT of a container.
    MakeContainer,
}

impl LoggedKind {
    /// The method of a request to an object or a container; nothing where it is not replayed.
    pub fn of(method: &str, is_on_object: bool) -> Option<Self> {
        match (method, is_on_object) {
            ("GET", true) => Some(Self::Read),
            ("PUT", true) => Some(Self::Write),
            ("HEAD", true) => Some(Self::Head),
            ("POST", true) => Some(Self::Post),
            ("DELETE", true) => Some(Self::Delete),
            ("GET", false) => Some(Self::List),
            ("HEAD", false) => Some(Self::HeadContainer),
            ("PUT", false) => Some(Self::MakeContainer),
            _ => None,
        }
    }

    /// What a benchmark calls it.
    pub fn kind(self) -> OperationKind {
        match self {
            Self::Read => OperationKind::Read,
            Self::Write => OperationKind::Write,
            Self::Head | Self::HeadContainer => OperationKind::Head,
            Self::Post => OperationKind::Post,
            Self::Delete => OperationKind::Delete,
            Self::List => OperationKind::List,
            Self::MakeContainer => OperationKind::MakeContainer,
        }
    }

    /// Its name in reports.
    pub fn id(self) -> &'static str {
        match self {
            Self::HeadContainer => "head-container",
            other => other.kind().name(),
        }
    }

    /// Whether it names an object.
    pub fn is_on_objects(self) -> bool {
        !matches!(self, Self::List | Self::HeadContainer | Self::MakeContainer)
    }

    /// Whether a status says that it was done.
    pub fn succeeded(self, status: u16) -> bool {
        match self {
            Self::Read => matches!(status, 200 | 206),
            _ => matches!(status, 200..=204),
        }
    }
}
