//! A drive that hangs costs a replicator that drive and no other.

use crate::common::{Log, pass};
use crate::site::{Site, names};
use durable_fs::Drives;
use parking_lot::RwLock;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use upkeep::Disks;
use world::World;
use world::files::{Directory, File, FileInfo, FileSystem, Purpose, Space};
use world::real_files::RealFiles;

/// The machine's file system, in which listing what is in a partition below `drive` waits for a lock.
struct Hanging {
    drive: PathBuf,
    lock: Arc<RwLock<()>>,
    begun: Arc<AtomicUsize>,
}

impl FileSystem for Hanging {
    fn open_directory(&self, path: &Path) -> io::Result<Box<dyn Directory>> {
        let below = path.strip_prefix(&self.drive);
        if below.is_ok_and(|below| below.components().count() > 1) {
            self.begun.fetch_add(1, Ordering::SeqCst);
            drop(self.lock.read());
        }
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

#[allow(clippy::await_holding_lock, reason = "the drive hangs while the passes go on")]
#[tokio::test]
async fn the_pass_goes_on_with_the_other_drives_and_says_so_once() {
    let site = Site::new();
    let names = names(40);
    for name in &names {
        let nodes = site.nodes(name);
        // The replica that lacks it is brought it by the first of the others.
        for node in nodes[..3].iter().filter(|node| *node != "sd3") {
            site.put(node, name, 1, b"content").await;
        }
    }
    let on_lost: Vec<&String> = names
        .iter()
        .filter(|name| site.nodes(name)[..3].contains(&"sd3".into()))
        .collect();
    assert!(!on_lost.is_empty() && site.content("sd3").is_empty());
    let (lock, begun) = (Arc::new(RwLock::new(())), Arc::new(AtomicUsize::new(0)));
    let drive = site.dir.path().join("sd1");
    let files = Hanging {
        drive: drive.join("objects"),
        lock: lock.clone(),
        begun: begun.clone(),
    };
    let world = World {
        files: Arc::new(files),
        ..World::real()
    };
    let drives = Arc::new(Drives::default());
    let health = drives.health(&drive);
    let disks = Disks::new(world, site.dir.path(), false).watched(drives);
    let mut replicator = site.replicator_on(disks, |options| options.handoffs_first = false);
    let hang = lock.write();
    // What the watch of the drives does, sooner: seconds pass once the drive hangs, and trials do not end.
    let seconds = async {
        loop {
            tokio::time::sleep(Duration::from_millis(10)).await;
            if begun.load(Ordering::SeqCst) > 0 {
                health.tick();
            }
        }
    };
    let (log, _listening) = Log::listen();
    let passes = async {
        let first = pass(&mut replicator).await;
        assert!(first.0 > 0 && first.1 > 0, "{first:?}");
        let lines = log.lines("sd1");
        // That it is out of service, and how many partitions wait for that.
        assert_eq!(lines.len(), 2, "{lines:?}");
        let second = pass(&mut replicator).await;
        assert_eq!(second.1, 0, "{second:?}");
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), async {
        tokio::select! {
            () = seconds => false,
            () = passes => true,
        }
    });
    assert_eq!(ended.await, Ok(true), "the pass waits for the drive");
    drop(hang);
    let content = site.content("sd3");
    for name in on_lost {
        let hash = site.hash.object("a", "c", name).hex();
        assert!(content.keys().any(|path| path.starts_with(&hash)), "{name}");
    }
}
