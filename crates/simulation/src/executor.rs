//! Tasks and time on one thread: which ready task goes next, the seed decides; when none is ready, time
//! jumps to the next timer.
//!
//! Every task belongs to a [`TaskOwner`], one process of one node; when that ends ([`Executor::end`]) its tasks are
//! dropped wherever they wait. Always holds: nothing runs but within [`Executor::step`]; no real clock is asked.

use crate::dice::Dice;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use world::BoxFuture;

/// One process of one node, or the outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskOwner(pub u64);

/// The outside, for what belongs to no node.
pub(crate) const OUTSIDE: TaskOwner = TaskOwner(0);

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnProgress {
    /// A task went on.
    Ran,
    /// Nothing is to be done before the time given.
    Reached,
}

/// How long one turn of a task takes, so that time passes while tasks are busy.
const TURN: Duration = Duration::from_micros(1);

/// The tasks and timers; clones are the same one.
#[derive(Clone)]
pub struct Executor {
    state: Arc<Mutex<State>>,
    ready: Ready,
    dice: Dice,
}

type Ready = Arc<Mutex<Vec<u64>>>;

#[derive(Default)]
struct State {
    now: Duration,
    next: u64,
    tasks: HashMap<u64, Task>,
    ended: BTreeSet<TaskOwner>,
    timers: BTreeMap<(Duration, u64), Waker>,
}

struct Task {
    home: TaskOwner,
    /// Absent while it runs.
    future: Option<BoxFuture<'static, ()>>,
    bell: Arc<Bell>,
}

struct Bell {
    task: u64,
    rung: AtomicBool,
    ready: Ready,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if !self.rung.swap(true, Ordering::Relaxed) {
            self.ready.lock().push(self.task);
        }
    }
}

impl Executor {
    /// Nothing to do yet; it is time zero.
    pub fn new(dice: Dice) -> Self {
        Self {
            state: Arc::default(),
            ready: Ready::default(),
            dice,
        }
    }

    /// Time since the beginning.
    pub fn now(&self) -> Duration {
        self.state.lock().now
    }

    /// A task of `home`; nothing comes of it when that process is over.
    pub fn spawn(&self, home: TaskOwner, future: BoxFuture<'static, ()>) {
        let mut state = self.state.lock();
        if state.ended.contains(&home) {
            drop(state);
            return drop(future);
        }
        state.next += 1;
        let task = state.next;
        let bell = Arc::new(Bell {
            task,
            rung: AtomicBool::new(false),
            ready: self.ready.clone(),
        });
        let future = Some(future);
        state.tasks.insert(
            task,
            Task {
                home,
                future,
                bell: bell.clone(),
            },
        );
        drop(state);
        bell.wake();
    }

    /// Ends a process: its tasks are dropped where they are. Not from within one of them.
    pub fn end(&self, home: TaskOwner) {
        let mut state = self.state.lock();
        state.ended.insert(home);
        let mut doomed: Vec<u64> = state
            .tasks
            .iter()
            .filter(|(_, t)| t.home == home)
            .map(|(id, _)| *id)
            .collect();
        doomed.sort_unstable();
        let dropped: Vec<_> = doomed.iter().filter_map(|id| state.tasks.remove(id)).collect();
        drop(state);
        drop(dropped);
    }

    /// How many tasks a process has.
    pub fn count(&self, home: TaskOwner) -> usize {
        self.state
            .lock()
            .tasks
            .values()
            .filter(|task| task.home == home)
            .count()
    }

    /// One turn of one task, or, when none is ready, on to the next timer, but not beyond `limit`.
    pub fn step(&self, limit: Duration) -> TurnProgress {
        loop {
            self.ring_due();
            let chosen = {
                let mut ready = self.ready.lock();
                let count = ready.len();
                (count > 0).then(|| ready.swap_remove(self.dice.up_to(count)))
            };
            if let Some(task) = chosen {
                if self.turn(task) {
                    return TurnProgress::Ran;
                }
                continue;
            }
            let mut state = self.state.lock();
            match state.timers.keys().next().map(|(at, _)| *at) {
                Some(at) if at <= limit => state.now = state.now.max(at),
                _ => {
                    state.now = state.now.max(limit);
                    return TurnProgress::Reached;
                }
            }
        }
    }

