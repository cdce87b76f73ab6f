//! What clients of a whole cluster wrote, and what may therefore be there in the end.

use super::names::ObjectState;
use super::plan::WholeRequest;
use crate::history::Violation;
use vocabulary::Timestamp;

/// One write of an object.
#[derive(Debug, Clone)]
pub(super) struct ObjectWrite {
    pub(super) container: usize,
    pub(super) ask: WholeRequest,
    /// The times that its gateway gave it.
    pub(super) times: Vec<Timestamp>,
    /// Its client was answered that it is done.
    pub(super) acknowledged: bool,
}

impl ObjectWrite {
    fn is_of(&self, container: usize, name: usize) -> bool {
        let of = match self.ask {
            WholeRequest::Put { name, .. } | WholeRequest::Delete { name } => name,
            _ => return false,
        };
        (self.container, of) == (container, name)
    }

    /// Whether it is to go by itself.
    pub(super) fn expires(&self) -> bool {
        matches!(self.ask, WholeRequest::Put { expires: Some(_), .. })
    }
}

/// All writes of a run; their numbers are what they write.
#[derive(Debug, Default)]
pub(super) struct WholeHistory {
    pub(super) writes: Vec<ObjectWrite>,
}

impl WholeHistory {
    /// Whether `seen` is what was acknowledged of an object, or something newer that was tried.
    pub(super) fn judge(&self, container: usize, name: usize, seen: ObjectState) -> Result<(), Violation> {
        let broken = |what: String| Err(Violation(format!("object {name} of container {container}: {what}")));
        let of_it = || (self.writes.iter().enumerate()).filter(|(_, write)| write.is_of(container, name));
        let (at, tried) = match seen {
            ObjectState::Nothing => (Timestamp::ZERO, true),
            ObjectState::Body { at, number } => {
                let tried = of_it().any(|(of, write)| of == number && write.has_time(at));
                (at, tried)
            }
            ObjectState::Deleted { at } => (at, of_it().any(|(_, write)| write.explains_deletion(at))),
        };
        if !tried {
            return broken(format!("no client asked for {seen:?}"));
        }
        let lost = |(_, write): &(usize, &ObjectWrite)| {
            let newest = write.times.last().copied().unwrap_or(Timestamp::ZERO);
            write.acknowledged && newest > at
        };
        match of_it().find(lost) {
            Some((number, write)) => broken(format!(
                "write {number} of {:?} was acknowledged, and what is there is {seen:?}",
                write.times
            )),
            None => Ok(()),
        }
    }
}

impl ObjectWrite {
    /// The reconciler moves an object with a later offset of its time.
    fn has_time(&self, at: Timestamp) -> bool {
        self.times.iter().any(|time| time.ticks() == at.ticks() && *time <= at)
    }

    /// A DELETE leaves its own time; an expiry the moment after the version that it is of.
    fn explains_deletion(&self, at: Timestamp) -> bool {
        match self.ask {
            WholeRequest::Delete { .. } => self.has_time(at),
            _ => self.expires() && self.has_time(at) && !self.times.contains(&at),
        }
    }
}
