//! Rows that the device's intent log holds, from before the change that they follow from until they are sent.
//!
//! A crash in between leaves the entry behind, and the next server makes pending records of it (`object-engine`,
//! `listing_intents.rs`).

use super::ListingRow;
use durable_fs::Intent;
use object_engine::rules::FileName;
use object_engine::{IntendedChange, ObjectEngine, ObjectKey};

/// Rows to be sent.
pub(crate) struct NotedRows {
    /// Of each change.
    rows: Vec<Vec<ListingRow>>,
    note: Option<Intent>,
}

impl NotedRows {
    /// Notes the rows of changes that are about to be made, each with the file that the change is. Blocks.
    pub(crate) fn note<'a>(
        engine: &dyn ObjectEngine,
        changes: impl IntoIterator<Item = (&'a ObjectKey, FileName, Vec<ListingRow>)>,
    ) -> Self {
        let under_way = engine.listing_intents();
        let (mut all, mut noted) = (Vec::with_capacity(1), Vec::with_capacity(1));
        for (key, file, rows) in changes {
            if under_way.is_some() {
                let updates = rows.iter().map(|row| row.pending(None)).collect();
                noted.push(IntendedChange { key, file, updates });
            }
            all.push(rows);
        }
        Self {
            rows: all,
            note: under_way.and_then(|under_way| under_way.record(&noted)),
        }
    }

    /// The change of this number was not made.
    pub(crate) fn drop_change(&mut self, number: usize) {
        if let Some(rows) = self.rows.get_mut(number) {
            rows.clear();
        }
    }

    /// The rows, and the note, which is to be dropped when they have been sent.
    pub(super) fn into_parts(self) -> (Vec<ListingRow>, Option<Intent>) {
        (self.rows.into_iter().flatten().collect(), self.note)
    }
}
