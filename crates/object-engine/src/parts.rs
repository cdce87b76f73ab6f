//! What the engines share between the rules and their storage: checking what comes in, completing
//! what is kept, describing what goes out.

use crate::engine::{Commit, MetadataUpdate, Timestamps};
use crate::error::EngineError;
use crate::key::ObjectKey;
use crate::metadata::ObjectMetadata;
use crate::rules::{CONTENT_TYPE, CONTENT_TYPE_TIMESTAMP, FileName, FilePart, merge};
use std::fmt::{Display, Write};
use vocabulary::Timestamp;

pub(crate) const NAME: &str = "name";
const X_TIMESTAMP: &str = "X-Timestamp";
const CONTENT_LENGTH: &str = "Content-Length";
pub(crate) const ETAG: &str = "ETag";

/// Refuses a commit whose metadata do not describe what was written.
pub(crate) fn check_commit(commit: &Commit, written: u64) -> Result<(), EngineError> {
    check_timestamp(&commit.metadata, commit.timestamp)?;
    let length = commit.metadata.text(CONTENT_LENGTH);
    if !length.is_some_and(|length| spells(length, written)) {
        return contradiction(format!("Content-Length is {length:?} but {written} bytes were written"));
    }
    match commit.metadata.get(ETAG) {
        Some(_) => Ok(()),
        None => contradiction("there is no ETag".into()),
    }
}

fn check_timestamp(metadata: &ObjectMetadata, timestamp: Timestamp) -> Result<(), EngineError> {
    let stated = metadata.text(X_TIMESTAMP);
    if stated.is_some_and(|stated| spells(stated, timestamp)) {
        return Ok(());
    }
    contradiction(format!("X-Timestamp is {stated:?} but the write is of {timestamp}"))
}

/// Whether `text` is how `value` is spelled.
fn spells(text: &str, value: impl Display) -> bool {
    struct Left<'t>(&'t str);
    impl Write for Left<'_> {
        fn write_str(&mut self, piece: &str) -> std::fmt::Result {
            self.0 = self.0.strip_prefix(piece).ok_or(std::fmt::Error)?;
            Ok(())
        }
    }
    let mut left = Left(text);
    write!(left, "{value}").is_ok() && left.0.is_empty()
}

fn contradiction<T>(what: String) -> Result<T, EngineError> {
    Err(EngineError::Contradiction(what))
}

/// The metadata with the object's name at the end.
pub(crate) fn named(mut metadata: ObjectMetadata, key: &ObjectKey) -> ObjectMetadata {
    metadata.remove(NAME);
    metadata.set(NAME, key.name.as_bytes());
    metadata
}

/// The metadata of a deletion.
pub(crate) fn tombstone(key: &ObjectKey, timestamp: Timestamp) -> ObjectMetadata {
    named(ObjectMetadata::new().with(X_TIMESTAMP, timestamp.internal()), key)
}

/// The file a POST becomes, and its metadata.
pub(crate) fn update_metadata(
    key: &ObjectKey,
    update: MetadataUpdate,
) -> Result<(FileName, ObjectMetadata), EngineError> {
    let file = update.file();
    let mut metadata = update.metadata;
    check_timestamp(&metadata, update.timestamp)?;
    metadata.remove(CONTENT_TYPE_TIMESTAMP);
    match (update.content_type_timestamp, metadata.get(CONTENT_TYPE).is_some()) {
        (Some(time), true) => metadata.set(CONTENT_TYPE_TIMESTAMP, time.internal()),
        (None, false) => {}
        (Some(_), false) => return contradiction("a content type's timestamp comes without the content type".into()),
        (None, true) => return contradiction("a content type comes without its timestamp".into()),
    }
    Ok((file, named(metadata, key)))
}

/// Refuses metadata that belong to another object. A key without a name takes whatever has its hash.
pub(crate) fn check_name(
    key: &ObjectKey,
    metadata: &ObjectMetadata,
    path: impl FnOnce() -> String,
) -> Result<(), EngineError> {
    match metadata.get(NAME) {
        Some(name) if name == key.name.as_bytes() || key.name.is_empty() => Ok(()),
        other => Err(EngineError::Collision {
            path: path(),
            found: String::from_utf8_lossy(other.unwrap_or_default()).into_owned(),
            wanted: key.name.clone(),
        }),
    }
}

/// What a reader sees of the chosen parts together.
pub(crate) fn describe(
    data: (FileName, &ObjectMetadata),
    meta: Option<(FileName, &ObjectMetadata)>,
    content_type: Option<(FileName, &ObjectMetadata)>,
) -> (ObjectMetadata, Timestamps) {
    let typed_at = content_type.and_then(|(file, _)| match file.part {
        FilePart::Meta(time) => time,
        _ => None,
    });
    let timestamps = Timestamps {
        data: data.0.timestamp,
        meta: meta.map(|(file, _)| file.timestamp),
        content_type: typed_at.unwrap_or(data.0.timestamp),
        durable: data.0.timestamp,
    };
    let merged = merge(data.1, meta.map(|(_, kept)| kept), content_type.map(|(_, kept)| kept));
    (merged, timestamps)
}
