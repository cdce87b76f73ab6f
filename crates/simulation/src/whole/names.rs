//! What containers and objects of whole clusters are called, and what there may be of an object.

use super::plan::FLEETING;
use vocabulary::Timestamp;

/// Of all containers.
pub(super) const ACCOUNT: &str = "AUTH_a";

pub(super) fn container(number: usize) -> String {
    match number {
        FLEETING => "fleeting".into(),
        number => format!("c{number}"),
    }
}

pub(super) fn object(number: usize) -> String {
    format!("o{number}")
}

/// What write number `number` stores.
pub(super) fn body(number: usize) -> String {
    format!("write {number}\n").repeat(1 + number % 5)
}

/// What there is of an object, on a node or in the whole cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ObjectState {
    /// Nothing, and nothing was deleted.
    #[default]
    Nothing,
    /// The body of a write.
    Body { at: Timestamp, number: usize },
    /// It was deleted.
    Deleted { at: Timestamp },
}

impl ObjectState {
    pub(super) fn at(self) -> Timestamp {
        match self {
            Self::Nothing => Timestamp::ZERO,
            Self::Body { at, .. } | Self::Deleted { at } => at,
        }
    }
}
