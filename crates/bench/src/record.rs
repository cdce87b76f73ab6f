//! A record of every operation (`--record`): CSV, compressed with gzip.
//!
//! The file is one gzip stream in several members (RFC 1952, 2.2), which `zcat` and all libraries read as one. Threads
//! of the load fill blocks of rows, one more thread compresses them, and each member goes to the file, or over the wire
//! to the controller, which appends it as it is.
//! Always holds: a row for every operation that ended; memory has a bound, whatever the load: threads wait when the
//! file is slower than they are, and the time that they waited is reported; rows of one thread are in their order,
//! those of different threads and drivers are not.
//!
//! | question | file |
//! |---|---|
//! | what a row is | `record/row.rs` |
//! | how rows reach the file | this one |
//! | `martlet bench records` | `record/reading.rs` |

pub mod reading;
pub mod row;

use flate2::Compression;
use flate2::write::GzEncoder;
use parking_lot::Mutex;
use row::{RecordedOperation, RowContext};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;
use vocabulary::Fault;
use world::files::{File, Purpose};
use world::{BoxFuture, World};

/// Bytes of rows that a thread collects.
const BLOCK: usize = 64 << 10;
/// Blocks that wait to be compressed.
const WAITING: usize = 64;
/// Bytes of rows in one member of the file, and one block more.
const MEMBER: usize = 256 << 10;

/// Takes members of the file.
pub type MemberSink = Box<dyn FnMut(Vec<u8>) -> io::Result<()> + Send>;

/// The file of a record. Clones append to the same one.
#[derive(Clone)]
pub struct RecordFile(Arc<Mutex<OpenRecordFile>>);

struct OpenRecordFile {
    file: Box<dyn File>,
    path: PathBuf,
    length: u64,
}

impl RecordFile {
    /// A new file, with the names of the columns in it.
    pub fn create(world: &World, path: &Path) -> Result<Self, Fault> {
        let opened = world.files.open(path, Purpose::Create);
        let file = opened.map_err(|error| Fault::caller(format!("--record {}: {error}", path.display())))?;
        let record = Self(Arc::new(Mutex::new(OpenRecordFile {
            file,
            path: path.to_owned(),
            length: 0,
        })));
        let columns = compressed(row::COLUMNS.as_bytes()).and_then(|member| record.append(&member));
        columns.map_err(|error| record.failed(&error)).map(|()| record)
    }

    /// Adds a member.
    pub fn append(&self, member: &[u8]) -> io::Result<()> {
        let mut open = self.0.lock();
        open.file.write_all_at(member, open.length)?;
        open.length += member.len() as u64;
        Ok(())
    }

    /// What is said when the file cannot be written.
    pub fn failed(&self, error: &io::Error) -> Fault {
        Fault::caller(format!("--record {}: {error}", self.0.lock().path.display()))
    }
}

fn compressed(rows: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(vec![], Compression::fast());
    encoder.write_all(rows)?;
    encoder.finish()
}

/// A record that is being made.
pub struct Recording {
    recorder: Arc<OperationRecorder>,
    /// Completes when all members have been taken.
    writing: BoxFuture<'static, io::Result<()>>,
}

/// Where threads of the load leave their rows.
pub struct OperationRecorder {
    /// Nothing once the record has ended.
    blocks: Mutex<Option<SyncSender<Vec<u8>>>>,
    context: RowContext,
    waited: Mutex<Duration>,
    world: World,
}

impl Recording {
    /// Begins one, with a thread that hands members to `sink`. The world's clock is `ahead` microseconds of the one
    /// that rows are to have.
    pub fn begin(world: &World, driver: &str, ahead: i64, sink: MemberSink) -> Result<Self, Fault> {
        let failed = |error: &dyn std::fmt::Display| Fault::caller(format!("no thread for the record: {error}"));
        let pool = world.workers("bench-record", 1, 1).map_err(|error| failed(&error))?;
        let (blocks, waiting) = sync_channel(WAITING);
        let writing = world.run_detached(async move { pool.run(move || write_members(&waiting, sink)).await });
        Ok(Self {
            recorder: Arc::new(OperationRecorder {
                blocks: Mutex::new(Some(blocks)),
                context: RowContext::new(world, driver, ahead),
                waited: Mutex::default(),
                world: world.clone(),
            }),
            writing: Box::pin(async move {
                match writing.await {
                    Some(Ok(written)) => written,
                    _ => Err(io::Error::other("the thread of the record has ended")),
                }
            }),
        })
    }

    /// Where rows go.
    pub fn recorder(&self) -> Arc<OperationRecorder> {
        self.recorder.clone()
    }

    /// Waits until all rows have been taken: how long threads of the load waited for that while it lasted.
    pub async fn finish(self) -> io::Result<Duration> {
        // The thread ends with the last sender; those of threads have ended with their load.
        *self.recorder.blocks.lock() = None;
        self.writing.await?;
        Ok(*self.recorder.waited.lock())
    }
}

fn write_members(blocks: &Receiver<Vec<u8>>, mut sink: MemberSink) -> io::Result<()> {
    let mut rows = vec![];
    while let Ok(block) = blocks.recv() {
        rows.extend_from_slice(&block);
        if rows.len() >= MEMBER {
            sink(compressed(&rows)?)?;
            rows.clear();
        }
    }
    match rows.is_empty() {
        true => Ok(()),
        false => sink(compressed(&rows)?),
    }
}

/// Rows of one thread and one work.
pub struct RecordBuffer {
    recorder: Arc<OperationRecorder>,
    blocks: Option<SyncSender<Vec<u8>>>,
    /// The columns that all rows have in common.
    start: Vec<u8>,
    rows: Vec<u8>,
}

impl RecordBuffer {
    /// None yet, of a work of a stage.
    pub fn new(recorder: &Arc<OperationRecorder>, stage: &str, work: &str) -> Self {
        Self {
            recorder: recorder.clone(),
            blocks: recorder.blocks.lock().clone(),
            start: row::start(stage, work),
            rows: vec![],
        }
    }

    /// Adds a row. Waits when the file is slower than the load.
    pub fn add(&mut self, operation: &RecordedOperation<'_>) {
        if self.blocks.is_none() {
            return;
        }
        self.rows.extend_from_slice(&self.start);
        self.recorder.context.write(operation, &mut self.rows);
        if self.rows.len() >= BLOCK {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let Some(blocks) = &self.blocks else { return };
        let block = std::mem::take(&mut self.rows);
        if block.is_empty() {
            return;
        }
        let is_open = match blocks.try_send(block) {
            Ok(()) => true,
            Err(TrySendError::Full(block)) => {
                let clock = &self.recorder.world.clock;
                let begun = clock.elapsed();
                let is_open = blocks.send(block).is_ok();
                *self.recorder.waited.lock() += clock.elapsed().saturating_sub(begun);
                is_open
            }
            Err(TrySendError::Disconnected(_)) => false,
        };
        // The record has failed: `finish` says why.
        if !is_open {
            self.blocks = None;
        }
    }
}

impl Drop for RecordBuffer {
    fn drop(&mut self) {
        self.flush();
    }
}
