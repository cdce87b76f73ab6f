//! The targets of notifications, as their file says at the time.
//!
//! Always holds: the file is read again every `mtime_check_interval`; while it cannot be read or understood, what it
//! said before counts. Where it has said nothing yet any target may be there: buckets go on with the rules they have,
//! so that no write goes without its event. A file that is not there has no targets.

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
    known: Mutex<KnownTargets>,
}

struct KnownTargets {
    /// When the file was read.
    at: Duration,
    targets: Arc<NotificationTargets>,
    /// Whether it was understood, now or before.
    is_known: bool,
}

impl WatchedTargets {
    /// Of the file in `swift_dir`.
    pub fn new(swift_dir: &Path, world: World) -> Self {
        let path = swift_dir.join(FILE);
        let targets = read(&world, &path);
        let known = Mutex::new(KnownTargets {
            at: world.clock.elapsed(),
            is_known: targets.is_some(),
            targets: Arc::new(targets.unwrap_or_default()),
        });
        Self { path, world, known }
    }

    /// The targets, no older than the file says.
    pub fn now(&self) -> Arc<NotificationTargets> {
        self.look().0
    }

    /// Whether a target is there that does not serve this account: no event of the account's buckets goes there.
    pub(super) fn refuses(&self, name: &str, account: &str) -> bool {
        let targets = self.now();
        targets.targets.get(name).is_some_and(|target| !target.serves(account))
    }

    /// The targets, and whether the file was ever understood.
    fn look(&self) -> (Arc<NotificationTargets>, bool) {
        let mut known = self.known.lock();
        let now = self.world.clock.elapsed();
        if now.saturating_sub(known.at) > known.targets.check_interval {
            known.at = now;
            if let Some(targets) = read(&self.world, &self.path) {
                known.targets = Arc::new(targets);
                known.is_known = true;
            }
        }
        (known.targets.clone(), known.is_known)
    }
}

impl NotificationTargetNames for WatchedTargets {
    fn is_any(&self) -> bool {
        let (targets, is_known) = self.look();
        !is_known || !targets.targets.is_empty()
    }

    fn serves(&self, name: &str, account: &str) -> bool {
        let targets = self.now();
        targets.targets.get(name).is_some_and(|target| target.serves(account))
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

    fn read_at_once(targets: &WatchedTargets) {
        targets.known.lock().targets = Arc::new(NotificationTargets {
            check_interval: Duration::ZERO,
            ..NotificationTargets::default()
        });
    }

    #[test]
    fn a_file_that_was_never_understood_may_have_any_target() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        std::fs::write(&file, "[hook\n").unwrap();
        let targets = WatchedTargets::new(folder.path(), World::real());
        assert!(targets.is_any() && !targets.serves("hook", "a") && !targets.refuses("hook", "a"));
        read_at_once(&targets);
        std::fs::write(&file, "[DEFAULT]\nmtime_check_interval = 0\n").unwrap();
        assert!(!targets.is_any());
        std::fs::write(&file, "[hook\n").unwrap();
        assert!(!targets.is_any());
    }

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
        read_at_once(&targets);
        assert!(targets.is_any() && targets.serves("hook", "a") && !targets.serves("other", "a"));
        std::fs::write(&file, text("b, c")).unwrap();
        assert!(!targets.serves("hook", "a") && targets.serves("hook", "c"));
        assert!(targets.refuses("hook", "a") && !targets.refuses("hook", "c") && !targets.refuses("other", "a"));
        std::fs::write(&file, "[hook\n").unwrap();
        assert!(targets.serves("hook", "c"));
        std::fs::remove_file(&file).unwrap();
        assert!(!targets.is_any());
    }
}
