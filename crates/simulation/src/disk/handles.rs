//! Open files and directories. A handle of an earlier generation of its drive answers EIO.

use super::drive::{Drive, FileState, ROOT};
use super::{EIO, ENOSPC, NodeDisks, SimFiles, SqliteSyncs};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use world::files::{Directory, File, FileInfo, Purpose};

const ENODATA: i32 = 61;
const ERANGE: i32 = 34;

pub(super) struct SimFile {
    pub(super) files: SimFiles,
    pub(super) drive: String,
    pub(super) path: PathBuf,
    pub(super) inode: u64,
    pub(super) generation: u64,
    pub(super) number: u64,
    pub(super) appends: bool,
}

pub(super) struct SimDirectory {
    pub(super) files: SimFiles,
    /// None for the directory of mount points.
    pub(super) drive: Option<String>,
    pub(super) path: PathBuf,
    /// 0 for a mount point without its drive.
    pub(super) inode: u64,
    pub(super) generation: u64,
}

fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

fn alive<'a>(disks: &'a mut NodeDisks, name: &str, generation: u64) -> io::Result<&'a mut Drive> {
    let drive = disks
        .drives
        .get_mut(name)
        .filter(|drive| drive.mounted && drive.generation == generation);
    drive.ok_or_else(|| errno(EIO))
}

impl SimFile {
    fn read<T>(&self, work: impl FnOnce(&FileState) -> io::Result<T>) -> io::Result<T> {
        let mut disks = self.files.state.lock();
        self.files.look(&disks, &self.drive)?;
        let drive = alive(&mut disks, &self.drive, self.generation)?;
        work(drive.file(self.inode).ok_or_else(|| errno(EIO))?)
    }

    /// Whether the sync of this file, which SQLite asks for, does not happen.
    fn is_skipped(&self, syncs: SqliteSyncs) -> bool {
        match syncs {
            SqliteSyncs::All => false,
            SqliteSyncs::NotOfJournals => self.path.to_string_lossy().ends_with("-journal"),
            SqliteSyncs::None => true,
        }
    }

    fn change(&self, what: &str, work: impl FnOnce(&mut FileState, u64)) -> io::Result<()> {
        let mut disks = self.files.state.lock();
        let full = alive(&mut disks, &self.drive, self.generation)?.full;
        if disks
            .forgets
            .is_some_and(|part| self.path.to_string_lossy().contains(part))
        {
            return Ok(());
        }
        self.files.step(&mut disks, &self.drive, what, &self.path)?;
        if full {
            return Err(errno(ENOSPC));
        }
        let time = self.files.tick();
        let file = alive(&mut disks, &self.drive, self.generation)?
            .file(self.inode)
            .ok_or_else(|| errno(EIO))?;
        work(file, time);
        file.dirty = true;
        file.changed = time;
        Ok(())
    }
}

impl File for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read(|file| {
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            let rest = file.now.bytes.get(from..).unwrap_or_default();
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        })
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.change("write", |file, time| {
            let content = &mut file.now.bytes;
            let at = if self.appends { content.len() } else { offset as usize };
            content.resize(content.len().max(at + bytes.len()), 0);
            content[at..at + bytes.len()].copy_from_slice(bytes);
            file.modified = time;
        })
    }

    fn sync(&self) -> io::Result<()> {
        let mut disks = self.files.state.lock();
        alive(&mut disks, &self.drive, self.generation)?;
        self.files.step(&mut disks, &self.drive, "sync", &self.path)?;
        if self.files.sqlite.is_none() && self.is_skipped(disks.sqlite_syncs) {
            return Ok(());
        }
        let drive = alive(&mut disks, &self.drive, self.generation)?;
        if drive.failing_syncs > 0 {
            drive.failing_syncs -= 1;
            drive.spoil(self.inode);
            return Err(errno(EIO));
        }
        drive.sync_file(self.inode);
        Ok(())
    }

    fn info(&self) -> io::Result<FileInfo> {
        let mut disks = self.files.state.lock();
        self.files.look(&disks, &self.drive)?;
        alive(&mut disks, &self.drive, self.generation)?.file_info(self.files.device_number(&self.drive), self.inode)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.change("set length", |file, time| {
            file.now.bytes.resize(length as usize, 0);
            file.modified = time;
        })
    }

    fn allocate(&self, _length: u64) -> io::Result<()> {
        self.read(|_| Ok(()))?;
        let mut disks = self.files.state.lock();
        match alive(&mut disks, &self.drive, self.generation)?.full {
            true => Err(errno(ENOSPC)),
            false => Ok(()),
        }
    }

    fn forget_cached(&self, _offset: u64, _length: u64) -> io::Result<()> {
        Ok(())
    }

    fn get_attribute(&self, name: &str, buffer: &mut [u8]) -> io::Result<usize> {
        self.read(|file| {
            let value = file.now.attributes.get(name).ok_or_else(|| errno(ENODATA))?;
            let room = buffer.get_mut(..value.len()).ok_or_else(|| errno(ERANGE))?;
            room.copy_from_slice(value);
            Ok(value.len())
        })
    }

    fn attribute_length(&self, name: &str) -> io::Result<usize> {
        self.read(|file| {
            file.now
                .attributes
                .get(name)
                .map(Vec::len)
                .ok_or_else(|| errno(ENODATA))
        })
    }

    fn set_attribute(&self, name: &str, value: &[u8]) -> io::Result<()> {
        self.change("set attribute", |file, _| {
            file.now.attributes.insert(name.to_owned(), value.to_vec());
        })
    }

    fn link(&self, to: &Path) -> io::Result<()> {
        alive(&mut self.files.state.lock(), &self.drive, self.generation)?;
        self.files.link(&self.drive, self.inode, to)
    }

    /// No other task can release it while this one waits, so that waiting would be in vain.
    fn lock(&self, _wait: Duration) -> io::Result<()> {
        let mut disks = self.files.state.lock();
        self.files.look(&disks, &self.drive)?;
        let file = alive(&mut disks, &self.drive, self.generation)?
            .file(self.inode)
            .ok_or_else(|| errno(EIO))?;
        match file.locked_by {
            Some(holder) if holder != self.number => Err(io::ErrorKind::TimedOut.into()),
            _ => {
                file.locked_by = Some(self.number);
                Ok(())
            }
        }
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut disks = self.files.state.lock();
        if let Ok(drive) = alive(&mut disks, &self.drive, self.generation)
            && let Some(file) = drive.file(self.inode)
            && file.locked_by == Some(self.number)
        {
            file.locked_by = None;
        }
    }
}

