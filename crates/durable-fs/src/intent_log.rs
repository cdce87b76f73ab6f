//! [`IntentLog`]: records that outlive the process that made them, but not a loss of power.
//!
//! An [`Intent`] is taken before a change that entails something else, and dropped once that is done too. A crash in
//! between leaves its record behind, and the next process finds it ([`orphaned_logs`]), as does any where an intent was
//! [left](Intent::leave). An intent costs one `write`: no
//! sync, no file of its own, and nothing when it is dropped.
//! One file per process and device holds the records, under a name of its own and locked while in use. It is made with
//! the first intent and [removed](IntentLog::close_idle) once there has been none for a while, so that a drive at rest
//! has no file open and nothing strange on it.
//!
//! ```text
//! file    units of 1024 bytes; a record takes as many in a row as it needs, the lowest that are free
//! unit    'N' (a record begins) or '+' (it goes on), then 1023 bytes of it
//! record  length u32, FNV-1a of the bytes u64 (both little-endian), bytes
//! ```
//!
//! Always holds: of an intent that was not dropped, the record stands whole in the file; what stands there torn,
//! overwritten in part or as the inside of another record is recognised by mark, length and checksum, and passed over;
//! a file whose owner lives is taken over by no other process. Of dropped intents the record stands until another needs
//! the room: what the records ask for must be harmless when it is done twice.
//! Deliberately absent: what the records say. No change fails for want of an intent: it is made without.

use crate::device::StorageDevice;
use crate::error::FsError;
use parking_lot::Mutex;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use world::files::{File, Purpose, read_bytes_at};

/// How the files are called. Sweeps take them for files of other programs and remove them when they have become old.
const PREFIX: &str = ".updates-";

/// Whether a temporary file of this name is a log of intents: what is under way on its device, of any process.
pub fn is_log(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}
/// As all that waits in Swift: comparisons of drives pass over it.
const ENDING: &str = ".pending";
const UNIT: usize = 1024;
const BEGINS: u8 = b'N';
const GOES_ON: u8 = b'+';
const HEAD: usize = 12;
/// More than can be under way at a time on one device.
const MOST_UNITS: usize = 16 * 1024;
/// Files that vanish while they are made: so often in a row only when something is wrong.
const MAX_DIRECTORY_RETRIES: usize = 16;
/// Files that a process leaves to be taken over at a time: further ones are removed, as a drive that keeps nothing
/// would be filled.
const MOST_LEFT: usize = 64;
/// A file with an intent that was left gets no more records after being looked at so often.
const LOOKS_WHEN_LEFT: u32 = 20;
/// A file is given up for a new one after being looked at so often: its file system may be mounted here no more.
const MOST_LOOKS: u32 = 200;

/// The intents of one process on one device.
pub struct IntentLog {
    device: Arc<StorageDevice>,
    directory: PathBuf,
    /// Whether there is any file.
    open: AtomicBool,
    logs: Mutex<LogFiles>,
}

#[derive(Default)]
struct LogFiles {
    current: Option<Arc<LogFile>>,
    /// Those that get no more records.
    retired: Vec<Arc<LogFile>>,
    /// The last intent could not be taken.
    failing: bool,
    /// Files that this process has left to be taken over, as far as it knows.
    left: Vec<PathBuf>,
}

/// A file of records.
struct LogFile {
    file: Box<dyn File>,
    path: PathBuf,
    units: Mutex<Units>,
}

#[derive(Default)]
struct Units {
    used: Vec<u64>,
    count: usize,
    /// Of intents that were [left](Intent::leave): nothing is written over these.
    left: usize,
    /// Used since it was last looked at.
    touched: bool,
    looks: u32,
}

/// What is under way, until dropped.
pub struct Intent {
    log: Arc<LogFile>,
    first: usize,
    count: usize,
    is_left: bool,
}

impl Intent {
    /// What it is for cannot be done by this process: its file is [orphaned](orphaned_logs) as soon as nothing else is
    /// under way in it.
    pub fn leave(mut self) {
        self.is_left = true;
    }
}

impl Drop for Intent {
    fn drop(&mut self) {
        let mut units = self.log.units.lock();
        match self.is_left {
            true => units.left += self.count,
            false => units.give_back(self.first, self.count),
        }
    }
}

impl IntentLog {
    /// The log in `directory` of the device, which is made when it is missing.
    pub fn new(device: Arc<StorageDevice>, directory: PathBuf) -> Self {
        Self {
            device,
            directory,
            open: AtomicBool::new(false),
            logs: Mutex::default(),
        }
    }

