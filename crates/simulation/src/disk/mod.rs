//! Disks in memory: a file system per node whose drives lose what was not synced.
//!
//! Drives are mounted at `/srv/<name>`; what stands elsewhere does not exist. Chance is the seed's.
//! Always holds: a call fails, or it happens at once; once the power is to go at some step
//! ([`SimFiles::lose_power_after`]), nothing happens from that step on.
//! Deliberately absent: symbolic links, permissions, renaming directories over others.

mod drive;
mod handles;
mod system;
#[cfg(test)]
mod tests;

pub use drive::WriteOrder;

use crate::clock::SimClock;
use crate::dice::Dice;
use crate::trace::Trace;
use drive::Drive;
use parking_lot::Mutex;
use sqlite_files::SqliteMount;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use world::Clock;
use world::files::FileSystem;

pub(crate) const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Where drives are mounted.
pub const MOUNTS: &str = "/srv";
/// File systems keep times to that many microseconds.
const TICK: u64 = 4_000;

/// What may go wrong with a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriveFault {
    /// So many of 100 calls fail.
    Failing(u64),
    /// So many syncs fail.
    FailingSyncs(u32),
    /// There is no room.
    Full(bool),
    /// A job may take so many milliseconds.
    Slow(u64),
    /// The next job takes so many seconds.
    LongJob(u64),
    /// It is pulled out, or put back. What was not safe is lost with the pull.
    Pulled(bool),
    /// It is empty.
    Replaced,
    /// A bit is another.
    FlippedBit,
}

/// The disks of one node; clones are the same ones.
#[derive(Clone)]
pub struct SimFiles {
    state: Arc<Mutex<NodeDisks>>,
    clock: SimClock,
    dice: Dice,
    trace: Trace,
    node: usize,
    /// How SQLite gets here; none where it is SQLite that has got here.
    sqlite: Option<Arc<SqliteMount>>,
}

/// Which of SQLite's syncs happen: all, but for a planted bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqliteSyncs {
    /// All.
    All,
    /// Those of databases, not those of their journals.
    NotOfJournals,
    /// None, as with `synchronous=OFF`.
    None,
}

struct NodeDisks {
    drives: BTreeMap<String, Drive>,
    /// Steps until the power goes.
    power_for: Option<u32>,
    dark: bool,
    /// How many files of objects have got their names.
    published: u64,
    handles: u64,
    /// Files cannot be without a name.
    all_named: bool,
    /// A bug: temporary files are not removed.
    keeps_temporaries: bool,
    /// A bug: nothing is written to files with this in their paths.
    forgets: Option<&'static str>,
    /// A bug: databases may bring any schema.
    obeys_any_schema: bool,
    /// A bug, unless all.
    sqlite_syncs: SqliteSyncs,
}

/// The content of a file, and its attributes.
pub type FileContent = (Vec<u8>, BTreeMap<String, Vec<u8>>);

impl SimFiles {
    /// Drives with these names, all empty and well.
    pub fn new(clock: SimClock, dice: Dice, trace: Trace, node: usize, drives: &[(&str, WriteOrder)]) -> Self {
        let drives = drives
            .iter()
            .map(|(name, order)| ((*name).to_owned(), Drive::new(*order)));
        let disks = NodeDisks {
            drives: drives.collect(),
            power_for: None,
            dark: false,
            published: 0,
            handles: 0,
            all_named: false,
            keeps_temporaries: false,
            forgets: None,
            obeys_any_schema: false,
            sqlite_syncs: SqliteSyncs::All,
        };
        let files = Self {
            state: Arc::new(Mutex::new(disks)),
            clock,
            dice,
            trace,
            node,
            sqlite: None,
        };
        let mount = SqliteMount::new(Arc::new(files.clone()), Arc::new(files.clock.clone()));
        Self {
            sqlite: Some(Arc::new(mount)),
            ..files
        }
    }

    /// Lets `steps` more changes happen, then none.
    pub fn lose_power_after(&self, steps: u32) {
        self.state.lock().power_for = Some(steps);
    }

    /// Whether the power has gone at the step it was to go at.
    pub fn is_dark(&self) -> bool {
        self.state.lock().dark
    }

    /// How many files of objects have got their names.
    pub(crate) fn published(&self) -> u64 {
        self.state.lock().published
    }

    /// The power is back: what was not safe has survived or not.
    pub fn restore_power(&self) {
        let mut disks = self.state.lock();
        (disks.dark, disks.power_for) = (false, None);
        for drive in disks.drives.values_mut() {
            drive.lose_power(&self.dice);
        }
    }

    /// The process is gone, the system is not: handles and locks end.
    pub fn close_all(&self) {
        let mut disks = self.state.lock();
        (disks.dark, disks.power_for) = (false, None);
        disks.drives.values_mut().for_each(Drive::close_all);
    }

    /// Lets something go wrong, or well again. False when it could not be.
    pub fn inject(&self, name: &str, fault: DriveFault) -> bool {
        let mut disks = self.state.lock();
        let Some(drive) = disks.drives.get_mut(name) else {
            return false;
        };
        match fault {
            DriveFault::Failing(percent) => {
                drive.failing = percent;
                drive.has_erred |= percent > 0;
            }
            DriveFault::FailingSyncs(count) => {
                drive.failing_syncs = count;
                drive.has_erred |= count > 0;
            }
            DriveFault::Full(full) => drive.full = full,
            DriveFault::Slow(millis) => drive.slowness = millis,
            DriveFault::LongJob(seconds) => drive.long_job = Some(Duration::from_secs(seconds)),
            DriveFault::Pulled(true) if drive.mounted => {
                drive.lose_power(&self.dice);
                drive.mounted = false;
                drive.plugged += 1;
            }
            DriveFault::Pulled(pulled) => drive.mounted = !pulled,
            DriveFault::Replaced => drive.replace(),
            DriveFault::FlippedBit => return drive.flip_a_bit(&self.dice),
        }
        true
    }

