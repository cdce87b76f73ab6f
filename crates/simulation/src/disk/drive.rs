//! One drive: what a file system on it shows now, and what of that would survive a loss of power.
//!
//! Content and attributes of a file are safe once the file was synced, a name once its directory was.
//! All else may survive wholly, in parts (sectors of 512 bytes, single attributes) or not at all. Names
//! change in steps, each of which happens or does not; in which order they reach the drive is the drive's
//! [`WriteOrder`]. After a failed sync of a file what it should have made safe never will be.

use crate::dice::Dice;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::time::Duration;

/// What a drive writes at once.
const SECTOR: usize = 512;
/// The directory that a drive's file system begins with.
pub(super) const ROOT: u64 = 1;

/// How changes to directories reach the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOrder {
    /// Through one log, in the order they were made (ext4, XFS): a sync takes all before along.
    Log,
    /// Each directory by itself, in any order: all that POSIX promises.
    Any,
}

/// The content of a file at some time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct InodeContent {
    pub(super) bytes: Vec<u8>,
    pub(super) attributes: BTreeMap<String, Vec<u8>>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct FileState {
    pub(super) now: InodeContent,
    pub(super) safe: InodeContent,
    /// Something is not safe yet.
    pub(super) dirty: bool,
    /// A sync failed: the system has dropped what was to be written.
    pub(super) spoilt: bool,
    pub(super) locked_by: Option<u64>,
    pub(super) changed: u64,
    pub(super) modified: u64,
    pub(super) names: u32,
}

#[derive(Debug, Clone)]
pub(super) enum Inode {
    File(FileState),
    Directory {
        entries: BTreeMap<OsString, u64>,
        changed: u64,
    },
}

/// Entries that change together: directory, name, what it then is.
pub(super) type NameChanges = Vec<(u64, OsString, Option<u64>)>;

/// One drive.
#[derive(Debug, Clone)]
pub struct Drive {
    pub(super) inodes: BTreeMap<u64, Inode>,
    next: u64,
    safe_entries: BTreeMap<u64, BTreeMap<OsString, u64>>,
    unsafe_steps: Vec<NameChanges>,
    pub(super) order: WriteOrder,
    /// Handles of an earlier generation answer EIO.
    pub(super) generation: u64,
    pub(super) mounted: bool,
    /// How often it, or another in its place, was plugged in again. Each time it is another device to the system, which
    /// keeps the old one for as long as files are open.
    pub(super) plugged: u64,
    /// Calls have failed with EIO, or could have: what a sync has reached is not known any more.
    pub(super) has_erred: bool,
    /// In how many of 100 cases a call fails with EIO.
    pub(super) failing: u64,
    /// The next syncs fail.
    pub(super) failing_syncs: u32,
    pub(super) full: bool,
    /// How long a job may take, in milliseconds.
    pub(super) slowness: u64,
    /// How long the next job takes.
    pub(super) long_job: Option<Duration>,
    /// When the last long job ends.
    pub(super) busy_until: Duration,
    /// Syncs say that they were done, and were not: a planted bug.
    pub(super) lies: bool,
}

impl Drive {
    pub(super) fn new(order: WriteOrder) -> Self {
        let root = Inode::Directory {
            entries: BTreeMap::new(),
            changed: 0,
        };
        Self {
            inodes: BTreeMap::from([(ROOT, root)]),
            next: ROOT,
            safe_entries: BTreeMap::new(),
            unsafe_steps: vec![],
            order,
            generation: 0,
            mounted: true,
            plugged: 0,
            failing: 0,
            failing_syncs: 0,
            has_erred: false,
            full: false,
            slowness: 2,
            long_job: None,
            busy_until: Duration::ZERO,
            lies: false,
        }
    }

    pub(super) fn add(&mut self, inode: Inode) -> u64 {
        self.next += 1;
        self.inodes.insert(self.next, inode);
        self.next
    }

    pub(super) fn entries(&self, directory: u64) -> Option<&BTreeMap<OsString, u64>> {
        match self.inodes.get(&directory) {
            Some(Inode::Directory { entries, .. }) => Some(entries),
            _ => None,
        }
    }

