//! Which files of a hash directory count, and what their metadata mean together.
//!
//! A hash directory holds any of `<timestamp>.data` (a PUT), `<timestamp>.meta` (a POST; with a
//! content type of its own `<timestamp><±delta>.meta`), `<timestamp>.ts` (a DELETE). Any set of them
//! may be found: crashes, races and replication mix freely. [`choose`] is the table that decides,
//! tested against OpenStack Swift's answers for every pair and many larger sets (`tests/table.rs`).
//! Always holds: the answer does not depend on order; what is not understood is left alone.

use crate::metadata::ObjectMetadata;
use std::str::FromStr;
use vocabulary::Timestamp;
use vocabulary::object_lock::{LEGAL_HOLD, ObjectLock, RETENTION};
use vocabulary::timestamp::{decode_series, encode_series};

/// What a file of a hash directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FilePart {
    /// The body and metadata of a PUT.
    Data,
    /// The metadata of a POST; with the time its content type was set, if it carries one.
    Meta(Option<Timestamp>),
    /// A DELETE.
    Tombstone,
    /// A marker that old erasure-coding releases left; never written.
    Durable,
}

/// A file name that is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileName {
    /// When it was written.
    pub timestamp: Timestamp,
    /// What it is.
    pub part: FilePart,
}

/// Not one of ours: junk, another program's temporary file, an erasure-coded fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the name of an object's file")]
pub struct UnknownName;

impl FromStr for FileName {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let (stem, extension) = name.rsplit_once('.').ok_or(UnknownName)?;
        let part = match extension {
            "data" => FilePart::Data,
            "ts" => FilePart::Tombstone,
            "durable" => FilePart::Durable,
            "meta" => return meta_name(stem),
            _ => return Err(UnknownName),
        };
        let timestamp = stem.parse().map_err(|_| UnknownName)?;
        Ok(Self { timestamp, part })
    }
}

fn meta_name(stem: &str) -> Result<FileName, UnknownName> {
    let [timestamp, content_type, _] = decode_series(stem).map_err(|_| UnknownName)?;
    let carries = stem.contains(['+', '-']);
    Ok(FileName {
        timestamp,
        part: FilePart::Meta(carries.then_some(content_type)),
    })
}

impl std::fmt::Display for FileName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let time = self.timestamp;
        match self.part {
            FilePart::Data => write!(f, "{time}.data"),
            FilePart::Tombstone => write!(f, "{time}.ts"),
            FilePart::Durable => write!(f, "{time}.durable"),
            FilePart::Meta(None) => write!(f, "{time}.meta"),
            FilePart::Meta(Some(content_type)) => write!(f, "{}.meta", encode_series(time, &[content_type], true)),
        }
    }
}

/// What a set of files amounts to; numbers are positions in the list given to [`choose`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choice {
    /// The body, when the object exists.
    pub data: Option<usize>,
    /// The POST that rules the user metadata, when the object exists and there was one since.
    pub meta: Option<usize>,
    /// The POST that rules the content type, when it is newer than the body's.
    pub content_type: Option<usize>,
    /// The deletion, when that is the newest word.
    pub tombstone: Option<usize>,
    /// What may go: everything that a newer file has made meaningless.
    pub obsolete: Vec<usize>,
}

/// Decides which files count.
///
/// The newest of all bodies and tombstones rules (a tombstone wins a tie). POSTs not newer than that
/// are meaningless. Of the others the newest counts, and beside it the one with the newest content
/// type if that is newer than what the newest POST carries.
pub fn choose(files: &[FileName]) -> Choice {
    let newest = |wanted: fn(FilePart) -> bool| {
        (0..files.len())
            .filter(|&at| wanted(files[at].part))
            .max_by_key(|&at| files[at].timestamp)
    };
    let data = newest(|part| part == FilePart::Data);
    let tombstone = newest(|part| part == FilePart::Tombstone);
    let ruler = match (data, tombstone) {
        (Some(data), Some(grave)) if files[grave].timestamp >= files[data].timestamp => Some(grave),
        (data, tombstone) => data.or(tombstone),
    };
    let (meta, content_type) = choose_metas(files, ruler.map(|at| files[at].timestamp));
    let kept = [ruler, meta, content_type];
    let obsolete = (0..files.len())
        .filter(|at| !kept.contains(&Some(*at)) && is_superseded(files[*at], ruler.map(|at| files[at].timestamp)))
        .collect();
    let data = data.filter(|_| ruler == data);
    let body_time = data.map(|at| files[at].timestamp);
    Choice {
        data,
        meta: meta.filter(|_| data.is_some()),
        content_type: content_type
            .or(meta)
            .filter(|&at| body_time.is_some_and(|body| content_type_time(files[at]) > Some(body))),
        tombstone: tombstone.filter(|_| ruler == tombstone),
        obsolete,
    }
}

