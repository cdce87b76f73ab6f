//! Paths that the log has named already: a foreign file costs one line, not one in every pass.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// More paths than that are forgotten, and named again.
const LIMIT: usize = 10_000;

/// Paths that have had their line.
#[derive(Default)]
pub(crate) struct LoggedPaths(HashSet<PathBuf>);

impl LoggedPaths {
    /// Whether it is the first time.
    pub(crate) fn is_first(&mut self, path: &Path) -> bool {
        if self.0.len() >= LIMIT {
            self.0.clear();
        }
        !self.0.contains(path) && self.0.insert(path.to_owned())
    }

    /// Logs what does not belong where it is.
    pub(crate) fn log_foreign(&mut self, daemon: &str, paths: &[PathBuf]) {
        for path in paths {
            if self.is_first(path) {
                tracing::warn!("{daemon}: {} does not belong there; left alone", path.display());
            }
        }
    }
}