    /// Whether files cannot be without a name, as on file systems without `O_TMPFILE`.
    pub fn name_all(&self, all: bool) {
        self.state.lock().all_named = all;
    }

    /// A bug: temporary files are not removed.
    pub fn keep_temporaries(&self) {
        self.state.lock().keeps_temporaries = true;
    }

    /// A bug: what is written to files with this in their paths is not kept.
    pub fn forget(&self, part: &'static str) {
        self.state.lock().forgets = Some(part);
    }

    /// A bug: databases may bring any schema.
    pub fn obey_any_schema(&self) {
        self.state.lock().obeys_any_schema = true;
    }

    /// A bug: SQLite's syncs claim to have happened.
    pub fn skip_syncs_of_sqlite(&self, but: SqliteSyncs) {
        self.state.lock().sqlite_syncs = but;
    }

    /// A bug: syncs claim to have happened.
    pub fn lie(&self, lies: bool) {
        self.state
            .lock()
            .drives
            .values_mut()
            .for_each(|drive| drive.lies = lies);
    }

    /// A bug: everything in a directory is gone, as if by a step of its own.
    pub(crate) fn empty(&self, directory: &Path) {
        let Ok(opened) = self.open_directory(directory) else {
            return;
        };
        let mut names = vec![];
        // What cannot be listed stays.
        let _ = opened.list(&mut |name| names.push(name.to_owned()));
        for name in names {
            let _ = self.remove_file(&directory.join(name));
        }
    }

    /// How many milliseconds a job may take.
    pub(crate) fn slowness(&self, name: &str) -> u64 {
        self.state.lock().drives.get(name).map_or(2, |drive| drive.slowness)
    }

    /// How long the job takes that begins now, where it is a long one.
    pub(crate) fn begin_long_job(&self, name: &str) -> Option<Duration> {
        let mut disks = self.state.lock();
        let drive = disks.drives.get_mut(name)?;
        let long = drive.long_job.take()?;
        drive.busy_until = self.clock.elapsed() + long;
        Some(long)
    }

    /// How long a long job is still under way.
    pub(crate) fn long_job_left(&self, name: &str) -> Duration {
        let busy_until = self.state.lock().drives.get(name).map(|drive| drive.busy_until);
        busy_until.unwrap_or_default().saturating_sub(self.clock.elapsed())
    }

    /// The paths of all files on all drives, whatever is mounted.
    pub fn all_files(&self) -> Vec<String> {
        self.each_file(|path, _| path)
    }

    /// What is in the files whose paths contain `part`.
    pub fn contents(&self, part: &str) -> BTreeMap<String, FileContent> {
        let whole = |path: String, inode: Option<&drive::Inode>| match inode {
            Some(drive::Inode::File(file)) if path.contains(part) => {
                Some((path, (file.now.bytes.clone(), file.now.attributes.clone())))
            }
            _ => None,
        };
        self.each_file(whole).into_iter().flatten().collect()
    }

    /// Whether a drive has given errors, so that nothing is known of what its syncs have reached.
    pub fn has_erred(&self) -> bool {
        self.state.lock().drives.values().any(|drive| drive.has_erred)
    }

    /// The paths of all files that would survive a loss of power as they are.
    pub fn safe_files(&self) -> Vec<String> {
        let disks = self.state.lock();
        let safe = |(name, drive): (&String, &Drive)| drive.safe_files(&format!("{MOUNTS}/{name}"));
        disks.drives.iter().flat_map(safe).collect()
    }

    fn each_file<T: Ord>(&self, mut tell: impl FnMut(String, Option<&drive::Inode>) -> T) -> Vec<T> {
        let disks = self.state.lock();
        let mut found = vec![];
        for (name, drive) in &disks.drives {
            let mut open = vec![(drive::ROOT, format!("{MOUNTS}/{name}"))];
            while let Some((inode, path)) = open.pop() {
                match drive.entries(inode) {
                    Some(entries) => {
                        open.extend(
                            entries
                                .iter()
                                .map(|(name, inode)| (*inode, format!("{path}/{}", name.to_string_lossy()))),
                        );
                    }
                    None => found.push(tell(path, drive.inodes.get(&inode))),
                }
            }
        }
        found.sort();
        found
    }

    /// The time as files keep it: seconds and nanoseconds.
    fn tick(&self) -> u64 {
        self.clock.micros() / TICK * TICK
    }

    /// A change is about to be made.
    fn step(&self, disks: &mut NodeDisks, drive: &str, what: &str, path: &Path) -> io::Result<()> {
        self.look(disks, drive)?;
        if let Some(left) = &mut disks.power_for {
            if *left == 0 {
                disks.dark = true;
                self.trace.note(format!(
                    "n{}: the power goes before: {what} {}",
                    self.node,
                    path.display()
                ));
                return Err(io::Error::from_raw_os_error(EIO));
            }
            *left -= 1;
        }
        disks.published += u64::from(matches!(what, "link" | "rename") && is_object(path));
        self.trace.note(format!("n{}: {what} {}", self.node, path.display()));
        Ok(())
    }

    /// Something is about to be read.
    fn look(&self, disks: &NodeDisks, drive: &str) -> io::Result<()> {
        let failing = disks.drives.get(drive).map_or(0, |drive| drive.failing);
        match disks.dark || (failing > 0 && self.dice.chance(failing)) {
            true => Err(io::Error::from_raw_os_error(EIO)),
            false => Ok(()),
        }
    }
}

/// Whether a path is that of a version of an object, or of its deletion.
fn is_object(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending == "data" || ending == "ts")
}
