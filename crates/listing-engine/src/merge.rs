//! How two rows of one name become one: the decision tables.
//!
//! Object rows have three parts that age on their own: data (size, etag, deleted), content type
//! and metadata time. Each part comes from the row in which it is newer; on a tie the stored row
//! wins. The content type is respelled on the way (`content_type.rs`). So merging is idempotent, and commutative unless
//! two rows claim the same moment.
//!
//! Container rows keep the newer put and the newer delete timestamp; their counters come from the
//! row that arrived last, because a container reports its counters at any time without a new
//! timestamp. That part is OpenStack's and not commutative; the next report heals it.

use crate::composite::Times;
use crate::content_type::combine;
use crate::row::{ContainerRow, ObjectRow};
use vocabulary::PolicyIndex;

/// An object row as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredObject {
    pub(crate) name: String,
    pub(crate) times: Times,
    pub(crate) size: u64,
    pub(crate) content_type: String,
    pub(crate) etag: String,
    pub(crate) deleted: bool,
    pub(crate) policy: PolicyIndex,
}

impl From<ObjectRow> for StoredObject {
    fn from(row: ObjectRow) -> Self {
        Self {
            times: row.times(),
            name: row.name,
            size: row.size,
            content_type: row.content_type,
            etag: row.etag,
            deleted: row.deleted,
            policy: row.policy,
        }
    }
}

/// `incoming` merged into `stored`; `None` when nothing of it is newer.
pub(crate) fn objects(stored: &StoredObject, incoming: StoredObject) -> Option<StoredObject> {
    let newer_data = incoming.times.data > stored.times.data;
    let newer_type = incoming.times.content_type > stored.times.content_type;
    let newer_meta = incoming.times.meta > stored.times.meta;
    if !(newer_data || newer_type || newer_meta) {
        return None;
    }
    let data = if newer_data { &incoming } else { stored };
    let typed = if newer_type { &incoming } else { stored };
    let content_type = combine(&typed.content_type, &data.content_type);
    Some(StoredObject {
        times: Times {
            data: data.times.data,
            content_type: typed.times.content_type,
            meta: if newer_meta {
                incoming.times.meta
            } else {
                stored.times.meta
            },
        },
        size: data.size,
        etag: data.etag.clone(),
        deleted: data.deleted,
        content_type,
        name: incoming.name,
        policy: incoming.policy,
    })
}

/// A row that met another of its batch and stayed as it was: OpenStack respells its content type even so.
pub(crate) fn respell(row: &mut StoredObject) {
    row.content_type = combine(&row.content_type, &row.content_type);
}

