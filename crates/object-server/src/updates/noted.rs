//! Rows that the device has a note of, from before the change that they tell of until they are told.
//!
//! A server that is killed in between leaves the note behind, and the next one makes pending records of it (`object-engine`,
//! `under_way.rs`).

use super::Row;
use durable_fs::Note;
use object_engine::rules::FileName;
use object_engine::{NotedChange, ObjectEngine, ObjectKey};

/// Rows to be told.
pub(crate) struct Noted {
    /// Of each change.
    rows: Vec<Vec<Row>>,
    note: Option<Note>,
}

impl Noted {
    /// Notes the rows of a change that is about to be made: `file` of the object is to be there. Blocks.
    pub(crate) fn take(engine: &dyn ObjectEngine, key: &ObjectKey, file: FileName, rows: Vec<Row>) -> Self {
        Self::take_all(engine, [(key, file, rows)])
    }

    /// Likewise for many changes. Blocks.
    pub(crate) fn take_all<'a>(
        engine: &dyn ObjectEngine,
        changes: impl IntoIterator<Item = (&'a ObjectKey, FileName, Vec<Row>)>,
    ) -> Self {
        let under_way = engine.under_way();
        let (mut all, mut noted) = (Vec::with_capacity(1), Vec::with_capacity(1));
        for (key, file, rows) in changes {
            if under_way.is_some() {
                let updates = rows.iter().map(|row| row.pending(None)).collect();
                noted.push(NotedChange { key, file, updates });
            }
            all.push(rows);
        }
        Self {
            rows: all,
            note: under_way.and_then(|under_way| under_way.note(&noted)),
        }
    }

    /// Of the changes that were given, this one has not come about.
    pub(crate) fn pass_over(&mut self, number: usize) {
        if let Some(rows) = self.rows.get_mut(number) {
            rows.clear();
        }
    }

    /// The rows, and the note, which is to be dropped when they have been told.
    pub(super) fn into_parts(self) -> (Vec<Row>, Option<Note>) {
        (self.rows.into_iter().flatten().collect(), self.note)
    }

    /// Where nothing was changed.
    pub(crate) fn nothing() -> Self {
        Self {
            rows: vec![],
            note: None,
        }
    }
}
