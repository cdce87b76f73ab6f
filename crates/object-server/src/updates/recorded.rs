//! Rows that the device's intent log holds, from before the change that they follow from until they are sent.
//!
//! A crash in between leaves the entry behind, and the next server makes pending records of it (`object-engine`,
//! `listing_intents.rs`).

use super::ListingRow;
use durable_fs::Intent;
use object_engine::rules::FileName;
use object_engine::{IntendedChange, ObjectEngine, ObjectKey};

/// Rows to be sent.
pub(crate) struct RecordedRows {
    /// Of each change.
    rows: Vec<Vec<ListingRow>>,
    intent: Option<Intent>,
}

impl RecordedRows {
    /// Records the rows of changes that are about to be made, each with the file that the change is. Blocks.
    pub(crate) fn record<'a>(
        engine: &dyn ObjectEngine,
        changes: impl IntoIterator<Item = (&'a ObjectKey, FileName, Vec<ListingRow>)>,
    ) -> Self {
        let (changes, rows): (Vec<_>, Vec<_>) =
            changes.into_iter().map(|(key, file, rows)| ((key, file), rows)).unzip();
        let intent = engine.listing_intents().and_then(|log| {
            let changes = changes.into_iter().zip(&rows);
            let changes: Vec<_> = changes.map(|((key, file), rows)| intended(key, file, rows)).collect();
            log.record(&changes)
        });
        Self { rows, intent }
    }

    /// The change of this number was not made.
    pub(crate) fn drop_change(&mut self, number: usize) {
        if let Some(rows) = self.rows.get_mut(number) {
            rows.clear();
        }
    }

    /// The rows, and the intent, which is to be dropped when they have been sent, or left where they cannot be.
    pub(super) fn into_parts(self) -> (Vec<ListingRow>, Option<Intent>) {
        (self.rows.into_iter().flatten().collect(), self.intent)
    }
}

fn intended<'a>(key: &'a ObjectKey, file: FileName, rows: &'a [ListingRow]) -> IntendedChange<'a> {
    let updates = rows.iter().map(ListingRow::recorded).collect();
    IntendedChange { key, file, updates }
}