    pub(super) fn file(&mut self, inode: u64) -> Option<&mut FileState> {
        match self.inodes.get_mut(&inode) {
            Some(Inode::File(file)) => Some(file),
            _ => None,
        }
    }

    /// Changes names now; a loss of power may undo it.
    pub(super) fn change(&mut self, step: NameChanges, time: u64) {
        for (directory, name, inode) in &step {
            let before = match self.inodes.get_mut(directory) {
                Some(Inode::Directory { entries, changed }) => {
                    *changed = time;
                    match inode {
                        Some(inode) => entries.insert(name.clone(), *inode),
                        None => entries.remove(name),
                    }
                }
                _ => None,
            };
            for (inode, added) in [(before, false), (*inode, true)] {
                if let Some(file) = inode.and_then(|inode| self.file(inode)) {
                    file.changed = time;
                    file.names = if added {
                        file.names + 1
                    } else {
                        file.names.saturating_sub(1)
                    };
                }
            }
        }
        self.unsafe_steps.push(step);
    }

    /// Makes the content of a file safe.
    pub(super) fn sync_file(&mut self, inode: u64) {
        let lies = self.lies;
        if let Some(file) = self.file(inode).filter(|_| !lies)
            && !file.spoilt
        {
            file.safe = file.now.clone();
            file.dirty = false;
        }
    }

    /// A sync failed: what it was for is lost, and no later one will say so.
    pub(super) fn spoil(&mut self, inode: u64) {
        if let Some(file) = self.file(inode) {
            file.spoilt = true;
        }
    }

    /// Likewise, of everything that was to be synced.
    pub(super) fn spoil_everything(&mut self) {
        for inode in self.inodes.values_mut() {
            if let Inode::File(file) = inode {
                file.spoilt |= file.dirty;
            }
        }
    }

    /// Makes the names in a directory safe.
    pub(super) fn sync_directory(&mut self, directory: u64) {
        if self.lies {
            return;
        }
        let touches = |step: &NameChanges| step.iter().any(|(changed, ..)| *changed == directory);
        let steps = std::mem::take(&mut self.unsafe_steps);
        let last = steps.iter().rposition(touches);
        for (at, step) in steps.into_iter().enumerate() {
            let reached = match self.order {
                WriteOrder::Log => last.is_some_and(|last| at <= last),
                WriteOrder::Any => touches(&step),
            };
            match reached {
                true => self.make_safe(step),
                false => self.unsafe_steps.push(step),
            }
        }
    }

    /// Makes safe what can be.
    pub(super) fn sync_everything(&mut self) {
        if self.lies {
            return;
        }
        for step in std::mem::take(&mut self.unsafe_steps) {
            self.make_safe(step);
        }
        for inode in self.inodes.keys().copied().collect::<Vec<_>>() {
            self.sync_file(inode);
        }
    }

    fn make_safe(&mut self, step: NameChanges) {
        for (directory, name, inode) in step {
            let entries = self.safe_entries.entry(directory).or_default();
            match inode {
                Some(inode) => entries.insert(name, inode),
                None => entries.remove(&name),
            };
        }
    }

    /// The files below `root` that would survive a loss of power as they are.
    pub(super) fn safe_files(&self, root: &str) -> Vec<String> {
        let mut found = vec![];
        let mut open = vec![(ROOT, root.to_owned())];
        while let Some((inode, path)) = open.pop() {
            match self.inodes.get(&inode) {
                Some(Inode::Directory { .. }) => {
                    let entries = self.safe_entries.get(&inode).into_iter().flatten();
                    open.extend(entries.map(|(name, inode)| (*inode, format!("{path}/{}", name.to_string_lossy()))));
                }
                Some(Inode::File(file)) if !file.dirty => found.push(path),
                _ => {}
            }
        }
        found
    }

