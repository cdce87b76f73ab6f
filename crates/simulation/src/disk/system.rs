//! [`FileSystem`] over the drives: from paths to what they name.

use super::drive::{Drive, FileState, Inode, ROOT, WriteOrder};
use super::handles::{SimDirectory, SimFile};
use super::{EIO, ENOSPC, MOUNTS, NodeDisks, SimFiles};
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path};
use world::files::{Directory, File, FileInfo, FileKind, FileSystem, Glance, Purpose, Space};

const ROOM: u64 = 1 << 40;
/// What the directory of mount points, and a mount point without its drive, are on.
const SYSTEM_DEVICE: u64 = 1;
const EACCES: i32 = 13;
const EXDEV: i32 = 18;

/// A path within a drive.
pub(super) struct DrivePath {
    pub(super) drive: String,
    pub(super) parts: Vec<OsString>,
}

enum Named {
    /// The directory of mount points.
    Mounts,
    Within(DrivePath),
}

fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

fn absent() -> io::Error {
    errno(2)
}

fn named(path: &Path) -> io::Result<Named> {
    let mut parts: Vec<OsString> = vec![];
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_owned()),
            Component::ParentDir => drop(parts.pop()),
            _ => {}
        }
    }
    let mut parts = parts.into_iter();
    if parts.next().is_none_or(|first| first.as_os_str() != &MOUNTS[1..]) {
        return Err(absent());
    }
    Ok(match parts.next() {
        None => Named::Mounts,
        Some(drive) => Named::Within(DrivePath {
            drive: drive.to_string_lossy().into_owned(),
            parts: parts.collect(),
        }),
    })
}

pub(super) fn place(path: &Path) -> io::Result<DrivePath> {
    match named(path)? {
        Named::Mounts => Err(errno(EACCES)),
        Named::Within(place) => Ok(place),
    }
}

impl NodeDisks {
    /// The drive, when it is mounted.
    pub(super) fn mounted(&mut self, name: &str) -> io::Result<&mut Drive> {
        self.drives
            .get_mut(name)
            .filter(|drive| drive.mounted)
            .ok_or_else(absent)
    }
}

impl Drive {
    pub(super) fn find(&self, parts: &[OsString]) -> io::Result<u64> {
        parts.iter().try_fold(ROOT, |at, name| match self.entries(at) {
            None => Err(errno(20)),
            Some(entries) => entries.get(name).copied().ok_or_else(absent),
        })
    }

    /// The directory a path ends in, and the last name.
    fn find_parent(&self, parts: &[OsString]) -> io::Result<(u64, OsString)> {
        let (last, above) = parts.split_last().ok_or_else(|| errno(EACCES))?;
        let directory = self.find(above)?;
        match self.entries(directory) {
            Some(_) => Ok((directory, last.clone())),
            None => Err(errno(20)),
        }
    }

    pub(super) fn file_info(&self, device: u64, inode: u64) -> io::Result<FileInfo> {
        let device = device + (self.plugged << 32);
        let times = |micros: u64| ((micros / 1_000_000) as i64, (micros % 1_000_000 * 1_000) as i64);
        match self.inodes.get(&inode).ok_or_else(absent)? {
            Inode::File(file) => Ok(FileInfo {
                kind: FileKind::File,
                size: file.now.bytes.len() as u64,
                device,
                inode,
                changed: times(file.changed),
                modified: times(file.modified),
            }),
            Inode::Directory { changed, .. } => Ok(FileInfo {
                kind: FileKind::Directory,
                size: 4096,
                device,
                inode,
                changed: times(*changed),
                modified: times(*changed),
            }),
        }
    }

    fn new_file(&mut self, time: u64) -> u64 {
        self.add(Inode::File(FileState {
            changed: time,
            modified: time,
            ..FileState::default()
        }))
    }
}

impl SimFiles {
    pub(super) fn device_number(&self, drive: &str) -> u64 {
        100 + drive.bytes().fold(0, |sum, byte| sum * 31 + u64::from(byte))
    }

    /// Runs `work` on the mounted drive of `path`, as a change called `what`.
    fn change<T>(
        &self,
        what: &str,
        path: &Path,
        work: impl FnOnce(&mut Drive, &DrivePath, u64) -> io::Result<T>,
    ) -> io::Result<T> {
        let (place, time) = (place(path)?, self.tick());
        let mut disks = self.state.lock();
        disks.mounted(&place.drive)?;
        self.step(&mut disks, &place.drive, what, path)?;
        work(disks.mounted(&place.drive)?, &place, time)
    }

