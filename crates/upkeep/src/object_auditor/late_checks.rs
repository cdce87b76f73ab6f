//! What a pass of the auditor keeps of its search for late rows: where it searches, and where nothing was left out.
//!
//! Always holds: a directory counts as searched after a boot only when the pass is over and all in it could be read.
//! Deliberately absent: the search (`late_rows.rs`).

use super::late_rows::LateRows;
use super::{AuditedDevice, NAME};
use std::path::PathBuf;
use std::sync::Arc;
use world::World;

/// The searches of a pass.
#[derive(Default)]
pub(super) struct LateChecks {
    current: Option<Arc<LateRows>>,
    /// The current one last.
    directories: Vec<SearchedDirectory>,
}

/// A policy's directory on a device.
struct SearchedDirectory {
    device: AuditedDevice,
    directory: PathBuf,
    rows: Arc<LateRows>,
    /// Something there could not be looked at.
    is_incomplete: bool,
}

impl LateChecks {
    /// The walk has come to a directory, where `rows` are searched for, if any are.
    pub(super) fn begin(&mut self, device: &AuditedDevice, directory: PathBuf, rows: Option<LateRows>) {
        self.current = rows.map(Arc::new);
        self.directories
            .extend(self.current.clone().map(|rows| SearchedDirectory {
                device: device.clone(),
                directory,
                rows,
                is_incomplete: false,
            }));
    }

    /// The search that the walk is in.
    pub(super) fn current(&self) -> Option<Arc<LateRows>> {
        self.current.clone()
    }

    /// Something in the current directory could not be looked at.
    pub(super) fn miss(&mut self) {
        if self.current.is_some()
            && let Some(searched) = self.directories.last_mut()
        {
            searched.is_incomplete = true;
        }
    }

    /// The pass is over.
    pub(super) async fn conclude(self, world: &World) {
        for searched in self.directories {
            let (rows, directory) = (searched.rows, searched.directory);
            if rows.kept() > 0 {
                let (kept, place) = (rows.kept(), directory.display());
                tracing::info!(
                    "{NAME}: {place}: {kept} listing rows from before the machine's last boot are sent again"
                );
            }
            if searched.is_incomplete {
                continue;
            }
            let world = world.clone();
            let recorded = searched.device.run(move |_| {
                rows.boot.record(&world, &directory);
                Ok(())
            });
            // What fails has been logged.
            let _ = recorded.await;
        }
    }
}