/// The newest POST after `ruler`, and the one with a newer content type than it, if another has that.
fn choose_metas(files: &[FileName], ruler: Option<Timestamp>) -> (Option<usize>, Option<usize>) {
    let candidates = || {
        (0..files.len()).filter(|&at| {
            matches!(files[at].part, FilePart::Meta(_)) && ruler.is_none_or(|time| files[at].timestamp > time)
        })
    };
    let meta = candidates().max_by_key(|&at| (files[at].timestamp, content_type_time(files[at])));
    let typed = candidates()
        .filter(|&at| content_type_time(files[at]).is_some())
        .max_by_key(|&at| (content_type_time(files[at]), files[at].timestamp));
    let newer =
        typed.filter(|&at| meta.is_some_and(|meta| content_type_time(files[at]) > content_type_time(files[meta])));
    (meta, newer)
}

fn content_type_time(file: FileName) -> Option<Timestamp> {
    match file.part {
        FilePart::Meta(time) => time,
        _ => None,
    }
}

fn is_superseded(file: FileName, ruler: Option<Timestamp>) -> bool {
    match file.part {
        FilePart::Data | FilePart::Tombstone | FilePart::Meta(_) => true,
        FilePart::Durable => ruler.is_some_and(|time| file.timestamp <= time),
    }
}

/// What a deletion or POSTs without a body leave behind that is older than `horizon` and may go as well.
pub fn reclaimable(files: &[FileName], choice: &Choice, horizon: Timestamp) -> Vec<usize> {
    let (meta, content_type) = lone_posts(files);
    choice
        .tombstone
        .into_iter()
        .chain(meta)
        .chain(content_type)
        .filter(|&at| files[at].timestamp < horizon)
        .collect()
}

/// Of POSTs without a body: the one that rules the user metadata, and the one that rules the content type, if that is
/// another. Nothing where a body or a deletion is.
pub fn lone_posts(files: &[FileName]) -> (Option<usize>, Option<usize>) {
    let is_ruler = |file: &FileName| matches!(file.part, FilePart::Data | FilePart::Tombstone);
    match files.iter().any(is_ruler) {
        true => (None, None),
        false => choose_metas(files, None),
    }
}

/// The metadata a reader sees: the POST's, and of the PUT's what no POST can change; of what keeps an object
/// ([`lock_of`]) what both say together.
pub fn merge(
    data: &ObjectMetadata,
    meta: Option<&ObjectMetadata>,
    content_type: Option<&ObjectMetadata>,
) -> ObjectMetadata {
    let mut merged = match meta {
        None => data.clone(),
        Some(meta) => {
            let mut merged = meta.clone();
            merged.remove(CONTENT_TYPE);
            merged.remove(CONTENT_TYPE_TIMESTAMP);
            for (name, value) in data.iter().filter(|(name, _)| is_fixed(name)) {
                merged.set(name, value);
            }
            // A POST may have come by a server that knows no object lock.
            set_lock(&mut merged, lock_of(data).merged(lock_of(meta)));
            merged
        }
    };
    for name in [CONTENT_TYPE, CONTENT_TYPE_TIMESTAMP] {
        if let Some(value) = content_type.and_then(|typed| typed.get(name)) {
            merged.set(name, value);
        }
    }
    merged
}

/// What keeps the object that these are the metadata of.
pub fn lock_of(metadata: &ObjectMetadata) -> ObjectLock {
    ObjectLock::read(metadata.get(RETENTION), metadata.get(LEGAL_HOLD))
}

/// Says among metadata what keeps the object; what is not set stays as it is.
pub fn set_lock(metadata: &mut ObjectMetadata, lock: ObjectLock) {
    for (name, value) in [(RETENTION, lock.stored_retention()), (LEGAL_HOLD, lock.stored_hold())] {
        if let Some(value) = value {
            metadata.set(name, value);
        }
    }
}

pub(crate) const CONTENT_TYPE: &str = "Content-Type";
pub(crate) const CONTENT_TYPE_TIMESTAMP: &str = "Content-Type-Timestamp";

