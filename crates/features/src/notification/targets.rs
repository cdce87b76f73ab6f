//! The targets of notifications, as their file says at the time.
//!
//! Always holds: the file is read again every `mtime_check_interval`; while it cannot be read or understood, what it
//! said before counts. A file that is not there has no targets.

use parking_lot::Mutex;
use s3::NotificationTargetNames;
use settings::notification_targets::{FILE, NotificationTargets};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use world::World;

/// Bytes of the file.
const MAX_FILE: u64 = 1 << 20;

/// What the file says.
pub struct WatchedTargets {
    path: PathBuf,
    world: World,
    /// And when it was read.
    known: Mutex<(Duration, Arc<NotificationTargets>)>,
}

impl WatchedTargets {
    /// Of the file in `swift_dir`.
    pub fn new(swift_dir: &Path, world: World) -> Self {
        let path = swift_dir.join(FILE);
        let targets = Arc::new(read(&world, &path).unwrap_or_default());
        let known = Mutex::new((world.clock.elapsed(), targets));
        Self { path, world, known }
    }

    /// The targets, no older than the file says.
    pub fn now(&self) -> Arc<NotificationTargets> {
        let mut known = self.known.lock();
        let now = self.world.clock.elapsed();
        if now.saturating_sub(known.0) > known.1.check_interval {
            known.0 = now;
            if let Some(targets) = read(&self.world, &self.path) {
                known.1 = Arc::new(targets);
            }
        }
        known.1.clone()
    }
}

impl NotificationTargetNames for WatchedTargets {
    fn is_any(&self) -> bool {
        !self.now().targets.is_empty()
    }

    fn serves(&self, name: &str, account: &str) -> bool {
        let targets = self.now();
        let target = targets.targets.get(name);
        target.is_some_and(|target| target.accounts.is_empty() || target.accounts.iter().any(|own| own == account))
    }
}

/// `None` when it cannot be read, or is not what it should be.
fn read(world: &World, path: &Path) -> Option<NotificationTargets> {
    let bytes = match world.files.read(path, MAX_FILE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(NotificationTargets::default()),
        Err(error) => {
            tracing::error!("could not read {}: {error}", path.display());
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    NotificationTargets::parse(path, &text)
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
        let targets = WatchedTargets::new(folder.path(), World::real());
        assert!(!targets.is_any());
        let text = |accounts: &str| {
            format!("[DEFAULT]\nmtime_check_interval = 0\n[hook]\nurl = http://h/\naccounts = {accounts}\n")
        };
        std::fs::write(&file, text("")).unwrap();
        targets.known.lock().1 = Arc::new(NotificationTargets {
            check_interval: Duration::ZERO,
            ..NotificationTargets::default()
        });
        assert!(targets.is_any() && targets.serves("hook", "a") && !targets.serves("other", "a"));
        std::fs::write(&file, text("b, c")).unwrap();
        assert!(!targets.serves("hook", "a") && targets.serves("hook", "c"));
        std::fs::write(&file, "[hook\n").unwrap();
        assert!(targets.serves("hook", "c"));
        std::fs::remove_file(&file).unwrap();
        assert!(!targets.is_any());
    }
}