/// `incoming` merged into `stored`.
pub(crate) fn containers(stored: &ContainerRow, incoming: ContainerRow) -> ContainerRow {
    ContainerRow {
        put_timestamp: incoming.put_timestamp.max(stored.put_timestamp),
        delete_timestamp: incoming.delete_timestamp.max(stored.delete_timestamp),
        ..incoming
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vocabulary::Timestamp;

    fn t(seconds: u64) -> Timestamp {
        Timestamp::from_seconds(1_700_000_000 + seconds)
    }

    fn row(data: u64, content_type: u64, meta: u64, label: &str, deleted: bool) -> StoredObject {
        StoredObject {
            name: "o".into(),
            times: Times {
                data: t(data),
                content_type: t(content_type),
                meta: t(meta),
            },
            size: data,
            content_type: label.into(),
            etag: label.into(),
            deleted,
            policy: PolicyIndex(0),
        }
    }

    /// (stored, incoming) → (data of, type of, times, deleted): observed in OpenStack Swift's broker.
    #[test]
    fn one_row_per_decision() {
        let (live, gone) = (false, true);
        let table = [
            // stored a            incoming b            result: etag, type, times, deleted
            ((1, 1, 1, live), (2, 2, 2, live), Some(("b", "b", (2, 2, 2), live))),
            ((2, 2, 2, live), (1, 1, 1, live), None),
            ((2, 2, 2, live), (2, 2, 2, live), None),
            ((2, 2, 2, live), (2, 2, 2, gone), None),
            ((2, 2, 2, gone), (2, 2, 2, live), None),
            ((2, 2, 2, live), (3, 3, 3, gone), Some(("b", "b", (3, 3, 3), gone))),
            ((2, 2, 2, live), (1, 1, 1, gone), None),
            ((2, 2, 2, live), (2, 4, 5, live), Some(("a", "b", (2, 4, 5), live))),
            ((3, 3, 3, live), (2, 4, 5, live), Some(("a", "b", (3, 4, 5), live))),
            ((3, 3, 3, live), (3, 3, 5, live), Some(("a", "a", (3, 3, 5), live))),
            ((2, 4, 5, live), (3, 3, 3, live), Some(("b", "a", (3, 4, 5), live))),
            ((2, 4, 5, live), (6, 6, 6, live), Some(("b", "b", (6, 6, 6), live))),
            ((2, 4, 5, live), (3, 3, 3, gone), Some(("b", "a", (3, 4, 5), gone))),
            ((2, 5, 5, live), (2, 4, 6, live), Some(("a", "a", (2, 5, 6), live))),
            ((2, 4, 4, live), (3, 4, 4, live), Some(("b", "a", (3, 4, 4), live))),
            ((4, 3, 2, live), (5, 4, 3, live), Some(("b", "b", (5, 4, 3), live))),
            ((4, 4, 4, gone), (3, 5, 6, live), Some(("a", "b", (4, 5, 6), gone))),
        ];
        for (a, b, expected) in table {
            let stored = row(a.0, a.1, a.2, "a", a.3);
            let merged = objects(&stored, row(b.0, b.1, b.2, "b", b.3));
            let seen = merged.map(|m| (m.etag, m.content_type, m.times, m.deleted));
            let wanted = expected.map(|(etag, kind, (d, c, m), deleted)| {
                (etag.to_owned(), kind.to_owned(), row(d, c, m, "", live).times, deleted)
            });
            assert_eq!(seen, wanted, "{a:?} {b:?}");
        }
    }

    #[test]
    fn container_rows_keep_the_newest_times_and_the_latest_counters() {
        let at = |put, delete, count| ContainerRow {
            name: "c".into(),
            put_timestamp: t(put),
            delete_timestamp: t(delete),
            object_count: count,
            bytes_used: count,
            policy: PolicyIndex(0),
        };
        // (stored, incoming, result, deleted)
        let table = [
            (at(1, 0, 3), at(1, 0, 5), at(1, 0, 5), false),
            (at(2, 0, 3), at(1, 0, 5), at(2, 0, 5), false),
            (at(2, 0, 3), at(1, 3, 0), at(2, 3, 0), true),
            (at(2, 0, 3), at(1, 3, 5), at(2, 3, 5), false),
            (at(2, 3, 0), at(4, 0, 5), at(4, 3, 5), false),
            (at(2, 3, 0), at(2, 2, 0), at(2, 3, 0), true),
            (at(3, 3, 0), at(2, 2, 0), at(3, 3, 0), false),
        ];
        for (stored, incoming, expected, deleted) in table {
            let merged = containers(&stored, incoming);
            assert_eq!(merged, expected);
            assert_eq!(merged.is_deleted(), deleted, "{merged:?}");
        }
    }

    fn any_row() -> impl Strategy<Value = StoredObject> {
        // Contents follow from the moments, as they do when each write has a moment of its own.
        (0u64..6, 0u64..6, 0u64..6).prop_map(|(data, content_type, meta)| StoredObject {
            etag: format!("e{data}"),
            deleted: data % 3 == 0,
            content_type: match data % 2 {
                0 => format!("type/{content_type}"),
                _ => format!("type/{content_type};swift_bytes={data}"),
            },
            ..row(data, content_type, meta, "", false)
        })
    }

    fn fold(rows: &[StoredObject]) -> StoredObject {
        let mut stored = rows[0].clone();
        for row in &rows[1..] {
            stored = objects(&stored, row.clone()).unwrap_or(stored);
        }
        stored
    }

    proptest! {
        #[test]
        fn order_and_repetition_do_not_matter(rows in proptest::collection::vec(any_row(), 1..6), turn in 0usize..6) {
            let mut other = rows.clone();
            other.rotate_left(turn % rows.len());
            other.extend(rows.iter().rev().cloned());
            prop_assert_eq!(fold(&rows), fold(&other));
        }
    }
}
