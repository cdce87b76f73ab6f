//! The steps of a script that a process has, and which of them wait for others.
//!
//! Drivers divide a script by its objects: all operations on an object are one driver's, so that it alone can keep
//! their order. A step that changes an object waits for all earlier ones on it, one that only reads for the last
//! change. So readings of one object go side by side, as they did when the log was written.
//! Always holds: steps are handed out in the order of the script, so that a step waits only for steps that a worker has
//! already, and the first of those waits for nothing; a step that was handed out counts as done when it is given up.

use super::share::DriverShare;
use crate::workload::script::{OperationScript, ScriptStep};
use crate::workload::{OperationKind, Work};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tokio::sync::Notify;

/// Steps that wait are woken in so many groups, by the numbers of their objects.
const GROUPS: usize = 256;

/// A part of a script, which all workers of this process share.
pub struct ScriptPart {
    taken: AtomicU64,
    /// Places in the script of the steps that are done here; nothing where all are.
    mine: Option<Vec<u32>>,
    /// Of each step that is done here: how many on its object are done before it may begin.
    after: Vec<u32>,
    /// By number of the object: how many are done.
    done: Vec<AtomicU32>,
    groups: Vec<Notify>,
}

/// What is known of an object while a script is read.
#[derive(Clone, Copy, Default)]
struct Earlier {
    /// Steps so far.
    all: u32,
    /// Those up to the last one that changes it.
    changed: u32,
}

impl ScriptPart {
    /// A driver's part of a work's script.
    pub fn of(work: &Work, script: &OperationScript, share: &DriverShare) -> Self {
        let parts = share.parts.max(1);
        let is_mine = |step: &ScriptStep| {
            // Operations on containers keep no order.
            let number = if step.object > 0 { step.object } else { step.container };
            number % parts == share.part
        };
        // A script has fewer steps than a number of this size counts (`replayed_log::MOST_REQUESTS`).
        let mine = (parts > 1).then(|| {
            let places = (0..).zip(script.steps.iter());
            let places: Vec<u32> = places
                .filter(|(_, step)| is_mine(step))
                .map(|(place, _)| place)
                .collect();
            places
        });
        let objects = script.steps.iter().map(|step| step.object as usize + 1).max();
        let mut earlier = vec![Earlier::default(); objects.unwrap_or_default()];
        let steps = script.steps.iter().filter(|step| parts == 1 || is_mine(step));
        let after = steps.map(|step| {
            let changes = work.operations.get(usize::from(step.operation));
            let changes = changes.is_none_or(|operation| is_change(operation.kind));
            match earlier.get_mut(step.object as usize).filter(|_| step.object > 0) {
                Some(of) => of.next(changes),
                None => 0,
            }
        });
        Self {
            taken: AtomicU64::new(0),
            mine,
            after: after.collect(),
            done: (0..objects.unwrap_or_default()).map(|_| AtomicU32::new(0)).collect(),
            groups: (0..GROUPS).map(|_| Notify::new()).collect(),
        }
    }

    /// The next step, and how many on its object are done before it may begin.
    pub fn next<'a>(&self, script: &'a OperationScript) -> Option<(&'a ScriptStep, u32)> {
        let taken = usize::try_from(self.taken.fetch_add(1, Ordering::Relaxed)).ok()?;
        let after = *self.after.get(taken)?;
        let place = match &self.mine {
            Some(mine) => *mine.get(taken)? as usize,
            None => taken,
        };
        Some((script.steps.get(place)?, after))
    }

    /// Completes when so many operations on an object are done; the turn that this one has then.
    pub async fn turn(&self, object: u64, after: u32) -> Option<ObjectTurn<'_>> {
        let number = usize::try_from(object).ok().filter(|number| *number > 0)?;
        let done = self.done.get(number)?;
        let group = self.groups.get(number % GROUPS)?;
        let turn = ObjectTurn { done, group };
        while done.load(Ordering::Acquire) < after {
            let mut woken = std::pin::pin!(group.notified());
            // Operations that end from here on wake this one.
            woken.as_mut().enable();
            if done.load(Ordering::Acquire) < after {
                woken.await;
            }
        }
        Some(turn)
    }
}

impl Earlier {
    /// Takes a step; how many are done before it may begin.
    fn next(&mut self, changes: bool) -> u32 {
        let after = if changes { self.all } else { self.changed };
        self.all += 1;
        if changes {
            self.changed = self.all;
        }
        after
    }
}

