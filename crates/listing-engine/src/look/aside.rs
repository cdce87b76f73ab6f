//! A database with its journal, copied to where SQLite may recover it.
//!
//! A writer that was killed amid a transaction leaves a journal that is rolled back when the database is opened next,
//! and one in WAL mode makes files even for readers. Both change what is only looked at; so the copy is recovered, in a
//! directory of its own that no other user can enter and that goes away with it.
//!
//! No lock is taken: one that would hold off a server's recovery could make other readers believe that the journal is a
//! live writer's. Instead the journal is read before the database and again after: it is complete before any page of
//! the database is overwritten, and recovery overwrites the same pages with the same content however far it has come.
//! So a journal that stayed the same mends whatever was copied between; one that changed means that a writer is there.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What SQLite keeps beside a database until its transactions are whole.
const JOURNALS: [&str; 2] = ["-journal", "-wal"];
/// Where a database's header says which way it is written and read, and what WAL mode is there.
const MODES: (u64, u8) = (18, 2);
/// The copy may take up one part in so many of what is free where it is made.
const SHARE_OF_FREE: u64 = 2;
/// How much is compared at once.
const PIECE: usize = 1 << 20;

/// See the module.
pub(super) struct Aside {
    directory: TempDir,
}

impl Aside {
    /// The copy, or none if the database was changed meanwhile.
    pub(super) fn copy(database: &Path) -> io::Result<Option<Self>> {
        Self::copy_while(database, || ())
    }

    fn copy_while(database: &Path, between: impl FnOnce()) -> io::Result<Option<Self>> {
        let directory = tempfile::Builder::new().prefix("martlet-look-").tempdir()?;
        let made = Self { directory };
        made.refuse_without_room(database)?;
        for suffix in JOURNALS {
            copy_if_there(&beside(database, suffix), &beside(&made.path(), suffix))?;
        }
        fs::copy(database, made.path())?;
        between();
        for suffix in JOURNALS {
            if !are_same(&beside(database, suffix), &beside(&made.path(), suffix))? {
                return Ok(None);
            }
        }
        Ok(Some(made))
    }

    /// The copied database.
    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join("copy.db")
    }

    fn refuse_without_room(&self, database: &Path) -> io::Result<()> {
        let mut wanted = fs::metadata(database)?.len();
        for suffix in JOURNALS {
            wanted += fs::metadata(beside(database, suffix)).map_or(0, |info| info.len());
        }
        let space = rustix::fs::statvfs(self.directory.path())?;
        match wanted <= space.f_bavail.saturating_mul(space.f_frsize) / SHARE_OF_FREE {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "its unfinished transaction has to be undone in a copy, for whose {wanted} bytes {} \
                 has too little room (set TMPDIR)",
                self.directory.path().parent().unwrap_or(Path::new("/")).display()
            ))),
        }
    }
}

/// Whether SQLite writes beside the database even to read it.
pub(super) fn is_in_wal_mode(database: &Path) -> bool {
    let (place, wal) = MODES;
    let mut modes = [0; 2];
    let read = File::open(database).and_then(|file| file.read_exact_at(&mut modes, place));
    read.is_ok() && modes.contains(&wal)
}

fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// A pipe of that name is not waited for.
fn open_if_there(path: &Path) -> io::Result<Option<File>> {
    match if_there(fs::metadata(path))? {
        None => Ok(None),
        Some(info) if info.is_file() => if_there(File::open(path)),
        Some(_) => Err(io::Error::other(format!("{} is no file", path.display()))),
    }
}

fn copy_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match open_if_there(from)? {
        None => Ok(()),
        Some(mut from) => io::copy(&mut from, &mut File::create_new(to)?).map(|_| ()),
    }
}

/// Whether both are there with the same content, or neither.
fn are_same(one: &Path, other: &Path) -> io::Result<bool> {
    let (Some(mut one), Some(mut other)) = (open_if_there(one)?, open_if_there(other)?) else {
        return Ok(one.exists() == other.exists());
    };
    loop {
        let (mut here, mut there) = (vec![], vec![]);
        one.by_ref().take(PIECE as u64).read_to_end(&mut here)?;
        other.by_ref().take(PIECE as u64).read_to_end(&mut there)?;
        if here != there || here.is_empty() {
            return Ok(here == there);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    #[test]
    fn a_journal_that_changed_meanwhile_makes_no_copy() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("a.db");
        let journal = directory.path().join("a.db-journal");
        fs::write(&database, "pages").unwrap();
        fs::write(&journal, "before").unwrap();
        let copy = |between: &dyn Fn()| Aside::copy_while(&database, between).unwrap();
        let made = copy(&|| ()).expect("nothing came between");
        assert_eq!(fs::read(made.path()).unwrap(), b"pages");
        assert_eq!(fs::read(beside(&made.path(), "-journal")).unwrap(), b"before");
        let place = made.path();
        drop(made);
        assert!(!place.parent().unwrap().exists(), "the copy stays behind");
        assert!(copy(&|| fs::write(&journal, "behind").unwrap()).is_none());
        assert!(copy(&|| fs::remove_file(&journal).unwrap()).is_none());
        assert!(copy(&|| fs::write(&journal, "new").unwrap()).is_none());
        fs::write(&journal, vec![7; PIECE + 1]).unwrap();
        assert!(copy(&|| ()).is_some());
        assert!(copy(&|| fs::write(&journal, vec![7; PIECE]).unwrap()).is_none());
        fs::remove_file(&journal).unwrap();
        mknodat(CWD, &journal, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(Aside::copy(&database).is_err(), "a pipe is not waited for");
    }
}