    fn handle(&self, disks: &mut NodeDisks, place: DrivePath, path: &Path, inode: u64, appends: bool) -> Box<dyn File> {
        disks.handles += 1;
        let generation = disks.drives.get(&place.drive).map_or(0, |drive| drive.generation);
        Box::new(SimFile {
            files: self.clone(),
            drive: place.drive,
            path: path.to_owned(),
            inode,
            generation,
            number: disks.handles,
            appends,
        })
    }

    /// Names a file that has an inode.
    pub(super) fn link(&self, drive: &str, inode: u64, to: &Path) -> io::Result<()> {
        self.change("link", to, |target, place, time| {
            if place.drive != drive {
                return Err(errno(EXDEV));
            }
            let (directory, name) = target.find_parent(&place.parts)?;
            if target
                .entries(directory)
                .is_some_and(|entries| entries.contains_key(&name))
            {
                return Err(errno(17));
            }
            target.change(vec![(directory, name, Some(inode))], time);
            Ok(())
        })
    }

    pub(super) fn remove_from(&self, what: &str, path: &Path) -> io::Result<()> {
        self.change(what, path, |drive, place, time| {
            let (directory, name) = drive.find_parent(&place.parts)?;
            let inode = drive.find(&place.parts)?;
            if drive.entries(inode).is_some() {
                return Err(errno(21));
            }
            drive.change(vec![(directory, name, None)], time);
            Ok(())
        })
    }
}

impl FileSystem for SimFiles {
    fn open(&self, path: &Path, purpose: Purpose) -> io::Result<Box<dyn File>> {
        let (at, time) = (place(path)?, self.tick());
        let mut disks = self.state.lock();
        disks.mounted(&at.drive)?;
        self.look(&disks, &at.drive)?;
        let drive = disks.mounted(&at.drive)?;
        let makes = matches!(purpose, Purpose::Append | Purpose::Create | Purpose::Lock);
        let inode = match (drive.find(&at.parts), purpose) {
            (Ok(_), Purpose::Create) => return Err(errno(17)),
            (Ok(inode), _) if drive.entries(inode).is_some() => return Err(errno(21)),
            (Ok(inode), _) => inode,
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound && makes => {
                let (directory, name) = drive.find_parent(&at.parts)?;
                self.step(&mut disks, &at.drive, "make", path)?;
                let drive = disks.mounted(&at.drive)?;
                let inode = drive.new_file(time);
                drive.change(vec![(directory, name, Some(inode))], time);
                inode
            }
            (Err(error), _) => return Err(error),
        };
        Ok(self.handle(&mut disks, at, path, inode, purpose == Purpose::Append))
    }