fn is_change(kind: OperationKind) -> bool {
    !matches!(kind, OperationKind::Read | OperationKind::Head | OperationKind::List)
}

/// An operation on an object, from when it waits; it is done when this is dropped.
pub struct ObjectTurn<'a> {
    done: &'a AtomicU32,
    group: &'a Notify,
}

impl Drop for ObjectTurn<'_> {
    fn drop(&mut self) {
        self.done.fetch_add(1, Ordering::Release);
        self.group.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::ScriptPart;
    use crate::load::share::DriverShare;
    use crate::workload::script::{OperationScript, ScriptStep};
    use crate::workload::{Work, own_format};
    use futures_util::FutureExt;
    use std::collections::BTreeMap;

    const READ: u8 = 0;
    const WRITE: u8 = 1;

    fn work() -> Work {
        let text = "[storage]\ntype = 'mock'\n[[stage]]\nruntime = '1s'\nworkers = 8\noperations = [\n\
                    { type = 'read', ratio = 50, containers = 'c(1)', objects = 'c(1)' },\n\
                    { type = 'write', ratio = 50, containers = 'c(1)', objects = 'c(1)', sizes = 'c(1)KB' }]";
        own_format::parse(text).unwrap().stages[0].works[0].clone()
    }

    fn script(steps: &[(u32, u8)]) -> OperationScript {
        let step = |at: usize| ScriptStep {
            at: at as u64,
            size: 1,
            container: 1,
            object: steps[at].0,
            operation: steps[at].1,
            is_range: false,
            is_absent: false,
        };
        OperationScript {
            steps: (0..steps.len()).map(step).collect(),
            is_timed: false,
        }
    }

    #[test]
    fn changes_wait_for_all_and_readings_for_the_last_change() {
        let script = script(&[
            (1, READ),
            (1, READ),
            (2, WRITE),
            (1, WRITE),
            (1, READ),
            (0, WRITE),
            (1, READ),
            (1, WRITE),
        ]);
        let part = ScriptPart::of(&work(), &script, &DriverShare::whole(&work()));
        let after: Vec<u32> = std::iter::from_fn(|| part.next(&script))
            .map(|(_, after)| after)
            .collect();
        assert_eq!(after, [0, 0, 0, 2, 3, 0, 3, 5]);
    }

    #[test]
    fn drivers_have_all_steps_once_and_each_object_is_one_drivers() {
        let steps: Vec<(u32, u8)> = (0..1000_u32)
            .map(|number| (number * 7 % 41, (number % 2) as u8))
            .collect();
        let (work, script) = (work(), script(&steps));
        for drivers in [1, 2, 3, 5] {
            let (mut owners, mut seen) = (BTreeMap::new(), 0);
            for (driver, share) in DriverShare::divide(&work, drivers).into_iter().flatten().enumerate() {
                let part = ScriptPart::of(&work, &script, &share);
                let mine: Vec<ScriptStep> = std::iter::from_fn(|| part.next(&script))
                    .map(|(step, _)| *step)
                    .collect();
                assert!(mine.is_sorted_by_key(|step| step.at) && !mine.is_empty());
                seen += mine.len();
                for step in mine.iter().filter(|step| step.object > 0) {
                    assert_eq!(*owners.entry(step.object).or_insert(driver), driver);
                }
            }
            assert_eq!(seen, steps.len(), "{drivers}");
        }
    }

    #[test]
    fn a_turn_comes_when_those_before_are_dropped() {
        let script = script(&[(3, WRITE), (3, READ), (3, READ), (3, WRITE)]);
        let part = ScriptPart::of(&work(), &script, &DriverShare::whole(&work()));
        let first = part.turn(3, 0).now_or_never().unwrap();
        let (mut one, mut two) = (Box::pin(part.turn(3, 1)), Box::pin(part.turn(3, 1)));
        assert!(one.as_mut().now_or_never().is_none());
        drop(first);
        let (one, two) = (
            one.as_mut().now_or_never().unwrap(),
            two.as_mut().now_or_never().unwrap(),
        );
        let mut last = Box::pin(part.turn(3, 3));
        drop(one);
        assert!(last.as_mut().now_or_never().is_none());
        drop(two);
        assert!(last.as_mut().now_or_never().unwrap().is_some());
        assert!(
            part.turn(0, 9).now_or_never().unwrap().is_none(),
            "containers keep no order"
        );
    }
}
