//! The realms of container sync, as their file says at the time: keys and clusters are exchanged while all run.
//!
//! The gateway's `container_sync`, the container server and container-sync each keep one.
//! Always holds: the file is read again every `mtime_check_interval`; while it is away, or cannot be read or
//! understood, what it said before counts.

use parking_lot::Mutex;
use settings::realms::{FILE, Realms};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use world::World;

/// Bytes of the file.
const MAX_FILE: u64 = 1 << 20;

/// What the file says.
pub struct SyncRealms {
    path: PathBuf,
    world: World,
    /// And when it was read.
    known: Mutex<(Duration, Arc<Realms>)>,
}

impl SyncRealms {
    /// Of the file in `swift_dir`.
    pub fn new(swift_dir: &Path, world: World) -> Self {
        let path = swift_dir.join(FILE);
        let realms = Arc::new(read(&world, &path).unwrap_or_default());
        let known = Mutex::new((world.clock.elapsed(), realms));
        Self { path, world, known }
    }

    /// The realms, no older than the file says.
    pub fn now(&self) -> Arc<Realms> {
        let mut known = self.known.lock();
        let now = self.world.clock.elapsed();
        if now.saturating_sub(known.0) > known.1.check_interval {
            known.0 = now;
            if let Some(mut realms) = read(&self.world, &self.path) {
                if realms.realms.is_empty() && !known.1.realms.is_empty() {
                    tracing::warn!("{}: there is no realm any more", self.path.display());
                    // Perhaps it is being written: its own interval may be to come, too.
                    realms.check_interval = realms.check_interval.min(known.1.check_interval);
                }
                known.1 = Arc::new(realms);
            }
        }
        known.1.clone()
    }
}

/// `None` when it is not there or not what it should be.
fn read(world: &World, path: &Path) -> Option<Realms> {
    let bytes = match world.files.read(path, MAX_FILE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::error!("could not read {}: {error}", path.display());
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    Realms::parse(path, &text)
        .inspect_err(|error| tracing::error!("{error}"))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_file_counts_and_an_unreadable_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        let text = |key: &str| format!("[DEFAULT]\nmtime_check_interval = 0\n[US]\nkey = {key}\n");
        std::fs::write(&file, text("old")).unwrap();
        let realms = SyncRealms::new(folder.path(), World::real());
        let key = || realms.now().get("us").and_then(|realm| realm.key.clone());
        assert_eq!(key().as_deref(), Some("old"));
        std::fs::write(&file, text("new")).unwrap();
        assert_eq!(key().as_deref(), Some("new"));
        // Read while it was written anew.
        std::fs::write(&file, "").unwrap();
        assert_eq!(key(), None);
        std::fs::write(&file, text("new")).unwrap();
        assert_eq!(key().as_deref(), Some("new"));
        std::fs::write(&file, "[US\n").unwrap();
        assert_eq!(key().as_deref(), Some("new"));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(key().as_deref(), Some("new"));
    }
}
