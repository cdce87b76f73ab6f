//! A file system with one database in it, on which every change succeeds and none is made.
//!
//! Its files are `<32 zeros>.db`, `<32 zeros>_<epoch>.db` and `<32 zeros>.db.pending` in the place where a broker looks
//! for them; each stands for the real file whose name has the database's own stem there.
//! Always holds: of the real files only contents are read.

use super::{Excerpt, Waiting};
use crate::row::Row;
use crate::{Error, Kind, pending};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use world::files::{Databases, Directory, File, FileInfo, FileKind, FileSystem, Purpose, Space};

/// The device on which the database seems to lie.
pub(super) const ROOT: &str = "/look";
const STEM: &str = "00000000000000000000000000000000";
/// As much as a broker reads of a pending file.
const LARGEST_PENDING: u64 = 1 << 30;

/// See the module.
pub(super) struct Untouched {
    real: Arc<dyn FileSystem>,
    kind: Kind,
    directory: PathBuf,
    /// What the real names begin with.
    stem: String,
    /// The real files by the names they have here.
    names: Vec<(String, PathBuf)>,
    pending: Vec<u8>,
    /// Whether what waits has been taken.
    taken: Arc<AtomicBool>,
    images: Mutex<HashMap<PathBuf, Vec<u8>>>,
}

impl Untouched {
    /// All files of the database that `path` belongs to.
    pub(super) fn newest(real: Arc<dyn FileSystem>, kind: Kind, path: &Path, waiting: Waiting) -> Result<Self, Error> {
        let mut made = Self::empty(real, kind, path);
        let listed = made.real.open_directory(&made.directory).and_then(|directory| {
            let mut names = vec![];
            directory.list(&mut |name| names.extend(name.to_str().map(str::to_owned)))?;
            Ok(names)
        });
        for name in listed.map_err(|error| Error::io("list", &made.directory, error))? {
            if let Some(rest) = name.strip_prefix(&made.stem)
                && rest.ends_with(".db")
                && (rest == ".db" || rest.starts_with('_'))
            {
                made.names.push((format!("{STEM}{rest}"), made.directory.join(&name)));
            }
        }
        if waiting == Waiting::Counts {
            let file = made.directory.join(format!("{}.db.pending", made.stem));
            made.pending = match made.real.read(&file, LARGEST_PENDING) {
                Err(error) if error.kind() == ErrorKind::NotFound => vec![],
                other => other.map_err(|error| Error::io("read", &file, error))?,
            };
        }
        made.checked(path)
    }

    /// This file alone.
    pub(super) fn exactly(real: Arc<dyn FileSystem>, kind: Kind, path: &Path) -> Result<Self, Error> {
        let mut made = Self::empty(real, kind, path);
        made.names.push((format!("{STEM}.db"), path.to_owned()));
        made.checked(path)
    }

    fn empty(real: Arc<dyn FileSystem>, kind: Kind, path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.strip_suffix(".db").unwrap_or(&name);
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        Self {
            real,
            kind,
            directory: parent.unwrap_or(Path::new(".")).to_owned(),
            stem: stem.split('_').next().unwrap_or_default().to_owned(),
            names: vec![],
            pending: vec![],
            taken: Arc::default(),
            images: Mutex::default(),
        }
    }

    /// Takes the images, so that errors come now and name the real files.
    fn checked(mut self, path: &Path) -> Result<Self, Error> {
        if self.names.is_empty() {
            // A file with a name of its own is its database all the same.
            self.names.push((format!("{STEM}.db"), path.to_owned()));
        }
        let rows = pending::decode(self.kind, &self.pending).rows;
        // Of one name several rows may wait; what they replace is wanted once.
        let names: BTreeSet<String> = rows.into_iter().map(name_of).collect();
        for (name, real) in &self.names {
            let taken = Excerpt {
                kind: self.kind,
                path: real,
                names: &names,
            };
            let image = taken.take()?;
            self.images.get_mut().insert(PathBuf::from(name), image);
        }
        Ok(self)
    }

