//! The machine's file system with a recorder in between: what happened, in its order, and planted failures.

use parking_lot::Mutex;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use world::files::{Directory, File, FileInfo, FileSystem, Purpose, Space};
use world::real_files::RealFiles;

/// What happened, and which step is to fail with which error.
#[derive(Default)]
pub struct Script {
    pub steps: Vec<String>,
    pub fail: Option<(&'static str, i32)>,
    pub named_only: bool,
    /// What opening anything fails with.
    pub opening: Option<i32>,
    /// The next directory that a file is begun in is taken away before the kernel has begun it.
    pub taken_away: bool,
}

/// The machine's file system; every change that is asked of it is a step.
#[derive(Clone, Default)]
pub struct Recorder(pub Arc<Mutex<Script>>);

impl Recorder {
    fn step(&self, what: &'static str, path: &Path) -> io::Result<()> {
        let mut script = self.0.lock();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        script.steps.push(format!("{what} {name}"));
        match script.fail {
            Some((step, errno)) if step == what => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }

    fn opened(&self) -> io::Result<()> {
        let number = self.0.lock().opening;
        number.map_or(Ok(()), |number| Err(io::Error::from_raw_os_error(number)))
    }

    /// What has happened since this was asked last.
    pub fn steps(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().steps)
    }
}

struct Watched<T: ?Sized> {
    inner: Box<T>,
    path: PathBuf,
    recorder: Recorder,
}

impl File for Watched<dyn File> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buffer, offset)
    }
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.recorder.step("write", &self.path)?;
        self.inner.write_all_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        self.recorder.step("sync", &self.path)?;
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
        self.inner.forget_cached(offset, length)
    }
    fn get_attribute(&self, name: &str, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.get_attribute(name, buffer)
    }
    fn attribute_length(&self, name: &str) -> io::Result<usize> {
        self.inner.attribute_length(name)
    }
    fn set_attribute(&self, name: &str, value: &[u8]) -> io::Result<()> {
        self.recorder.step("attribute", &self.path)?;
        self.inner.set_attribute(name, value)
    }
    fn link(&self, to: &Path) -> io::Result<()> {
        self.recorder.step("link", to)?;
        self.inner.link(to)
    }
    fn lock(&self, wait: Duration) -> io::Result<()> {
        self.inner.lock(wait)
    }
}

impl Directory for Watched<dyn Directory> {
    fn list(&self, each: &mut dyn FnMut(&OsStr)) -> io::Result<()> {
        self.inner.list(each)
    }
    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.inner.open(name)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }
    fn sync(&self) -> io::Result<()> {
        self.recorder.step("sync-directory", &self.path)?;
        self.inner.sync()
    }
    fn sync_everything(&self) -> io::Result<()> {
        self.recorder.step("sync-everything", &self.path)?;
        self.inner.sync_everything()
    }
}

impl FileSystem for Recorder {
    fn open(&self, path: &Path, purpose: Purpose) -> io::Result<Box<dyn File>> {
        self.opened()?;
        let (inner, path) = (RealFiles.open(path, purpose)?, path.to_owned());
        Ok(Box::new(Watched {
            inner,
            path,
            recorder: self.clone(),
        }))
    }
    fn open_unnamed(&self, directory: &Path) -> io::Result<Box<dyn File>> {
        if self.0.lock().named_only {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.opened()?;
        let taken_away = std::mem::take(&mut self.0.lock().taken_away);
        let inner = match taken_away {
            true => begin_in_removed(directory)?,
            false => RealFiles.open_unnamed(directory)?,
        };
        let path = PathBuf::from("new");
        Ok(Box::new(Watched {
            inner,
            path,
            recorder: self.clone(),
        }))
    }
    fn open_directory(&self, path: &Path) -> io::Result<Box<dyn Directory>> {
        self.opened()?;
        let (inner, path) = (RealFiles.open_directory(path)?, path.to_owned());
        Ok(Box::new(Watched {
            inner,
            path,
            recorder: self.clone(),
        }))
    }
    fn make_directory(&self, path: &Path) -> io::Result<()> {
        self.step("make", path)?;
        RealFiles.make_directory(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step("rename", to)?;
        RealFiles.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        RealFiles.remove_file(path)
    }
    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        RealFiles.remove_directory(path)
    }
    fn info(&self, path: &Path) -> io::Result<FileInfo> {
        RealFiles.info(path)
    }
    fn sync_everything(&self, path: &Path) -> io::Result<()> {
        self.step("sync-all", path)?;
        self.opened()?;
        RealFiles.sync_everything(path)
    }
    fn space(&self, path: &Path) -> io::Result<Space> {
        RealFiles.space(path)
    }
}

/// What the kernel answers to a file without a name in a directory that was taken away after it was looked up.
fn begin_in_removed(directory: &Path) -> io::Result<Box<dyn File>> {
    std::fs::create_dir_all(directory)?;
    let open = std::fs::File::open(directory)?;
    std::fs::remove_dir(directory)?;
    RealFiles.open_unnamed(Path::new(&format!("/proc/self/fd/{}", open.as_raw_fd())))
}
