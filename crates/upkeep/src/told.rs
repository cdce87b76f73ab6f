//! What the log has been told already: a foreign file costs one line, not one in every pass.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// More than that is forgotten, and told again.
const LIMIT: usize = 10_000;

/// Paths that have had their line.
#[derive(Default)]
pub(crate) struct Told(HashSet<PathBuf>);

impl Told {
    /// Whether it is the first time.
    pub(crate) fn first(&mut self, path: &Path) -> bool {
        if self.0.len() >= LIMIT {
            self.0.clear();
        }
        !self.0.contains(path) && self.0.insert(path.to_owned())
    }

    /// Names what does not belong where it is.
    pub(crate) fn foreign(&mut self, who: &str, paths: &[PathBuf]) {
        for path in paths {
            if self.first(path) {
                tracing::warn!("{who}: {} does not belong there; left alone", path.display());
            }
        }
    }
}