    /// Whether a file is open. Does not block.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Writes a record down. `None` when that could not be done, which is logged once.
    pub fn take(&self, record: &[u8]) -> Option<Intent> {
        let framed = frame(record);
        let taken = self.reserve(framed.len().div_ceil(UNIT)).and_then(|intent| {
            let place = (intent.first * UNIT) as u64;
            intent.log.file.write_all_at(&framed, place).map(|()| intent)
        });
        let mut logs = self.logs.lock();
        match taken {
            Ok(intent) => {
                logs.failing = false;
                Some(intent)
            }
            Err(error) => {
                let log = logs.current.take();
                logs.retired.extend(log);
                if !std::mem::replace(&mut logs.failing, true) {
                    let place = self.directory.display();
                    tracing::warn!("{place}: no intents can be recorded: {error}");
                }
                None
            }
        }
    }

    fn reserve(&self, count: usize) -> io::Result<Intent> {
        let mut logs = self.logs.lock();
        let log = match &logs.current {
            Some(log) => log.clone(),
            None => {
                let log = Arc::new(self.new_log()?);
                logs.current = Some(log.clone());
                self.open.store(true, Ordering::Release);
                log
            }
        };
        let first = log.units.lock().take(count);
        let first = first.ok_or_else(|| io::Error::other("too much is under way"))?;
        Ok(Intent {
            log,
            first,
            count,
            is_left: false,
        })
    }

    fn new_log(&self) -> io::Result<LogFile> {
        for _ in 0..MAX_DIRECTORY_RETRIES {
            let name = format!("{PREFIX}{:016x}{ENDING}", self.device.random().next_u64());
            let path = self.directory.join(name);
            let file = match self.device.files().open(&path, Purpose::Create) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let made = self.device.make_directories(&self.directory);
                    made.map_err(io::Error::other)?;
                    continue;
                }
                other => other?,
            };
            // A process that looks for orphaned logs may have come before the lock.
            if file.lock(Duration::ZERO).is_ok() && is_still(&self.device, &*file, &path) {
                let units = Mutex::default();
                return Ok(LogFile { file, path, units });
            }
        }
        Err(io::Error::other("the file is taken away each time"))
    }

    /// To be called now and then while a file [is open](Self::is_open): closes and removes those that hold no intent
    /// any more and got none since the last call. Works on drives that are gone.
    pub fn close_idle(&self) {
        let logs = &mut *self.logs.lock();
        let is_over = |log: &Arc<LogFile>| log.units.lock().is_over();
        if logs.current.as_ref().is_some_and(is_over) {
            let log = logs.current.take();
            logs.retired.extend(log);
        }
        if let Some(log) = logs.current.take_if(|log| log.units.lock().is_idle()) {
            self.remove(&log);
        }
        logs.retired.retain(|log| {
            let (in_use, left) = log.units.lock().in_use_and_left();
            match left > 0 {
                _ if in_use > 0 => {}
                true => self.leave(log, &mut logs.left),
                false => self.remove(log),
            }
            in_use > 0
        });
        let open = logs.current.is_some() || !logs.retired.is_empty();
        self.open.store(open, Ordering::Release);
    }

    /// Leaves the file where not too many are there already that others have not worked off yet.
    fn leave(&self, log: &LogFile, left: &mut Vec<PathBuf>) {
        if left.len() >= MOST_LEFT {
            left.retain(|path| self.device.files().info(path).is_ok());
        }
        if left.len() < MOST_LEFT {
            return left.push(log.path.clone());
        }
        let (place, count) = (self.directory.display(), left.len());
        tracing::error!("{place}: {count} logs of intents wait there already, and one more is given up");
        self.remove(log);
    }

    fn remove(&self, log: &LogFile) {
        if let Err(error) = self.device.files().remove_file(&log.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            // It says nothing that must not be done once more.
            tracing::debug!("{}: cannot be removed: {error}", log.path.display());
        }
    }
}

impl Units {
    fn take(&mut self, count: usize) -> Option<usize> {
        let (mut at, mut run) = (0, 0);
        while run < count {
            if at >= MOST_UNITS {
                return None;
            }
            let word = at / 64;
            if word == self.used.len() {
                self.used.push(0);
            }
            match self.used[word] {
                u64::MAX => (at, run) = ((word + 1) * 64, 0),
                bits if bits >> (at % 64) & 1 == 1 => (at, run) = (at + 1, 0),
                _ => (at, run) = (at + 1, run + 1),
            }
        }
        let first = at - count;
        (first..at).for_each(|unit| self.used[unit / 64] |= 1 << (unit % 64));
        self.count += count;
        self.touched = true;
        Some(first)
    }

