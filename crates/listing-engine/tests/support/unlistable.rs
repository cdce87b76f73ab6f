//! The machine's file system, where what is below directories of databases cannot be reached while a test says so.

use parking_lot::Mutex;
use std::io;
use std::path::Path;
use std::sync::Arc;
use world::files::{Directory, File, FileInfo, FileSystem, Purpose, Space};
use world::real_files::RealFiles;

/// What opening and looking fail with.
#[derive(Clone, Default)]
pub struct Unlistable(Arc<Mutex<Option<(i32, bool)>>>);

impl Unlistable {
    /// Opening directories fails so; with `all`, whatever is done with a path.
    pub fn fail(&self, number: i32, all: bool) {
        *self.0.lock() = Some((number, all));
    }

    pub fn heal(&self) {
        *self.0.lock() = None;
    }

    fn reached(&self, path: &Path, opens_directory: bool) -> io::Result<()> {
        let is_below = path
            .components()
            .any(|part| ["accounts", "containers"].iter().any(|name| part.as_os_str() == *name));
        match *self.0.lock() {
            Some((number, all)) if is_below && (all || opens_directory) => Err(io::Error::from_raw_os_error(number)),
            _ => Ok(()),
        }
    }
}

impl FileSystem for Unlistable {
    fn open(&self, path: &Path, purpose: Purpose) -> io::Result<Box<dyn File>> {
        self.reached(path, false)?;
        RealFiles.open(path, purpose)
    }

    fn open_unnamed(&self, directory: &Path) -> io::Result<Box<dyn File>> {
        RealFiles.open_unnamed(directory)
    }

    fn open_directory(&self, path: &Path) -> io::Result<Box<dyn Directory>> {
        self.reached(path, true)?;
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
        self.reached(path, false)?;
        RealFiles.info(path)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        RealFiles.space(path)
    }

    fn sync_everything(&self, path: &Path) -> io::Result<()> {
        RealFiles.sync_everything(path)
    }
}
