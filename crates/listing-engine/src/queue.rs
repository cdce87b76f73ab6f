//! Group commit: rows that arrive while a batch is being made durable travel in the next one.
//!
//! A thread that finds no other at work leads: it takes everything that waits, stores it with one sync and
//! reports to each waiter. One batch per turn, so no thread leads for ever.
//! Always holds: at most one batch is being stored; every accepted row's `done` is called exactly
//! once, also when storing panics.

use crate::{Error, Row};
use parking_lot::{Condvar, Mutex};

/// Called once with whether the rows are durable.
pub(crate) type StoredCallback = Box<dyn FnOnce(Result<(), Error>) + Send>;

struct QueuedRows {
    rows: Vec<Row>,
    done: StoredCallback,
}

#[derive(Default)]
struct QueueState {
    waiting: Vec<QueuedRows>,
    /// A thread leads, or has promised to.
    led: bool,
}

/// The rows of one database on their way to its disk.
#[derive(Default)]
pub(crate) struct RowQueue {
    state: Mutex<QueueState>,
    turn: Condvar,
}

impl RowQueue {
    /// Accepts rows. `true` when no thread leads: the caller has promised to call [`Self::lead`].
    pub(crate) fn push(&self, rows: Vec<Row>, done: StoredCallback) -> bool {
        let mut state = self.state.lock();
        state.waiting.push(QueuedRows { rows, done });
        !std::mem::replace(&mut state.led, true)
    }

    /// Stores one batch. `true` when more waits and the caller still leads.
    pub(crate) fn lead(&self, store: impl FnOnce(&[Row]) -> Result<(), Error>, if_lost: Error) -> bool {
        let taken = std::mem::take(&mut self.state.lock().waiting);
        let mut rows = Vec::with_capacity(taken.len());
        let mut all_done = Vec::with_capacity(taken.len());
        for waiting in taken {
            rows.extend(waiting.rows);
            all_done.push(waiting.done);
        }
        let mut turn = BatchTurn {
            queue: self,
            all_done,
            result: Err(if_lost),
            more: false,
        };
        turn.result = if rows.is_empty() { Ok(()) } else { store(&rows) };
        turn.end()
    }

    /// Gives up the lead although rows may wait: one of the threads that wait for them takes it.
    pub(crate) fn resign(&self) {
        self.state.lock().led = false;
        self.turn.notify_all();
    }

    /// Sleeps until `ready`, or until the caller leads (then `true`). Every batch's end wakes it.
    pub(crate) fn wait_or_lead(&self, ready: impl Fn() -> bool) -> bool {
        let mut state = self.state.lock();
        loop {
            if ready() {
                return false;
            }
            if !state.led {
                state.led = true;
                return true;
            }
            self.turn.wait(&mut state);
        }
    }
}

/// Calls every callback when it ends, even by a panic, and then gives up the lead unless more waits.
struct BatchTurn<'a> {
    queue: &'a RowQueue,
    all_done: Vec<StoredCallback>,
    result: Result<(), Error>,
    more: bool,
}

impl BatchTurn<'_> {
    fn end(mut self) -> bool {
        self.report();
        let mut state = self.queue.state.lock();
        self.more = !state.waiting.is_empty();
        state.led = self.more;
        drop(state);
        self.more
    }

    fn report(&mut self) {
        for done in self.all_done.drain(..) {
            done(self.result.clone());
        }
    }
}

impl Drop for BatchTurn<'_> {
    fn drop(&mut self) {
        self.report();
        if !self.more {
            self.queue.state.lock().led = false;
        }
        self.queue.turn.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ContainerRow;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use vocabulary::{PolicyIndex, Timestamp};

    fn row() -> Row {
        Row::Container(ContainerRow {
            name: "c".into(),
            put_timestamp: Timestamp::ZERO,
            delete_timestamp: Timestamp::ZERO,
            object_count: 0,
            bytes_used: 0,
            policy: PolicyIndex(0),
        })
    }

    fn lost() -> Error {
        Error::Busy { path: "lost".into() }
    }

    #[test]
    fn rows_that_arrive_during_a_batch_share_the_next() {
        let queue = RowQueue::default();
        let stored = Arc::new(AtomicUsize::new(0));
        let done = || -> StoredCallback {
            let stored = stored.clone();
            Box::new(move |result| {
                result.unwrap();
                stored.fetch_add(1, Ordering::SeqCst);
            })
        };
        assert!(queue.push(vec![row()], done()));
        let more = queue.lead(
            |rows| {
                assert_eq!(rows.len(), 1);
                assert!(!queue.push(vec![row()], done()));
                assert!(!queue.push(vec![row(), row()], done()));
                Ok(())
            },
            lost(),
        );
        assert!(more);
        let second = |rows: &[Row]| {
            assert_eq!(rows.len(), 3);
            Ok(())
        };
        assert!(!queue.lead(second, lost()));
        assert_eq!(stored.load(Ordering::SeqCst), 3);
        assert!(queue.push(vec![row()], done()), "the lead was given up");
    }

    #[test]
    fn a_panic_while_storing_fails_the_batch() {
        let queue = RowQueue::default();
        let failed = Arc::new(AtomicUsize::new(0));
        let counter = failed.clone();
        queue.push(
            vec![row()],
            Box::new(move |result| {
                counter.fetch_add(usize::from(result.is_err()), Ordering::SeqCst);
            }),
        );
        let led = std::panic::AssertUnwindSafe(|| queue.lead(|_| panic!("planted"), lost()));
        assert!(std::panic::catch_unwind(led).is_err());
        assert_eq!(failed.load(Ordering::SeqCst), 1);
    }
}