    fn give_back(&mut self, first: usize, count: usize) {
        (first..first + count).for_each(|unit| self.used[unit / 64] &= !(1 << (unit % 64)));
        self.count -= count;
        self.touched = true;
    }

    /// Looks at it once more; whether it is to get no more records.
    fn is_over(&mut self) -> bool {
        self.looks += 1;
        let most = if self.left > 0 { LOOKS_WHEN_LEFT } else { MOST_LOOKS };
        self.looks >= most
    }

    fn in_use_and_left(&self) -> (usize, usize) {
        (self.count - self.left, self.left)
    }

    /// There is no intent, nor was one since this was last asked.
    fn is_idle(&mut self) -> bool {
        !std::mem::take(&mut self.touched) && self.count == 0
    }
}

/// A file of records whose process is gone.
pub struct OrphanedLog {
    device: Arc<StorageDevice>,
    path: PathBuf,
    /// Locked: no other process takes it over.
    file: Box<dyn File>,
}

/// The logs in `directory` whose processes are gone.
pub fn orphaned_logs(device: &Arc<StorageDevice>, directory: &Path) -> Result<Vec<OrphanedLog>, FsError> {
    let opened = match device.files().open_directory(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        other => other.map_err(FsError::io("list", directory))?,
    };
    let mut found = vec![];
    opened
        .list(&mut |name| {
            if name.to_string_lossy().starts_with(PREFIX) {
                found.push(directory.join(name));
            }
        })
        .map_err(FsError::io("list", directory))?;
    found.sort();
    let take = |path: PathBuf| {
        let file = device.files().open(&path, Purpose::Read).ok()?;
        let ours = file.lock(Duration::ZERO).is_ok() && is_still(device, &*file, &path);
        let device = device.clone();
        ours.then_some(OrphanedLog { device, path, file })
    };
    Ok(found.into_iter().filter_map(take).collect())
}

impl OrphanedLog {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The records that stand in it whole, those of dropped intents among them.
    pub fn records(&self) -> Result<Vec<Vec<u8>>, FsError> {
        let most = MOST_UNITS * UNIT;
        let read = self.file.info().and_then(|info| {
            let length = usize::try_from(info.size).unwrap_or(most).min(most);
            read_bytes_at(&*self.file, length, 0)
        });
        Ok(unframe(&read.map_err(FsError::io("read", &self.path))?))
    }

    /// Removes it: what it says has been done.
    pub fn remove(self) -> Result<(), FsError> {
        let removed = self.device.files().remove_file(&self.path);
        removed.map_err(FsError::io("remove", &self.path))
    }
}

fn is_still(device: &StorageDevice, file: &dyn File, path: &Path) -> bool {
    match (file.info(), device.files().info(path)) {
        (Ok(open), Ok(named)) => (open.device, open.inode) == (named.device, named.inode),
        _ => false,
    }
}

fn frame(record: &[u8]) -> Vec<u8> {
    let length = HEAD + record.len();
    let mut framed = Vec::with_capacity(length + length / (UNIT - 1) + 1);
    framed.push(BEGINS);
    let (size, sum) = ((record.len() as u32).to_le_bytes(), checksum(record).to_le_bytes());
    for mut rest in [&size[..], &sum, record] {
        while !rest.is_empty() {
            if framed.len() % UNIT == 0 {
                framed.push(GOES_ON);
            }
            let room = UNIT - framed.len() % UNIT;
            let (piece, later) = rest.split_at(room.min(rest.len()));
            framed.extend_from_slice(piece);
            rest = later;
        }
    }
    framed
}

fn unframe(bytes: &[u8]) -> Vec<Vec<u8>> {
    let units: Vec<&[u8]> = bytes.chunks(UNIT).collect();
    (0..units.len()).filter_map(|at| record_at(&units[at..])).collect()
}

fn record_at(units: &[&[u8]]) -> Option<Vec<u8>> {
    let (mark, begin) = units.first()?.split_first()?;
    let (length, rest) = begin.split_first_chunk::<4>().filter(|_| *mark == BEGINS)?;
    let (sum, begin) = rest.split_first_chunk::<8>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let mut record = begin.to_vec();
    for unit in &units[1..] {
        if record.len() >= length {
            break;
        }
        let (mark, piece) = unit.split_first()?;
        record.extend_from_slice((*mark == GOES_ON).then_some(piece)?);
    }
    record.truncate(length);
    let is_whole = record.len() == length && checksum(&record) == u64::from_le_bytes(*sum);
    is_whole.then_some(record)
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
#[path = "intent_log_tests.rs"]
mod tests;
