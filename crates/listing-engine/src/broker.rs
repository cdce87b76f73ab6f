//! [`Broker`]: one account or container database, for any number of threads.
//!
//! A row's way: [`Broker::commit_batch`] or [`Broker::enqueue`] → group commit (`queue.rs`) →
//! appended to the pending file with one sync for the whole batch → acknowledged → merged into the
//! tables when the pending file is full or before a read.
//!
//! Always holds: the pending file is only touched under the directory lock that OpenStack takes;
//! lock order is pending, then database. A handle outlives its file: when the file has been
//! replaced the new one is opened, when it is gone callers get [`Error::NotFound`].

use crate::connection::{Database, Schemas};
use crate::create::{self, NewDatabase};
use crate::error::DatabaseFailure;
use crate::queue::RowQueue;
use crate::row::ContainerRow;
use crate::{Error, Location, Row, absorb, pending};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vocabulary::FaultKind;
use world::clock::{Clock, RealClock};

/// How large the pending file may grow before it is merged; OpenStack's PENDING_CAP.
const PENDING_CAP: u64 = 131_072;

/// Milliseconds in which a database is malformed twice that no look finds anything wrong with: what is wrong is met by
/// requests again and again, and a drive seldom fails to read so often.
const DOUBT: u64 = 60_000;
const NEVER: u64 = u64::MAX;

/// One database. See the module for how rows travel; reads are in `info.rs` and `listing.rs`,
/// changes of the whole in `lifecycle.rs` and `metadata.rs`.
pub struct Broker {
    location: Location,
    database: Mutex<Option<Database>>,
    pending: Mutex<()>,
    queue: RowQueue,
    schemas: Schemas,
    /// Milliseconds of `clock` when it was malformed last, and sound in the next moment.
    doubted: AtomicU64,
    clock: RealClock,
}

impl Broker {
    /// Makes a new database.
    pub fn create(location: Location, new: &NewDatabase) -> Result<Self, Error> {
        create::create(&location, new)?;
        Ok(Self::handle(location))
    }

    /// Opens the database at `location`, migrating an older schema.
    pub fn open(location: Location) -> Result<Self, Error> {
        let broker = Self::handle(location);
        broker.with(|_| Ok(()))?;
        Ok(broker)
    }

    /// The same for what is only looked at, whatever else its schema says.
    pub(crate) fn open_to_look(location: Location) -> Result<Self, Error> {
        let broker = Self {
            schemas: Schemas::Any,
            ..Self::handle(location)
        };
        broker.with(|_| Ok(()))?;
        Ok(broker)
    }

    fn handle(location: Location) -> Self {
        Self {
            location,
            database: Mutex::new(None),
            pending: Mutex::new(()),
            queue: RowQueue::default(),
            schemas: Schemas::Known,
            doubted: AtomicU64::new(NEVER),
            clock: RealClock::new(),
        }
    }

    /// Where it lives.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Whether its file is there.
    ///
    /// # Errors
    /// When that cannot be known.
    pub fn exists(&self) -> Result<bool, Error> {
        Ok(self.location.disk().exists(&self.location.db_file())? || self.location.newest_file()?.is_some())
    }

    /// Whether an account's database says just that of a container, and nothing waits to be merged.
    pub fn says(&self, row: &ContainerRow) -> Result<bool, Error> {
        if self.location.disk().length(&self.location.pending_file())? > 0 {
            return Ok(false);
        }
        let found = self.with(|database| database.read("read", |c| absorb::container(c, &row.name)))?;
        Ok(found.is_some_and(|found| found == *row))
    }

    /// Stores rows and returns when they are durable. Concurrent calls share one sync.
    pub fn commit_batch(&self, rows: &[Row]) -> Result<(), Error> {
        let slot = Arc::new(Mutex::new(None));
        let filled = slot.clone();
        let mut leads = self.enqueue(rows.to_vec(), move |result| *filled.lock() = Some(result));
        loop {
            if leads && self.store_batch() {
                self.queue.resign();
            }
            leads = self.queue.wait_or_lead(|| slot.lock().is_some());
            if let Some(result) = slot.lock().take() {
                return result;
            }
        }
    }

    /// Queues rows; `done` is called once they are durable. `true` asks the caller to have
    /// [`Self::flush`] run by some thread that may block.
    pub fn enqueue(&self, rows: Vec<Row>, done: impl FnOnce(Result<(), Error>) + Send + 'static) -> bool {
        self.queue.push(rows, Box::new(done))
    }

    /// Stores batches until nothing waits. To be called for each `true` of [`Self::enqueue`].
    pub fn flush(&self) {
        while self.store_batch() {}
    }

    fn store_batch(&self) -> bool {
        let if_lost = Error::Busy {
            path: self.location.pending_file(),
        };
        self.queue.lead(|rows| self.store(rows), if_lost)
    }

    fn store(&self, rows: &[Row]) -> Result<(), Error> {
        if rows.iter().any(|row| row.kind() != self.location.kind()) {
            return Err(Error::WrongKind {
                path: self.location.db_file(),
            });
        }
        let _order = self.pending.lock();
        let _lock = self.location.disk().lock(&self.location.lock_file())?;
        if !self.exists()? {
            return Err(Error::NotFound {
                path: self.location.db_file(),
            });
        }
        let file = self.location.pending_file();
        let records = pending::encode(rows);
        match self.location.disk().length(&file)? + records.len() as u64 <= PENDING_CAP {
            true => self.location.disk().append(&file, &records),
            false => self.absorb(rows),
        }
    }

