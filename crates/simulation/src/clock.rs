//! A node's clock, which may be wrong, and where its tasks run.

use crate::executor::{Executor, TaskOwner};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use vocabulary::Timestamp;
use world::{BoxFuture, Clock, Tasks};

/// When simulations begin: seconds since 1970.
const EPOCH: u64 = 1_700_000_000;

/// A clock of one node: the simulation's time, and by how much its wall clock is off.
#[derive(Clone)]
pub struct SimClock {
    executor: Executor,
    skew_micros: Arc<AtomicI64>,
}

impl SimClock {
    /// A clock that is right.
    pub fn new(executor: Executor) -> Self {
        Self {
            executor,
            skew_micros: Arc::default(),
        }
    }

    /// Sets the wall clock off by so much.
    pub fn skew(&self, micros: i64) {
        self.skew_micros.store(micros, Ordering::Relaxed);
    }

    /// Wall time since 1970 in microseconds.
    pub fn micros(&self) -> u64 {
        let right = Duration::from_secs(EPOCH) + self.executor.now();
        let skew = self.skew_micros.load(Ordering::Relaxed);
        u64::try_from(right.as_micros())
            .unwrap_or(u64::MAX)
            .saturating_add_signed(skew)
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros())
    }

    fn elapsed(&self) -> Duration {
        self.executor.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.executor.sleep(duration)
    }
}

/// Tasks of one process of one node.
pub struct SimTasks {
    /// Where they run.
    pub executor: Executor,
    /// Whose they are.
    pub home: TaskOwner,
}

impl Tasks for SimTasks {
    fn spawn(&self, work: BoxFuture<'static, ()>) {
        self.executor.spawn(self.home, work);
    }
}