    fn ring_due(&self) {
        let mut state = self.state.lock();
        // Asked before each turn, and nearly never due.
        if state
            .timers
            .first_key_value()
            .is_none_or(|((at, _), _)| *at > state.now)
        {
            return;
        }
        let next = (state.now + Duration::from_nanos(1), 0);
        let later = state.timers.split_off(&next);
        let due = std::mem::replace(&mut state.timers, later);
        drop(state);
        due.into_values().for_each(Waker::wake);
    }

    /// False when the task is no more.
    fn turn(&self, id: u64) -> bool {
        let mut state = self.state.lock();
        let Some(task) = state.tasks.get_mut(&id) else {
            return false;
        };
        let (Some(mut future), bell) = (task.future.take(), task.bell.clone()) else {
            return false;
        };
        state.now += TURN;
        drop(state);
        bell.rung.store(false, Ordering::Relaxed);
        let waker = Waker::from(bell);
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        let mut state = self.state.lock();
        match polled {
            Poll::Ready(()) => drop(state.tasks.remove(&id)),
            Poll::Pending => {
                if let Some(task) = state.tasks.get_mut(&id) {
                    task.future = Some(future);
                    return true;
                }
            }
        }
        // Dropping it may reach for the executor.
        drop(state);
        true
    }

    /// Completes `duration` from now.
    pub fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let until = self.now().saturating_add(duration);
        Box::pin(Sleep {
            executor: self.clone(),
            until,
            entry: None,
        })
    }
}

struct Sleep {
    executor: Executor,
    until: Duration,
    entry: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let executor = self.executor.clone();
        let mut state = executor.state.lock();
        if state.now >= self.until {
            return Poll::Ready(());
        }
        let entry = *self.entry.get_or_insert_with(|| {
            state.next += 1;
            state.next
        });
        let replaced = state.timers.insert((self.until, entry), context.waker().clone());
        drop(state);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(entry) = self.entry {
            let removed = self.executor.state.lock().timers.remove(&(self.until, entry));
            drop(removed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seed: u64) -> Vec<u32> {
        let executor = Executor::new(Dice::new(seed));
        let seen = Arc::new(Mutex::new(vec![]));
        for number in 0..8 {
            let (seen, sleeper) = (seen.clone(), executor.clone());
            executor.spawn(
                TaskOwner(1),
                Box::pin(async move {
                    seen.lock().push(number);
                    sleeper.sleep(Duration::from_secs(60 - u64::from(number))).await;
                    seen.lock().push(100 + number);
                }),
            );
        }
        while executor.step(Duration::from_secs(3600)) == TurnProgress::Ran {}
        assert_eq!(executor.now(), Duration::from_secs(3600));
        Arc::try_unwrap(seen).map(Mutex::into_inner).unwrap_or_default()
    }

    #[test]
    fn the_seed_decides_the_order_and_timers_ring_in_theirs() {
        assert_eq!(order(1), order(1));
        assert!((2..20).any(|seed| order(seed)[..8] != order(1)[..8]));
        assert_eq!(order(5)[8..], [107, 106, 105, 104, 103, 102, 101, 100]);
    }

    #[test]
    fn an_ended_life_drops_its_tasks_and_takes_no_new_ones() {
        let executor = Executor::new(Dice::new(1));
        let alive = Arc::new(());
        for home in [TaskOwner(1), TaskOwner(2)] {
            let (kept, sleeper) = (alive.clone(), executor.clone());
            executor.spawn(
                home,
                Box::pin(async move {
                    sleeper.sleep(Duration::from_secs(1)).await;
                    drop(kept);
                }),
            );
        }
        assert_eq!(executor.step(Duration::ZERO), TurnProgress::Ran);
        executor.end(TaskOwner(1));
        assert_eq!(Arc::strong_count(&alive), 2);
        let kept = alive.clone();
        executor.spawn(TaskOwner(1), Box::pin(async move { drop(kept) }));
        assert_eq!(Arc::strong_count(&alive), 2);
        while executor.step(Duration::from_secs(2)) == TurnProgress::Ran {}
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}