impl Directory for SimDirectory {
    fn list(&self, each: &mut dyn FnMut(&OsStr)) -> io::Result<()> {
        let names: Vec<OsString> = {
            let mut disks = self.files.state.lock();
            match &self.drive {
                None => disks.drives.keys().map(OsString::from).collect(),
                Some(_) if self.inode == 0 => vec![],
                Some(name) => {
                    self.files.look(&disks, name)?;
                    let drive = alive(&mut disks, name, self.generation)?;
                    drive
                        .entries(self.inode)
                        .into_iter()
                        .flat_map(|e| e.keys().cloned())
                        .collect()
                }
            }
        };
        // No order is promised, so none is given that helps.
        let turn = self.files.dice.up_to(names.len());
        names
            .iter()
            .skip(turn)
            .chain(names.iter().take(turn))
            .for_each(|name| each(name));
        Ok(())
    }

    fn open_directory(&self, path: &Path) -> io::Result<Box<dyn Directory>> {
        world::files::FileSystem::open_directory(&self.files, &self.path.join(path))
    }

    fn make_directory(&self, name: &OsStr) -> io::Result<()> {
        world::files::FileSystem::make_directory(&self.files, &self.path.join(name))
    }

    fn is_mount_point(&self) -> io::Result<bool> {
        let Some(name) = &self.drive else { return Ok(false) };
        let mut disks = self.files.state.lock();
        alive(&mut disks, name, self.generation).map(|_| self.inode == ROOT)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        world::files::FileSystem::open(&self.files, &self.path.join(name), Purpose::Read)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.remove_from("remove", &self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        let Some(name) = &self.drive else { return Ok(()) };
        let mut disks = self.files.state.lock();
        alive(&mut disks, name, self.generation)?;
        self.files.step(&mut disks, name, "sync directory", &self.path)?;
        let drive = alive(&mut disks, name, self.generation)?;
        if drive.failing_syncs > 0 {
            drive.failing_syncs -= 1;
            return Err(errno(EIO));
        }
        drive.sync_directory(self.inode);
        Ok(())
    }

    fn sync_everything(&self) -> io::Result<()> {
        let Some(name) = &self.drive else { return Ok(()) };
        let mut disks = self.files.state.lock();
        alive(&mut disks, name, self.generation)?;
        self.files.step(&mut disks, name, "sync everything on", &self.path)?;
        let drive = alive(&mut disks, name, self.generation)?;
        if drive.failing_syncs > 0 {
            drive.failing_syncs -= 1;
            drive.spoil_everything();
            return Err(errno(EIO));
        }
        drive.sync_everything();
        Ok(())
    }

    fn info(&self) -> io::Result<FileInfo> {
        let Some(name) = &self.drive else {
            return world::files::FileSystem::info(&self.files, &self.path);
        };
        let mut disks = self.files.state.lock();
        self.files.look(&disks, name)?;
        alive(&mut disks, name, self.generation)?.file_info(self.files.device_number(name), self.inode)
    }
}
