//! All drives of this process by their directory: all that work on one drive share its health, however they came to it.
//!
//! Always holds: the table has at most twice as many entries as drives that are in use, and [`FEW`].

use crate::health::Health;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// Entries that are not worth a sweep.
const FEW: usize = 64;

/// The drives that this process works on.
#[derive(Default)]
pub struct Drives(Mutex<KnownDrives>);

#[derive(Default)]
struct KnownDrives {
    by_root: BTreeMap<PathBuf, Weak<Health>>,
    /// Entries that were in use when unused ones were last forgotten.
    swept: usize,
}

impl KnownDrives {
    fn get(&self, root: &Path) -> Option<Arc<Health>> {
        self.by_root.get(root).and_then(Weak::upgrade)
    }

    /// Forgets drives that nothing works on.
    fn sweep(&mut self) {
        self.by_root.retain(|_, health| health.strong_count() > 0);
        self.swept = self.by_root.len();
    }
}

impl std::fmt::Debug for Drives {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.lock().by_root.keys()).finish()
    }
}

impl Drives {
    /// The health of the drive at `root`; it is known for as long as it is kept.
    pub fn health(&self, root: &Path) -> Arc<Health> {
        let mut known = self.0.lock();
        if let Some(health) = known.get(root) {
            return health;
        }
        // Names of drives come with requests, and need not be those of any.
        if known.by_root.len() >= (2 * known.swept).max(FEW) {
            known.sweep();
        }
        let health = Health::new(root);
        known.by_root.insert(root.to_owned(), Arc::downgrade(&health));
        health
    }

    /// Whether the drive at `root` is out of service, as far as is known.
    pub fn is_out(&self, root: &Path) -> bool {
        let known = self.0.lock().get(root);
        known.is_some_and(|health| health.check().is_err())
    }

    /// Those known now.
    pub fn all(&self) -> Vec<Arc<Health>> {
        let mut known = self.0.lock();
        known.sweep();
        known.by_root.values().filter_map(Weak::upgrade).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_is_known_while_its_health_is_kept() {
        let drives = Drives::default();
        let health = drives.health(Path::new("/srv/sda"));
        assert!(Arc::ptr_eq(&health, &drives.health(Path::new("/srv/sda"))));
        assert_eq!(drives.all().len(), 1);
        health.tick();
        health.saw(health.root(), &std::io::Error::from_raw_os_error(19));
        assert!(drives.is_out(Path::new("/srv/sda")));
        drop(health);
        assert!(drives.all().is_empty() && !drives.is_out(Path::new("/srv/sda")));
    }

    #[test]
    fn any_number_of_names_takes_little_room() {
        let drives = Drives::default();
        let kept: Vec<_> = (0..100)
            .map(|number| drives.health(Path::new(&format!("/srv/d{number}"))))
            .collect();
        for number in 0..10_000 {
            drop(drives.health(Path::new(&format!("/srv/unknown-{number}"))));
            assert!(drives.0.lock().by_root.len() <= 2 * kept.len());
        }
        assert_eq!(drives.all().len(), kept.len());
    }
}
