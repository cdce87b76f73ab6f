//! How long one piece of work on a database may take: after that SQLite stops its statement, and it is undone.
//!
//! Legitimate work ends in time; what does not is the work of a drive that hardly answers, or of a database that should
//! never have been opened. Either must not keep a worker of its drive for good.
//! What gets on says so to the health of its drive: long work is not a hung drive.
//! Always holds: work that is short costs no look at the clock, for SQLite counts its steps and asks only after
//! [`STEPS`]; the time of a piece of work begins when it is first asked about.

use durable_fs::Health;
use rusqlite::Connection;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use world::clock::{Clock, RealClock};

/// Steps of SQLite's machine between two looks at the clock: about a millisecond.
const STEPS: i32 = 20_000;

/// What the work is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// A client waits for the answer, and gives up long before ([`WorkLimits::request`]).
    Request,
    /// Checks, copies and merges of whole databases; reclaiming; migrations.
    Job,
}

/// How long each may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkLimits {
    /// Six times as long as OpenStack's proxies wait for an answer (`node_timeout`).
    pub(crate) request: Duration,
    /// A drive that reads ten megabytes a second checks 36 GB meanwhile.
    pub(crate) job: Duration,
}

impl Default for WorkLimits {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(60),
            job: Duration::from_secs(3_600),
        }
    }
}

/// Watches the work of one connection.
pub(crate) struct Deadline {
    /// The number of the piece of work, doubled, and whether it is a job.
    work: Arc<AtomicU64>,
}

impl Deadline {
    /// Begins to watch; tells `health` of the steps.
    pub(crate) fn watch(
        connection: &mut Connection,
        limits: WorkLimits,
        health: Option<Arc<Health>>,
    ) -> rusqlite::Result<Self> {
        let work = Arc::new(AtomicU64::new(0));
        // SQLite works in real time, also where a simulation has another.
        let (current, clock) = (work.clone(), RealClock::new());
        let (mut seen, mut until) = (u64::MAX, Duration::ZERO);
        let is_over = move || {
            health.iter().for_each(|health| health.progressed());
            let now = clock.elapsed();
            let work = current.load(Ordering::Relaxed);
            if work != seen {
                seen = work;
                until = now + if work & 1 == 1 { limits.job } else { limits.request };
            }
            now >= until
        };
        connection.progress_handler(STEPS, Some(is_over))?;
        Ok(Self { work })
    }

    /// The time of another piece of work begins.
    pub(crate) fn begin(&self, patience: Patience) {
        // There is one piece of work on a connection at a time.
        let number = (self.work.load(Ordering::Relaxed) >> 1) + 1;
        let job = u64::from(patience == Patience::Job);
        self.work.store(number << 1 | job, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durable_fs::health::HUNG;

    const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    const LONG: &str =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT count(*) FROM n";

    fn run(connection: &Connection, sql: &str) -> Result<i64, Option<rusqlite::ErrorCode>> {
        let ran = connection.query_row(sql, [], |row| row.get(0));
        ran.map_err(|error| error.sqlite_error_code())
    }

    #[test]
    fn a_request_is_stopped_where_a_job_goes_on() {
        let mut connection = Connection::open_in_memory().unwrap();
        let limits = WorkLimits {
            request: Duration::ZERO,
            ..WorkLimits::default()
        };
        let deadline = Deadline::watch(&mut connection, limits, None).unwrap();
        let stopped = Err(Some(rusqlite::ErrorCode::OperationInterrupted));
        for _ in 0..2 {
            deadline.begin(Patience::Request);
            assert_eq!(run(&connection, "SELECT 1"), Ok(1), "what is short is not asked about");
            assert_eq!(run(&connection, ENDLESS), stopped);
            assert_eq!(run(&connection, LONG), stopped);
            deadline.begin(Patience::Job);
            assert_eq!(run(&connection, LONG), Ok(100_000));
        }
    }

    #[test]
    fn long_work_is_not_a_hung_drive() {
        let mut connection = Connection::open_in_memory().unwrap();
        let health = Health::new("/srv/sda");
        let deadline = Deadline::watch(&mut connection, WorkLimits::default(), Some(health.clone())).unwrap();
        let _job = health.enter();
        deadline.begin(Patience::Job);
        for _ in 0..HUNG + 5 {
            run(&connection, LONG).unwrap();
            health.tick();
        }
        assert!(health.check().is_ok());
    }

    #[test]
    fn each_piece_of_work_has_its_time() {
        let mut connection = Connection::open_in_memory().unwrap();
        let limits = WorkLimits {
            request: Duration::from_millis(50),
            job: Duration::ZERO,
        };
        let deadline = Deadline::watch(&mut connection, limits, None).unwrap();
        let stopped = Err(Some(rusqlite::ErrorCode::OperationInterrupted));
        deadline.begin(Patience::Request);
        let began = RealClock::new();
        assert_eq!(run(&connection, ENDLESS), stopped);
        assert!(began.elapsed() >= limits.request);
        assert_eq!(run(&connection, LONG), stopped, "the time of this work is over");
        deadline.begin(Patience::Job);
        assert_eq!(run(&connection, LONG), stopped);
    }
}
