//! All drives of this process by their directory: all that work on one drive share its health, however they came to it.

use crate::health::Health;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// The drives that this process works on.
#[derive(Default)]
pub struct Drives(Mutex<BTreeMap<PathBuf, Weak<Health>>>);

impl std::fmt::Debug for Drives {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.lock().keys()).finish()
    }
}

impl Drives {
    /// The health of the drive at `root`; it is known for as long as it is kept.
    pub fn health(&self, root: &Path) -> Arc<Health> {
        let mut known = self.0.lock();
        if let Some(health) = known.get(root).and_then(Weak::upgrade) {
            return health;
        }
        let health = Health::new(root);
        known.insert(root.to_owned(), Arc::downgrade(&health));
        health
    }

    /// Whether the drive at `root` is out of service, as far as is known.
    pub fn is_out(&self, root: &Path) -> bool {
        let known = self.0.lock().get(root).and_then(Weak::upgrade);
        known.is_some_and(|health| health.check().is_err())
    }

    /// Those known now.
    pub fn all(&self) -> Vec<Arc<Health>> {
        let mut known = self.0.lock();
        known.retain(|_, health| health.strong_count() > 0);
        known.values().filter_map(Weak::upgrade).collect()
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
        health.saw(&std::io::Error::from_raw_os_error(19));
        assert!(drives.is_out(Path::new("/srv/sda")));
        drop(health);
        assert!(drives.all().is_empty() && !drives.is_out(Path::new("/srv/sda")));
    }
}
