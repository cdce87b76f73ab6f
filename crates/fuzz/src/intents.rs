//! Logs of listing updates under way, as a crash or a damaged drive leaves them on an object device.

use durable_fs::{IntentLog, StorageDevice};
use object_engine::PendingUpdates;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use vocabulary::Timestamp;
use world::World;

/// Of the object that is there: what the seeds are about.
const THERE: &str = "objects/9/303/03030303030303030303030303030303/1700000000.00000.data";

/// A log: its bytes as they are when the first of all is odd, otherwise one record whose mark, length and checksum are
/// right. Whatever it says, it is worked off once, and what is made of it are records that the updater reads or
/// quarantines.
pub(crate) fn intent_log(bytes: &[u8]) {
    thread_local! {
        static DEVICE: OnceCell<TempDir> = const { OnceCell::new() };
    }
    DEVICE.with(|device| {
        let root = device.get_or_init(device_with_an_object).path();
        // Whatever the one before has left, of any policy.
        for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
            if entry.file_name() != "objects" {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        leave(root, bytes);
        work_off(root);
    });
}

/// Panics where no files can be made: then there is nothing to fuzz.
#[expect(clippy::expect_used, reason = "a machine without temporary folders cannot fuzz")]
fn device_with_an_object() -> TempDir {
    let memory = Path::new("/dev/shm");
    let device = match memory.is_dir() {
        true => TempDir::new_in(memory),
        false => TempDir::new(),
    };
    let device = device.expect("a temporary folder");
    write(&device.path().join(THERE), b"x");
    device
}

#[expect(clippy::expect_used, reason = "a machine without temporary folders cannot fuzz")]
fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap_or(path)).expect("a folder");
    std::fs::write(path, bytes).expect("a file");
}

fn leave(root: &Path, bytes: &[u8]) {
    match bytes.split_first() {
        Some((first, rest)) if first % 2 == 1 => write(&log_of_another(root), rest),
        first => {
            let world = World::real();
            let device = StorageDevice::new(world.files.clone(), world.random.clone(), root);
            // Dropped with its record standing, as by a server that is killed.
            drop(IntentLog::new(device, root.join("tmp")).take(first.map_or(bytes, |(_, rest)| rest)));
        }
    }
}

fn log_of_another(root: &Path) -> PathBuf {
    root.join("tmp/.updates-0123456789abcdef.pending")
}

fn work_off(root: &Path) {
    let pending = PendingUpdates::new(&World::real(), root, false);
    let Ok(made) = pending.recover() else { return };
    assert_eq!(pending.recover().ok(), Some(0), "it is worked off");
    let mut found = 0;
    for suffix in pending.suffixes().unwrap_or_default() {
        let records = pending.records(&suffix, Timestamp::from_seconds(1_700_000_000));
        let (newest, outdated) = records.unwrap_or_default();
        found += newest.len() + usize::try_from(outdated).unwrap_or(usize::MAX);
        for record in newest {
            assert!(pending.load(&record).is_ok(), "{record:?}");
        }
    }
    // Those that cannot be read are in quarantine.
    assert!(found <= made, "{found} records, {made} made");
}
