//! Where passes ended among the rows that had failed before.
//!
//! Always holds: no more than [`MOST`] containers are remembered, in memory alone; one that is not begins anew.

use parking_lot::Mutex;
use std::collections::HashMap;

/// Containers that are remembered.
const MOST: usize = 10_000;

/// By the id of a database, the last row that was seen to.
#[derive(Default)]
pub(super) struct BrokenOff(Mutex<HashMap<String, i64>>);

impl BrokenOff {
    pub(super) fn note(&self, id: &str, row: i64) {
        let mut rows = self.0.lock();
        if rows.len() >= MOST {
            rows.clear();
        }
        rows.insert(id.to_owned(), row);
    }

    /// Where to go on; the pass after that begins anew unless it says so again.
    pub(super) fn take(&self, id: &str) -> Option<i64> {
        self.0.lock().remove(id)
    }
}
