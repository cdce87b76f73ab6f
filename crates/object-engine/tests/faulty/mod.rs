//! The machine's file system with planted faults.

use parking_lot::Mutex;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use world::files::{Directory, File, FileInfo, FileSystem, Purpose, Space};
use world::real_files::RealFiles;

const EIO: i32 = 5;

#[derive(Default)]
struct Plan {
    fail: Option<(&'static str, i32)>,
    crash_after: Option<usize>,
    steps: usize,
    forgotten: u64,
    named_only: bool,
    unreadable: Option<(PathBuf, i32)>,
    full: bool,
}

/// The machine's file system with planted faults. Changes are steps: `make`, `write`, `attribute`,
/// `sync`, `sync everything`, `link`, `append`, `rename`, `remove`.
#[derive(Clone, Default)]
pub struct Faulty(Arc<Mutex<Plan>>);

impl Faulty {
    /// Lets every `step` fail with `errno`.
    pub fn fail(&self, step: &'static str, errno: i32) {
        self.0.lock().fail = Some((step, errno));
    }

    /// Leaves no room.
    pub fn fill(&self) {
        self.0.lock().full = true;
    }

    /// Ends all faults.
    pub fn heal(&self) {
        *self.0.lock() = Plan::default();
    }

    /// Lets that many more steps happen and then none.
    pub fn crash_after(&self, steps: usize) {
        let mut plan = self.0.lock();
        plan.steps = 0;
        plan.crash_after = Some(steps);
    }

    /// Whether the crash came.
    pub fn crashed(&self) -> bool {
        let plan = self.0.lock();
        plan.crash_after.is_some_and(|limit| plan.steps > limit)
    }

    /// Bytes that were to leave the page cache since this was asked last.
    pub fn forgotten(&self) -> u64 {
        std::mem::take(&mut self.0.lock().forgotten)
    }

    /// Makes unnamed files impossible.
    pub fn named_only(&self, yes: bool) {
        self.0.lock().named_only = yes;
    }

    /// Makes a directory impossible to open.
    pub fn unreadable(&self, directory: PathBuf) {
        self.unreadable_for(directory, EIO);
    }

    /// The same, for this reason.
    pub fn unreadable_for(&self, directory: PathBuf, errno: i32) {
        self.0.lock().unreadable = Some((directory, errno));
    }

    fn readable(&self, directory: &Path) -> io::Result<()> {
        match &self.0.lock().unreadable {
            Some((path, errno)) if path == directory => Err(io::Error::from_raw_os_error(*errno)),
            _ => Ok(()),
        }
    }

    fn step(&self, what: &'static str) -> io::Result<()> {
        let mut plan = self.0.lock();
        plan.steps += 1;
        match plan.fail {
            _ if plan.crash_after.is_some_and(|limit| plan.steps > limit) => Err(io::Error::from_raw_os_error(EIO)),
            Some((step, errno)) if step == what => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }

    fn file(&self, inner: Box<dyn File>, appends: bool) -> Box<dyn File> {
        Box::new(FaultyFile {
            inner,
            faults: self.clone(),
            appends,
        })
    }
}

struct FaultyFile {
    inner: Box<dyn File>,
    faults: Faulty,
    appends: bool,
}

struct FaultyDirectory {
    inner: Box<dyn Directory>,
    path: PathBuf,
    faults: Faulty,
}

impl File for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buffer, offset)
    }
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.faults.step(if self.appends { "append" } else { "write" })?;
        self.inner.write_all_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        self.faults.step("sync")?;
        self.inner.sync()
    }
    fn info(&self) -> io::Result<FileInfo> {
        self.inner.info()
    }
    fn set_len(&self, length: u64) -> io::Result<()> {
        self.inner.set_len(length)
    }
    fn allocate(&self, length: u64) -> io::Result<()> {
        self.inner.allocate(length)
    }
    fn forget_cached(&self, offset: u64, length: u64) -> io::Result<()> {
        self.faults.0.lock().forgotten += length;
        self.inner.forget_cached(offset, length)
    }
    fn get_attribute(&self, name: &str, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.get_attribute(name, buffer)
    }
    fn attribute_length(&self, name: &str) -> io::Result<usize> {
        self.inner.attribute_length(name)
    }
    fn set_attribute(&self, name: &str, value: &[u8]) -> io::Result<()> {
        self.faults.step("attribute")?;
        self.inner.set_attribute(name, value)
    }
    fn link(&self, to: &Path) -> io::Result<()> {
        self.faults.step("link")?;
        self.inner.link(to)
    }
    fn lock(&self, wait: Duration) -> io::Result<()> {
        self.inner.lock(wait)
    }
}

impl Directory for FaultyDirectory {
    fn list(&self, each: &mut dyn FnMut(&OsStr)) -> io::Result<()> {
        self.inner.list(each)
    }
    fn open_directory(&self, path: &Path) -> io::Result<Box<dyn Directory>> {
        let whole = self.path.join(path);
        self.faults.readable(&whole)?;
        Ok(Box::new(FaultyDirectory {
            inner: self.inner.open_directory(path)?,
            path: whole,
            faults: self.faults.clone(),
        }))
    }
    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        Ok(self.faults.file(self.inner.open(name)?, false))
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.faults.step("remove")?;
        self.inner.remove(name)
    }
    fn sync(&self) -> io::Result<()> {
        self.faults.step("sync")?;
        self.inner.sync()
    }
    fn sync_everything(&self) -> io::Result<()> {
        self.faults.step("sync")?;
        self.inner.sync_everything()
    }
}

impl FileSystem for Faulty {
    fn open(&self, path: &Path, purpose: Purpose) -> io::Result<Box<dyn File>> {
        if purpose == Purpose::Create {
            self.step("make")?;
        }
        Ok(self.file(RealFiles.open(path, purpose)?, purpose == Purpose::Append))
    }
    fn open_unnamed(&self, directory: &Path) -> io::Result<Box<dyn File>> {
        if self.0.lock().named_only {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(self.file(RealFiles.open_unnamed(directory)?, false))
    }
    fn open_directory(&self, path: &Path) -> io::Result<Box<dyn Directory>> {
        self.readable(path)?;
        let inner = RealFiles.open_directory(path)?;
        Ok(Box::new(FaultyDirectory {
            inner,
            path: path.to_owned(),
            faults: self.clone(),
        }))
    }
    fn make_directory(&self, path: &Path) -> io::Result<()> {
        self.step("make")?;
        RealFiles.make_directory(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step("rename")?;
        RealFiles.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.step("remove")?;
        RealFiles.remove_file(path)
    }
    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.step("remove")?;
        RealFiles.remove_directory(path)
    }
    fn info(&self, path: &Path) -> io::Result<FileInfo> {
        RealFiles.info(path)
    }
    fn sync_everything(&self, path: &Path) -> io::Result<()> {
        self.step("sync everything")?;
        RealFiles.sync_everything(path)
    }
    fn space(&self, path: &Path) -> io::Result<Space> {
        let mut space = RealFiles.space(path)?;
        if self.0.lock().full {
            space.available = 0;
        }
        Ok(space)
    }
}