/// What belongs to the body: no POST changes it.
pub(crate) fn is_fixed(name: &str) -> bool {
    const FIXED: [&str; 6] = [
        "Content-Length",
        CONTENT_TYPE,
        "deleted",
        "ETag",
        "X-Static-Large-Object",
        "name",
    ];
    const SYSTEM: &str = "x-object-sysmeta-";
    FIXED.iter().any(|fixed| fixed.eq_ignore_ascii_case(name))
        || name
            .get(..SYSTEM.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(SYSTEM))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    fn any_file() -> impl Strategy<Value = FileName> {
        let part = prop_oneof![
            Just(FilePart::Data),
            Just(FilePart::Tombstone),
            proptest::option::of(1_u64..6).prop_map(|time| FilePart::Meta(time.map(at))),
        ];
        (1_u64..6, part).prop_map(|(time, part)| FileName {
            timestamp: at(time),
            part,
        })
    }

    proptest! {
        #[test]
        fn any_name_is_understood_or_left_alone(name in "\\PC*", tail in "[0-9.+_#-]{0,30}\\.(data|meta|ts|durable)") {
            for name in [name, tail] {
                if let Ok(read) = name.parse::<FileName>() {
                    prop_assert_eq!(read.to_string().parse::<FileName>(), Ok(read));
                }
            }
        }

        #[test]
        fn the_choice_depends_on_neither_order_nor_cleaning(mut files in proptest::collection::vec(any_file(), 0..7)) {
            files.sort_by_key(FileName::to_string);
            files.dedup();
            let pick = |files: &[FileName]| {
                let choice = choose(files);
                let kept = (0..files.len()).filter(|at| !choice.obsolete.contains(at));
                let mut kept: Vec<_> = kept.map(|at| files[at]).collect();
                kept.sort_by_key(FileName::to_string);
                let rulers = [choice.data, choice.meta, choice.content_type, choice.tombstone];
                (rulers.map(|at| at.map(|at| files[at])), kept)
            };
            let (picked, kept) = pick(&files);
            files.reverse();
            prop_assert_eq!(pick(&files), (picked, kept.clone()));
            prop_assert_eq!(pick(&kept), (picked, kept));
            prop_assert!(picked[0].is_none() || picked[3].is_none());
        }
    }

    #[test]
    fn a_post_that_knows_no_lock_does_not_end_one() {
        let data = ObjectMetadata::from_iter([("X-Timestamp", "1"), (RETENTION, "COMPLIANCE;500;1")]);
        let meta = ObjectMetadata::from_iter([("X-Timestamp", "2"), ("X-Object-Meta-Taste", "sour")]);
        let merged = merge(&data, Some(&meta), None);
        assert_eq!(lock_of(&merged), lock_of(&data));
        let held = meta.clone().with(LEGAL_HOLD, "ON;2").with(RETENTION, "NONE;0;2");
        let merged = lock_of(&merge(&data, Some(&held), None));
        assert!(merged.has_hold() && merged.is_in_compliance(at(499)));
    }

    #[test]
    fn a_post_replaces_what_is_the_clients_and_keeps_what_is_the_bodys() {
        let data = ObjectMetadata::from_iter([
            ("X-Timestamp", "1"),
            ("Content-Type", "text/plain"),
            ("Content-Length", "5"),
            ("ETag", "e"),
            ("X-Object-Meta-Color", "blue"),
            ("X-Object-Sysmeta-A", "a"),
            ("X-Object-Transient-Sysmeta-B", "b"),
            ("Content-Encoding", "gzip"),
            ("X-Static-Large-Object", "True"),
            ("X-Delete-At", "9"),
            ("name", "/a/c/o"),
        ]);
        let meta = ObjectMetadata::from_iter([
            ("X-Timestamp", "2"),
            ("X-Object-Meta-Taste", "sour"),
            ("name", "/a/c/o"),
        ]);
        let merged = merge(&data, Some(&meta), None);
        let names: Vec<_> = merged.iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [
                "X-Timestamp",
                "X-Object-Meta-Taste",
                "name",
                "Content-Type",
                "Content-Length",
                "ETag",
                "X-Object-Sysmeta-A",
                "X-Static-Large-Object"
            ]
        );
        assert_eq!(merged.text("X-Timestamp"), Some("2"));
        assert_eq!(merged.text("Content-Type"), Some("text/plain"));
        let typed = meta
            .clone()
            .with(CONTENT_TYPE, "image/png")
            .with(CONTENT_TYPE_TIMESTAMP, "2");
        assert_eq!(merge(&data, Some(&typed), None).text(CONTENT_TYPE), Some("text/plain"));
        assert_eq!(
            merge(&data, Some(&meta), Some(&typed)).text(CONTENT_TYPE),
            Some("image/png")
        );
        assert_eq!(merge(&data, None, None), data);
    }
}
