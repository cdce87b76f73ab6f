//! What the answers of an object's servers mean: whether it may be deleted, and whether its task is finished.

use super::tasks::Task;
use super::{TOO_EARLY, hoped};
use crate::internal_client::is_among;
use peer::deletes::CheckedDelete;
use vocabulary::Timestamp;

/// A server has a version that expires at another time, or never.
const CONTRADICTS: u16 = 412;

/// By what a server knows an object lock holds it.
const HELD: u16 = 403;

/// What the servers of a task's object have answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ReplicaAnswers {
    /// One by one; `None` for no answer.
    pub(super) statuses: Vec<Option<u16>>,
    /// The time of the oldest tombstone that the deletion leaves, where they have said so.
    pub(super) tombstone: Option<Timestamp>,
}

impl ReplicaAnswers {
    /// None yet, of so many.
    pub(super) fn none(replicas: usize) -> Self {
        Self {
            statuses: vec![None; replicas],
            tombstone: None,
        }
    }

    fn has(&self, status: u16) -> bool {
        self.statuses.contains(&Some(status))
    }

    /// Whether more than half of the replicas say the same, and it is good.
    fn are_good(&self, task: &Task) -> bool {
        let good = |hoped: u16| {
            let statuses = self.statuses.iter().flatten();
            statuses.filter(|status| is_among(**status, &[hoped])).count()
        };
        let hoped = hoped(task);
        hoped.iter().any(|hoped| good(*hoped) > self.statuses.len() / 2)
    }

    /// Takes note of an answer to the question what a deletion would come to, or to the deletion.
    pub(super) fn note(&mut self, replica: usize, answer: Option<CheckedDelete>) {
        self.statuses[replica] = answer.map(|answer| answer.status);
        let tombstone = answer.and_then(|answer| answer.tombstone);
        self.tombstone = tombstone.into_iter().chain(self.tombstone).min();
    }

    /// Whether each server has deleted the object, has nothing, or something newer.
    fn are_all_done(&self) -> bool {
        let is_done = |status: &Option<u16>| status.is_some_and(|status| is_among(status, &[2, 404, 409]));
        self.statuses.iter().all(is_done)
    }

    /// Whether the object may be deleted, by what its servers say a deletion would come to. Where only one of them has
    /// the version that the task is of, and another a POST that took its expiry away, the tombstone of the first would
    /// win over the POST. A server that has nothing contradicts nothing, nor does one with a newer version, for the
    /// tombstone is older than that. One that knows of an object lock is enough: the others may have missed it.
    pub(super) fn agree(&self, task: &Task) -> bool {
        self.are_good(task) && !self.has(CONTRADICTS) && !self.has(HELD)
    }
}

/// What became of a task whose servers were asked in batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchOutcome {
    /// Its row can go.
    Finished,
    /// Not now: by the clock of a server it is not due, or its policy has no servers here.
    Left,
    /// Not now: a server that is away would bring it back.
    MayComeBack,
    /// Not now: an object lock holds it, or may.
    Held,
    /// The gateway has to be asked.
    Unclear,
}

impl BatchOutcome {
    /// By what servers have answered to a deletion, or to the question what it would come to.
    pub(super) fn of(task: &Task, answers: &ReplicaAnswers, horizon: Timestamp) -> Self {
        let lasts = answers.tombstone.unwrap_or(task.due).min(task.due) >= horizon;
        match answers.agree(task) {
            true if lasts || answers.are_all_done() => Self::Finished,
            true => Self::MayComeBack,
            false if answers.has(TOO_EARLY) => Self::Left,
            false if answers.has(HELD) => Self::Held,
            false => Self::Unclear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_replicas_must_say_the_same_good_thing_and_none_contradict() {
        let task = |kind| Task::read(&"1".into(), "1-a/c/o".into(), kind).unwrap();
        let (own, asked) = (task("text/plain"), task("application/async-deleted"));
        for (statuses, done, done_if_asked) in [
            (&[204, 204, 204][..], true, true),
            (&[204, 204, 507], true, true),
            (&[204, 204, 0], true, true),
            (&[204, 404, 409], false, false),
            (&[409, 409, 204], true, true),
            (&[404, 404, 204], false, true),
            (&[412, 412, 412], false, false),
            (&[204, 204, 412], false, false),
            (&[409, 409, 412], false, false),
            (&[204, 204, 404], true, true),
            (&[204, 404], false, false),
            (&[204], true, true),
            (&[], false, false),
            (&[0, 0, 0], false, false),
            (&[425, 204, 204], true, true),
            (&[425, 425, 204], false, false),
            (&[204, 204, 403], false, false),
        ] {
            let answers = statuses.iter().map(|status| Some(*status).filter(|status| *status > 0));
            let (statuses_of, tombstone) = (answers.collect(), None);
            let answers = ReplicaAnswers {
                statuses: statuses_of,
                tombstone,
            };
            assert_eq!(answers.agree(&own), done, "{statuses:?}");
            assert_eq!(answers.agree(&asked), done_if_asked, "{statuses:?}");
        }
    }
}
