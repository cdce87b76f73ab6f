//! The machine's file system, where objects' directories cannot be opened while a test says so.

use parking_lot::Mutex;
use std::io;
use std::path::Path;
use std::sync::Arc;
use world::files::{Directory, File, FileInfo, FileSystem, Purpose, Space};
use world::real_files::RealFiles;

/// What opening fails with.
#[derive(Clone, Default)]
pub struct Unopenable(Arc<Mutex<Option<i32>>>);

impl Unopenable {
    pub fn fail(&self, number: Option<i32>) {
        *self.0.lock() = number;
    }

    fn opened(&self, path: &Path) -> io::Result<()> {
        match *self.0.lock() {
            Some(number) if path.components().any(|part| part.as_os_str() == "objects") => {
                Err(io::Error::from_raw_os_error(number))
            }
            _ => Ok(()),
        }
    }
}

impl FileSystem for Unopenable {
    fn open(&self, path: &Path, purpose: Purpose) -> io::Result<Box<dyn File>> {
        self.opened(path)?;
        RealFiles.open(path, purpose)
    }
    fn open_unnamed(&self, directory: &Path) -> io::Result<Box<dyn File>> {
        self.opened(directory)?;
        RealFiles.open_unnamed(directory)
    }
    fn open_directory(&self, path: &Path) -> io::Result<Box<dyn Directory>> {
        self.opened(path)?;
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
    fn sync_everything(&self, path: &Path) -> io::Result<()> {
        RealFiles.sync_everything(path)
    }
    fn space(&self, path: &Path) -> io::Result<Space> {
        RealFiles.space(path)
    }
}
