//! The machine's file system, of which a test sees the steps in which long files are written back.

use parking_lot::Mutex;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use world::files::{Directory, File, FileInfo, FileSystem, Purpose, Space};
use world::real_files::RealFiles;

type Hook = Box<dyn FnMut(Step) + Send>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// So many bytes are written back.
    WriteBack(u64),
    /// A file is synced.
    Sync,
}

/// Calls what is set for each step.
#[derive(Clone, Default)]
pub struct Stepped(Arc<Mutex<Option<Hook>>>);

impl Stepped {
    pub fn set(&self, hook: impl FnMut(Step) + Send + 'static) {
        *self.0.lock() = Some(Box::new(hook));
    }

    /// What the hook itself does is not reported.
    fn step(&self, step: Step) {
        let hook = self.0.lock().take();
        if let Some(mut hook) = hook {
            hook(step);
            self.0.lock().get_or_insert(hook);
        }
    }
}

impl FileSystem for Stepped {
    fn open(&self, path: &Path, purpose: Purpose) -> io::Result<Box<dyn File>> {
        let file = RealFiles.open(path, purpose)?;
        let steps = self.clone();
        Ok(Box::new(SteppedFile { file, steps }))
    }

    fn open_unnamed(&self, directory: &Path) -> io::Result<Box<dyn File>> {
        RealFiles.open_unnamed(directory)
    }

    fn open_directory(&self, path: &Path) -> io::Result<Box<dyn Directory>> {
        RealFiles.open_directory(path)
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        RealFiles.make_directory(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
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

    fn space(&self, path: &Path) -> io::Result<Space> {
        RealFiles.space(path)
    }

    fn sync_everything(&self, path: &Path) -> io::Result<()> {
        RealFiles.sync_everything(path)
    }
}

struct SteppedFile {
    file: Box<dyn File>,
    steps: Stepped,
}

impl File for SteppedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.steps.step(Step::Sync);
        self.file.sync()
    }

    fn info(&self) -> io::Result<FileInfo> {
        self.file.info()
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.file.allocate(length)
    }

    fn forget_cached(&self, offset: u64, length: u64) -> io::Result<()> {
        self.steps.step(Step::WriteBack(length));
        self.file.forget_cached(offset, length)
    }

    fn get_attribute(&self, name: &str, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.get_attribute(name, buffer)
    }

    fn attribute_length(&self, name: &str) -> io::Result<usize> {
        self.file.attribute_length(name)
    }

    fn set_attribute(&self, name: &str, value: &[u8]) -> io::Result<()> {
        self.file.set_attribute(name, value)
    }

    fn link(&self, to: &Path) -> io::Result<()> {
        self.file.link(to)
    }

    fn lock(&self, wait: Duration) -> io::Result<()> {
        self.file.lock(wait)
    }
}
