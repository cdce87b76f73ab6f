//! Devices whose directories do not answer.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use super::*;
use parking_lot::RwLock;
use std::path::Path;
use vocabulary::Timestamp;
use world::files::{Directory, File, FileInfo, FileSystem, Purpose, Space};
use world::real_files::RealFiles;
use world::{BoxFuture, Clock};

/// The machine's file system, in which a question about one directory waits for a lock.
struct Hanging {
    directory: PathBuf,
    lock: Arc<RwLock<()>>,
}

impl FileSystem for Hanging {
    fn info(&self, path: &Path) -> io::Result<FileInfo> {
        if path == self.directory {
            drop(self.lock.read());
        }
        RealFiles.info(path)
    }
    fn open_directory(&self, path: &Path) -> io::Result<Box<dyn Directory>> {
        RealFiles.open_directory(path)
    }
    fn open(&self, path: &Path, purpose: Purpose) -> io::Result<Box<dyn File>> {
        RealFiles.open(path, purpose)
    }
    fn open_unnamed(&self, directory: &Path) -> io::Result<Box<dyn File>> {
        RealFiles.open_unnamed(directory)
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
    fn space(&self, path: &Path) -> io::Result<Space> {
        RealFiles.space(path)
    }
    fn sync_everything(&self, path: &Path) -> io::Result<()> {
        RealFiles.sync_everything(path)
    }
}

/// A clock on which what is waited for takes a hundredth of the time.
struct Quick(Arc<dyn Clock>);

impl Clock for Quick {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(duration / 100)
    }
}

#[tokio::test]
async fn one_that_hangs_is_left_out_until_it_answers() {
    let root = tempfile::tempdir().unwrap();
    for name in ["sda", "sdb", "sdc"] {
        std::fs::create_dir(root.path().join(name)).unwrap();
    }
    let lock = Arc::new(RwLock::new(()));
    let real = World::real();
    let world = World {
        files: Arc::new(Hanging {
            directory: root.path().join("sdb"),
            lock: lock.clone(),
        }),
        clock: Arc::new(Quick(real.clock.clone())),
        ..real
    };
    let mut disks = Disks::new(world, root.path(), false);
    let names = async |disks: &mut Disks| {
        let mut names = disks.names().await;
        names.sort();
        names.join(" ")
    };
    assert_eq!(names(&mut disks).await, "sda sdb sdc");
    let hangs = Box::new(lock.write());
    for _ in 0..2 {
        assert_eq!(names(&mut disks).await, "sda sdc");
        assert_eq!(disks.left_out(), 1);
    }
    drop(hangs);
    while names(&mut disks).await != "sda sdb sdc" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(disks.left_out(), 0);
}
