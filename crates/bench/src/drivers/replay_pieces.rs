//! What a log says, on its way from the controller to a driver: in pieces, as a log is longer than a message.
//!
//! A driver reads no log. It gets all of it, and not its own part alone, since later stages are divided anew when
//! another driver is lost.
//! Always holds: what arrives names only what there is, in its order, and is no more than a log that is replayed may
//! have.

use crate::workload::replayed_log::{LoggedKind, MOST_REQUESTS, ReplayedLog};
use crate::workload::script::ScriptStep;
use serde::{Deserialize, Serialize};

/// Steps in a piece: each takes at most some sixty bytes of a message.
const STEPS: usize = 20_000;

/// A piece.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ReplayPiece {
    /// What there is, before all steps.
    Names {
        operations: Vec<LoggedKind>,
        containers: u32,
        objects: u32,
    },
    /// More steps of a list.
    Steps(StepList, Vec<SentStep>),
    /// All was sent.
    End,
}

/// Lists of a [`ReplayedLog`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StepList {
    Requests,
    Prepared,
    Deleted,
}

/// `at`, `size`, `container`, `object`, `operation`, `is_range`, `is_absent`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct SentStep(u64, u64, u32, u32, u8, bool, bool);

impl From<&ScriptStep> for SentStep {
    fn from(step: &ScriptStep) -> Self {
        let ScriptStep {
            at,
            size,
            container,
            object,
            operation,
            is_range,
            is_absent,
        } = *step;
        Self(at, size, container, object, operation, is_range, is_absent)
    }
}

impl From<SentStep> for ScriptStep {
    fn from(sent: SentStep) -> Self {
        let SentStep(at, size, container, object, operation, is_range, is_absent) = sent;
        Self {
            at,
            size,
            container,
            object,
            operation,
            is_range,
            is_absent,
        }
    }
}

/// A log in pieces.
pub(super) fn pieces(log: &ReplayedLog) -> impl Iterator<Item = ReplayPiece> {
    let names = ReplayPiece::Names {
        operations: log.operations.clone(),
        containers: log.containers,
        objects: log.objects,
    };
    let lists = [
        (StepList::Requests, &log.requests),
        (StepList::Prepared, &log.prepared),
        (StepList::Deleted, &log.deleted),
    ];
    let steps = lists.into_iter().flat_map(|(list, steps)| {
        let piece = move |piece: &[ScriptStep]| ReplayPiece::Steps(list, piece.iter().map(SentStep::from).collect());
        steps.chunks(STEPS).map(piece)
    });
    std::iter::once(names).chain(steps).chain([ReplayPiece::End])
}

/// A log of which not all has come.
#[derive(Default)]
pub(super) struct ReplayInPieces {
    operations: Vec<LoggedKind>,
    containers: u32,
    objects: u32,
    requests: Vec<ScriptStep>,
    prepared: Vec<ScriptStep>,
    deleted: Vec<ScriptStep>,
}

impl ReplayInPieces {
    /// Takes a piece; all of the log after the last one.
    ///
    /// # Errors
    /// What cannot be, of a log that can be replayed.
    pub(super) fn take(&mut self, piece: ReplayPiece) -> Result<Option<ReplayedLog>, &'static str> {
        match piece {
            ReplayPiece::Names {
                operations,
                containers,
                objects,
            } => {
                let most = |count: u32| count as usize <= MOST_REQUESTS;
                if !most(containers) || !most(objects) || operations.len() > usize::from(u8::MAX) {
                    return Err("it has too many names");
                }
                (self.operations, self.containers, self.objects) = (operations, containers, objects);
                Ok(None)
            }
            ReplayPiece::Steps(list, sent) => self.steps(list, sent).map(|()| None),
            ReplayPiece::End => {
                let this = std::mem::take(self);
                Ok(Some(ReplayedLog {
                    requests: this.requests.into(),
                    operations: this.operations,
                    prepared: this.prepared.into(),
                    deleted: this.deleted.into(),
                    containers: this.containers,
                    objects: this.objects,
                }))
            }
        }
    }

    fn steps(&mut self, list: StepList, sent: Vec<SentStep>) -> Result<(), &'static str> {
        let (steps, operations) = match list {
            StepList::Requests => (&mut self.requests, self.operations.len()),
            // Each has one kind of operation, which is not the log's.
            StepList::Prepared => (&mut self.prepared, 1),
            StepList::Deleted => (&mut self.deleted, 1),
        };
        if steps.len() + sent.len() > MOST_REQUESTS {
            return Err("it has too many steps");
        }
        let mut last = steps.last().map_or(0, |step| step.at);
        for step in sent.into_iter().map(ScriptStep::from) {
            let is_there = (1..=self.containers).contains(&step.container)
                && step.object <= self.objects
                && usize::from(step.operation) < operations;
            if !is_there || step.at < last {
                return Err("a step is about what is not there, or out of its order");
            }
            last = step.at;
            steps.push(step);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{ReplayInPieces, ReplayPiece, STEPS, SentStep, StepList, pieces};
    use crate::workload::replayed_log::{LoggedKind, ReplayedLog};
    use crate::workload::script::ScriptStep;

    fn step(number: u32) -> ScriptStep {
        ScriptStep {
            at: u64::from(number) * 1000,
            size: u64::MAX - u64::from(number),
            container: number % 3 + 1,
            object: number % 5,
            operation: (number % 2) as u8,
            is_range: number.is_multiple_of(2),
            is_absent: number.is_multiple_of(3),
        }
    }

    fn log(count: u32) -> ReplayedLog {
        let first = ScriptStep {
            operation: 0,
            ..step(1)
        };
        ReplayedLog {
            requests: (0..count).map(step).collect(),
            operations: vec![LoggedKind::Read, LoggedKind::HeadContainer],
            prepared: [first].into(),
            deleted: [first, first].into(),
            containers: 3,
            objects: 4,
        }
    }

    #[test]
    fn what_is_sent_arrives() {
        for count in [1, STEPS as u32, STEPS as u32 * 2 + 1] {
            let (log, mut arrived, mut came) = (log(count), ReplayInPieces::default(), None);
            for piece in pieces(&log) {
                let text = serde_json::to_vec(&piece).unwrap();
                assert!(came.is_none() && text.len() < 2 << 20);
                came = arrived.take(serde_json::from_slice(&text).unwrap()).unwrap();
            }
            assert_eq!(came.unwrap(), log);
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let begun = || {
            let mut arrived = ReplayInPieces::default();
            for piece in pieces(&log(3)).take(2) {
                arrived.take(piece).unwrap();
            }
            arrived
        };
        let good = step(3);
        let sent = |step: ScriptStep, list| begun().take(ReplayPiece::Steps(list, vec![SentStep::from(&step)]));
        assert!(sent(good, StepList::Requests).is_ok() && sent(good, StepList::Prepared).is_err());
        for wrong in [
            ScriptStep { container: 0, ..good },
            ScriptStep { container: 4, ..good },
            ScriptStep { object: 5, ..good },
            ScriptStep { operation: 2, ..good },
            ScriptStep { at: 1, ..good },
        ] {
            assert!(sent(wrong, StepList::Requests).is_err(), "{wrong:?}");
        }
        let many = ReplayPiece::Names {
            operations: vec![],
            containers: 1,
            objects: u32::MAX,
        };
        assert!(begun().take(many).is_err());
    }
}