    /// The power goes, and comes back.
    pub(super) fn lose_power(&mut self, dice: &Dice) {
        let steps = std::mem::take(&mut self.unsafe_steps);
        let kept = dice.up_to(steps.len() + 1);
        let percent = [0, 50, 100][dice.up_to(3)];
        for (at, step) in steps.into_iter().enumerate() {
            let survives = match self.order {
                WriteOrder::Log => at < kept,
                WriteOrder::Any => dice.chance(percent),
            };
            if survives {
                self.make_safe(step);
            }
        }
        let safe = &self.safe_entries;
        for (number, inode) in &mut self.inodes {
            match inode {
                Inode::Directory { entries, .. } => *entries = safe.get(number).cloned().unwrap_or_default(),
                Inode::File(file) => file.lose_power(dice),
            }
        }
        self.close_all();
    }

    /// Every handle dies: nothing else is lost.
    pub(super) fn close_all(&mut self) {
        self.generation += 1;
        let mut reachable = BTreeSet::from([ROOT]);
        let mut open = vec![ROOT];
        while let Some(directory) = open.pop() {
            let found: Vec<u64> = self
                .entries(directory)
                .into_iter()
                .flat_map(|e| e.values().copied())
                .collect();
            open.extend(found.into_iter().filter(|inode| reachable.insert(*inode)));
        }
        // Removed names may still come back when the power goes, and then their files with them.
        let mut safe: BTreeSet<u64> = self.safe_entries.values().flat_map(|e| e.values().copied()).collect();
        safe.extend(
            self.unsafe_steps
                .iter()
                .flatten()
                .flat_map(|(directory, _, inode)| [Some(*directory), *inode].into_iter().flatten()),
        );
        self.inodes
            .retain(|number, _| reachable.contains(number) || safe.contains(number));
        for inode in self.inodes.values_mut() {
            if let Inode::File(file) = inode {
                file.locked_by = None;
            }
        }
    }

    /// Everything is gone: a new drive in the old one's place.
    pub(super) fn replace(&mut self) {
        let new = Self::new(self.order);
        *self = Self {
            generation: self.generation + 1,
            plugged: self.plugged + 1,
            ..new
        };
    }

    /// Spoils one bit of what is safe in one of the files; false when there is none.
    pub(super) fn flip_a_bit(&mut self, dice: &Dice) -> bool {
        let mut files: Vec<&mut FileState> = self
            .inodes
            .values_mut()
            .filter_map(|inode| match inode {
                Inode::File(file) if file.names > 0 && !file.dirty => Some(file),
                _ => None,
            })
            .collect();
        let count = files.len();
        if count == 0 {
            return false;
        }
        let content = &mut files[dice.up_to(count)].now;
        let in_attribute = content.bytes.is_empty() || dice.chance(30);
        let target = match in_attribute {
            true => match content.attributes.values_mut().nth(dice.up_to(2)) {
                Some(value) => value,
                None => return false,
            },
            false => &mut content.bytes,
        };
        if target.is_empty() {
            return false;
        }
        let at = dice.up_to(target.len());
        target[at] ^= 1 << dice.up_to(8);
        files.into_iter().for_each(|file| {
            if !file.dirty {
                file.safe = file.now.clone();
            }
        });
        true
    }
}

impl FileState {
    fn lose_power(&mut self, dice: &Dice) {
        if self.dirty {
            match dice.up_to(3) {
                0 => self.now = self.safe.clone(),
                1 if !self.spoilt => {}
                _ => self.tear(dice),
            }
        }
        self.safe = self.now.clone();
        (self.dirty, self.spoilt) = (false, false);
    }

    /// Each sector and each attribute made it, or did not.
    fn tear(&mut self, dice: &Dice) {
        let written = std::mem::replace(&mut self.now, self.safe.clone());
        let bytes = &mut self.now.bytes;
        let (before, after) = (bytes.len(), written.bytes.len());
        // A file grows as its blocks arrive. That it is shorter is one change, as of names.
        let length = match dice.up_to(3) {
            0 => before,
            1 if before <= after => dice.between(before as u64, after as u64 + 1) as usize,
            _ => after,
        };
        bytes.resize(length, 0);
        for (old, new) in bytes.chunks_mut(SECTOR).zip(written.bytes.chunks(SECTOR)) {
            if dice.chance(50) {
                let both = old.len().min(new.len());
                old[..both].copy_from_slice(&new[..both]);
            }
        }
        for (name, value) in written.attributes {
            if dice.chance(50) {
                self.now.attributes.insert(name, value);
            }
        }
    }
}