    fn images(&self) -> MutexGuard<'_, HashMap<PathBuf, Vec<u8>>> {
        self.images.lock()
    }

    fn waiting(&self) -> &[u8] {
        match self.taken.load(Ordering::Relaxed) {
            true => &[],
            false => &self.pending,
        }
    }
}

fn name_of(row: Row) -> String {
    match row {
        Row::Object(row) => row.name,
        Row::Container(row) => row.name,
    }
}

fn file_name(path: &Path) -> PathBuf {
    PathBuf::from(path.file_name().unwrap_or_default())
}

fn described(kind: FileKind, size: u64) -> FileInfo {
    FileInfo {
        kind,
        size,
        device: 0,
        inode: 0,
        changed: (0, 0),
        modified: (0, 0),
    }
}

impl FileSystem for Untouched {
    fn open(&self, path: &Path, purpose: Purpose) -> io::Result<Box<dyn File>> {
        let name = file_name(path);
        let content = match (purpose, name.extension().is_some_and(|it| it == "pending")) {
            (Purpose::Read | Purpose::ReadHere, true) => self.waiting().to_vec(),
            _ => vec![],
        };
        Ok(Box::new(Pretended {
            content,
            taken: self.taken.clone(),
        }))
    }

    fn open_unnamed(&self, _: &Path) -> io::Result<Box<dyn File>> {
        Err(ErrorKind::Unsupported.into())
    }

    fn open_directory(&self, _: &Path) -> io::Result<Box<dyn Directory>> {
        let names = self.names.iter().map(|(name, _)| name.into()).collect();
        Ok(Box::new(Names(names)))
    }

    fn make_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove_file(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn info(&self, path: &Path) -> io::Result<FileInfo> {
        let name = file_name(path);
        if name.extension().is_some_and(|it| it == "pending") {
            return Ok(described(FileKind::File, self.waiting().len() as u64));
        }
        if name.extension().is_none_or(|it| it != "db") {
            return Ok(described(FileKind::File, 0));
        }
        let image = self.images();
        let image = image.get(&name).ok_or(ErrorKind::NotFound)?;
        Ok(described(FileKind::File, image.len() as u64))
    }

    fn space(&self, _: &Path) -> io::Result<Space> {
        Err(ErrorKind::Unsupported.into())
    }

    fn sync_everything(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn databases(&self) -> Option<&dyn Databases> {
        Some(self)
    }
}

impl Databases for Untouched {
    fn load(&self, path: &Path) -> io::Result<Vec<u8>> {
        let images = self.images();
        images.get(&file_name(path)).cloned().ok_or(ErrorKind::NotFound.into())
    }

    fn commit(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.images().insert(file_name(path), content.to_vec());
        Ok(())
    }
}

/// The names in the database's directory.
struct Names(Vec<OsString>);

impl Directory for Names {
    fn list(&self, each: &mut dyn FnMut(&OsStr)) -> io::Result<()> {
        self.0.iter().for_each(|name| each(name));
        Ok(())
    }

    fn make_directory(&self, _: &OsStr) -> io::Result<()> {
        Ok(())
    }

    fn is_mount_point(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn open(&self, _: &str) -> io::Result<Box<dyn File>> {
        Err(ErrorKind::Unsupported.into())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A file that can be read, and whose changes lead nowhere but to the end of what waits.
struct Pretended {
    content: Vec<u8>,
    taken: Arc<AtomicBool>,
}

impl File for Pretended {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.content.len());
        let read = buffer.len().min(self.content.len() - from);
        buffer[..read].copy_from_slice(&self.content[from..from + read]);
        Ok(read)
    }

    fn write_all_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn info(&self) -> io::Result<FileInfo> {
        Ok(described(FileKind::File, self.content.len() as u64))
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        self.taken.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn allocate(&self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn forget_cached(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn get_attribute(&self, _: &str, _: &mut [u8]) -> io::Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }

    fn attribute_length(&self, _: &str) -> io::Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }

    fn set_attribute(&self, _: &str, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn link(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, _: Duration) -> io::Result<()> {
        Ok(())
    }
}