    fn open_unnamed(&self, directory: &Path) -> io::Result<Box<dyn File>> {
        let (at, time) = (place(directory)?, self.tick());
        let mut disks = self.state.lock();
        if disks.all_named {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let drive = disks.mounted(&at.drive)?;
        let found = drive.find(&at.parts)?;
        if drive.entries(found).is_none() {
            return Err(errno(20));
        }
        self.look(&disks, &at.drive)?;
        let inode = disks.mounted(&at.drive)?.new_file(time);
        Ok(self.handle(&mut disks, at, directory, inode, false))
    }

    fn open_directory(&self, path: &Path) -> io::Result<Box<dyn Directory>> {
        let mut disks = self.state.lock();
        let (drive, inode) = match named(path)? {
            Named::Mounts => (None, 0),
            Named::Within(place) => {
                self.look(&disks, &place.drive)?;
                let known = disks.drives.contains_key(&place.drive);
                match disks.mounted(&place.drive) {
                    Ok(drive) => {
                        let inode = drive.find(&place.parts)?;
                        drive.entries(inode).ok_or_else(|| errno(20))?;
                        (Some(place.drive), inode)
                    }
                    // The mount point is there, and empty.
                    Err(_) if known && place.parts.is_empty() => (Some(place.drive), 0),
                    Err(error) => return Err(error),
                }
            }
        };
        let generation = drive
            .as_ref()
            .and_then(|name| disks.drives.get(name))
            .map_or(0, |drive| drive.generation);
        Ok(Box::new(SimDirectory {
            files: self.clone(),
            drive,
            path: path.to_owned(),
            inode,
            generation,
        }))
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        self.change("make directory", path, |drive, place, time| {
            let (directory, name) = drive.find_parent(&place.parts)?;
            if drive
                .entries(directory)
                .is_some_and(|entries| entries.contains_key(&name))
            {
                return Err(errno(17));
            }
            if drive.full {
                return Err(errno(ENOSPC));
            }
            let inode = drive.add(Inode::Directory {
                entries: std::collections::BTreeMap::new(),
                changed: time,
            });
            drive.change(vec![(directory, name, Some(inode))], time);
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let source = place(from)?;
        self.change("rename", to, |drive, target, time| {
            if source.drive != target.drive {
                return Err(errno(EXDEV));
            }
            let inode = drive.find(&source.parts)?;
            let (old_directory, old_name) = drive.find_parent(&source.parts)?;
            let (directory, name) = drive.find_parent(&target.parts)?;
            if let Ok(there) = drive.find(&target.parts) {
                match (drive.entries(inode).is_some(), drive.entries(there)) {
                    (true, Some(entries)) if !entries.is_empty() => return Err(errno(39)),
                    (true, None) => return Err(errno(20)),
                    (false, Some(_)) => return Err(errno(21)),
                    _ => {}
                }
            }
            drive.change(
                vec![(old_directory, old_name, None), (directory, name, Some(inode))],
                time,
            );
            Ok(())
        })
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let is_temporary = path.to_string_lossy().contains("/.martlet-");
        if is_temporary && self.state.lock().keeps_temporaries {
            return Ok(());
        }
        self.remove_from("remove", path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.change("remove directory", path, |drive, place, time| {
            let (directory, name) = drive.find_parent(&place.parts)?;
            let inode = drive.find(&place.parts)?;
            match drive.entries(inode) {
                None => Err(errno(20)),
                Some(entries) if !entries.is_empty() => Err(errno(39)),
                Some(_) => {
                    drive.change(vec![(directory, name, None)], time);
                    Ok(())
                }
            }
        })
    }

    fn info(&self, path: &Path) -> io::Result<FileInfo> {
        let mount_point = |inode| FileInfo {
            kind: FileKind::Directory,
            size: 4096,
            device: SYSTEM_DEVICE,
            inode,
            changed: (0, 0),
            modified: (0, 0),
        };
        let mut disks = self.state.lock();
        if disks.dark {
            return Err(errno(EIO));
        }
        match named(path)? {
            Named::Mounts => Ok(mount_point(2)),
            Named::Within(place) => {
                let known = disks.drives.contains_key(&place.drive);
                match disks.mounted(&place.drive) {
                    Err(_) if known && place.parts.is_empty() => Ok(mount_point(3)),
                    Err(error) => Err(error),
                    Ok(drive) => drive.file_info(self.device_number(&place.drive), drive.find(&place.parts)?),
                }
            }
        }
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let place = place(path)?;
        let mut disks = self.state.lock();
        self.look(&disks, &place.drive)?;
        let full = disks.mounted(&place.drive)?.full;
        Ok(Space {
            total: ROOM,
            available: if full { 0 } else { ROOM / 2 },
            files: 0,
            free_files: 0,
        })
    }

    fn sync_everything(&self, path: &Path) -> io::Result<()> {
        let place = place(path)?;
        let mut disks = self.state.lock();
        self.step(&mut disks, &place.drive, "sync everything on", path)?;
        let drive = disks.mounted(&place.drive)?;
        if drive.failing_syncs > 0 {
            drive.failing_syncs -= 1;
            return Err(errno(EIO));
        }
        drive.sync_everything();
        Ok(())
    }

    fn syncs_ancestors(&self, path: &Path) -> bool {
        let drive = place(path).ok().map(|place| place.drive);
        let disks = self.state.lock();
        drive
            .and_then(|name| disks.drives.get(&name))
            .is_some_and(|drive| drive.order == WriteOrder::Log)
    }

    fn sqlite_vfs(&self) -> Option<&str> {
        self.sqlite.as_ref().map(|mount| mount.vfs())
    }

    fn obeys_any_schema(&self) -> bool {
        self.state.lock().obeys_any_schema
    }

    fn can_glance(&self, _path: &Path) -> bool {
        true
    }

    fn glance(&self, directory: &Path, names: &[String]) -> Option<Glance> {
        let files: Option<Vec<FileInfo>> = names.iter().map(|name| self.info(&directory.join(name)).ok()).collect();
        Some(Glance {
            directory: self.info(directory).ok()?,
            files: files?,
        })
    }
}
