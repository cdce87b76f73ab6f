//! A ring's file: read at start, and again when it has changed.
//!
//! Always holds: a change is never missed, whenever it comes, because what a file was like is noted before it is read;
//! a file that could not be read is tried again at each look, and reported once for each state of it.

use crate::failure::CommandFailure;
use placement::Ring;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file, and what it was like.
pub struct RingFile {
    path: PathBuf,
    /// When it was read last.
    read: Option<FileState>,
    /// When reading it failed last, if that was later.
    failed: Option<Option<FileState>>,
}

/// Tells one state of a file from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    inode: (u64, u64),
    length: u64,
    modified: (i64, i64),
    /// Permissions change nothing else.
    changed: (i64, i64),
}

impl FileState {
    fn of(path: &Path) -> Option<Self> {
        let state = |info: Metadata| Self {
            inode: (info.dev(), info.ino()),
            length: info.len(),
            modified: (info.mtime(), info.mtime_nsec()),
            changed: (info.ctime(), info.ctime_nsec()),
        };
        std::fs::metadata(path).ok().map(state)
    }
}

impl RingFile {
    /// Not read yet.
    pub fn new(path: PathBuf) -> Self {
        let (read, failed) = (None, None);
        Self { path, read, failed }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it.
    pub fn read(&mut self) -> Result<Ring, CommandFailure> {
        let state = FileState::of(&self.path);
        let read = read(&self.path);
        (self.read, self.failed) = match read {
            Ok(_) => (state, None),
            Err(_) => (self.read, Some(state)),
        };
        read
    }

    /// Reads it if it is another one than was read last; `None` as well where that fails as it did before.
    pub fn read_again(&mut self) -> Option<Result<Ring, CommandFailure>> {
        let state = FileState::of(&self.path);
        let is_reported = self.failed == Some(state);
        if self.failed.is_none() && state == self.read {
            return None;
        }
        let read = self.read();
        (read.is_ok() || !is_reported).then_some(read)
    }
}

fn read(path: &Path) -> Result<Ring, CommandFailure> {
    let bytes = std::fs::read(path).map_err(CommandFailure::io("read the ring", path))?;
    Ring::from_bytes(&bytes).map_err(|error| CommandFailure::Ring {
        path: path.to_owned(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement::{Device, RingBuilder};
    use std::fs;

    fn ring() -> Vec<u8> {
        let mut builder = RingBuilder::new(3, 1.0, 0).unwrap();
        let device = Device {
            region: 1,
            zone: 1,
            weight: 1.0,
            ip: "127.0.0.1".into(),
            port: 6200,
            device: "sda".into(),
            ..Device::default()
        };
        builder.add(device).unwrap();
        builder.rebalance(7, 0).unwrap();
        builder.to_ring().unwrap().to_bytes_v1().unwrap()
    }

    #[test]
    fn every_change_is_noticed_and_every_failure_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("object.ring.gz");
        let mut file = RingFile::new(path.clone());
        assert!(file.read().is_err());
        fs::write(&path, ring()).unwrap();
        assert!(matches!(file.read_again(), Some(Ok(_))));
        assert!(file.read_again().is_none());
        // With the time of the one before.
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, "rubbish").unwrap();
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(modified)
            .unwrap();
        assert!(matches!(file.read_again(), Some(Err(_))));
        assert!(file.read_again().is_none());
        // As after a passing error of the drive: the same state, which can be read now.
        fs::write(&path, ring()).unwrap();
        file.failed = Some(FileState::of(&path));
        assert!(matches!(file.read_again(), Some(Ok(_))));
        fs::remove_file(&path).unwrap();
        assert!(matches!(file.read_again(), Some(Err(_))));
        assert!(file.read_again().is_none());
    }
}