    /// For those who work on the whole; taken before the directory's lock.
    pub(crate) fn lock_pending(&self) -> MutexGuard<'_, ()> {
        self.pending.lock()
    }

    /// Merges the pending file; the caller holds both locks.
    pub(crate) fn absorb_pending(&self) -> Result<(), Error> {
        match self.location.disk().length(&self.location.pending_file())? {
            0 => Ok(()),
            _ => self.absorb(&[]),
        }
    }

    /// Merges the pending file and then `more`; the caller holds the pending lock.
    fn absorb(&self, more: &[Row]) -> Result<(), Error> {
        let file = self.location.pending_file();
        let bytes = self.location.disk().read(&file)?;
        let decoded = pending::decode(self.location.kind(), &bytes);
        if let Some(reason) = decoded.rubbish.first() {
            let count = decoded.rubbish.len();
            tracing::warn!(path = %file.display(), count, "skipping pending records that cannot be read; the first: {reason}");
        }
        let mut rows = decoded.rows;
        rows.extend_from_slice(more);
        self.with(|database| database.write_long("merge rows into", |t| absorb::rows(t, rows)))?;
        match bytes.is_empty() {
            true => Ok(()),
            false => self.location.disk().truncate(&file),
        }
    }

    /// Makes every acknowledged row visible in the tables.
    pub fn merge_pending(&self) -> Result<(), Error> {
        if self.location.disk().length(&self.location.pending_file())? == 0 {
            return Ok(());
        }
        let _order = self.pending.lock();
        let _lock = self.location.disk().lock(&self.location.lock_file())?;
        self.absorb(&[])
    }

    /// Runs `work` on the open database, opening it when needed and quarantining it when damaged: at once when a second
    /// look finds the damage, too, or the second time within a minute.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Database) -> Result<T, DatabaseFailure>) -> Result<T, Error> {
        let mut slot = self.database.lock();
        if slot.as_ref().is_some_and(|database| !database.is_current()) {
            *slot = None;
        }
        let done = match slot.as_mut() {
            Some(database) => work(database),
            None => Database::open(&self.location, self.schemas).and_then(|database| work(slot.insert(database))),
        };
        done.map_err(|failure| match failure {
            DatabaseFailure::Error(error) => {
                let is_disks = matches!(error, Error::Io { .. } | Error::Unsynced { .. });
                if is_disks || matches!(error.kind(), FaultKind::Device | FaultKind::NoSpace | FaultKind::Item) {
                    // What it keeps in memory may not be what the drive kept.
                    *slot = None;
                }
                error
            }
            DatabaseFailure::Damaged(reason) => {
                *slot = None;
                self.quarantine(reason)
            }
            DatabaseFailure::Malformed(reason) => {
                *slot = None;
                match self.look_again() {
                    Some(reason) => self.quarantine(reason),
                    // What no check finds, and requests meet again and again.
                    None if self.is_doubted_again() => self.quarantine(reason),
                    None => Error::Doubtful {
                        path: self.location.db_file(),
                        reason,
                    },
                }
            }
        })
    }

    /// Like [`Self::with`], after making every acknowledged row visible.
    pub(crate) fn with_merged<T>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<T, DatabaseFailure>,
    ) -> Result<T, Error> {
        self.merge_pending()?;
        self.with(work)
    }

    /// Moves the database out of the way although it is not damaged; what was acknowledged goes with it.
    pub fn set_aside(&self, reason: &str) -> Result<(), Error> {
        *self.database.lock() = None;
        match self.quarantine(reason.to_owned()) {
            Error::Quarantined { .. } => Ok(()),
            error => Err(error),
        }
    }

    /// Whether the last doubt was a moment ago.
    fn is_doubted_again(&self) -> bool {
        let now = self.clock.elapsed().as_millis() as u64;
        let last = self.doubted.swap(now, Ordering::Relaxed);
        last != NEVER && now.saturating_sub(last) < DOUBT
    }

    /// What is wrong with the file when it is opened once more. SQLite takes a read that fails on Linux (EIO) for
    /// damage, and drives do fail to read now and then.
    fn look_again(&self) -> Option<String> {
        let looked = Database::open(&self.location, self.schemas).and_then(|database| database.check_pages());
        match looked {
            Err(DatabaseFailure::Damaged(reason) | DatabaseFailure::Malformed(reason)) => Some(reason),
            Err(DatabaseFailure::Error(_)) | Ok(()) => None,
        }
    }

    fn quarantine(&self, reason: String) -> Error {
        let path = self.location.db_file();
        let place = &self.location;
        match place
            .disk()
            .quarantine(&place.hash_dir(), &place.quarantine_dir(), place.root())
        {
            Ok(quarantined) => {
                tracing::error!(
                    path = %path.display(),
                    quarantined = %quarantined.display(),
                    "quarantined a database: {reason}"
                );
                Error::Quarantined {
                    path,
                    reason,
                    quarantined,
                }
            }
            Err(error) => error,
        }
    }
}
