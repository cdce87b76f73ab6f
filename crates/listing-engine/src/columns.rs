//! The columns of rows, read as what they ought to be: SQLite keeps whatever it is given, and OpenStack's brokers pass
//! on what requests said.
//!
//! Always holds: what a column holds is no reason to read no other row.

use rusqlite::Row;
use rusqlite::types::ValueRef;
use vocabulary::{PolicyIndex, Timestamp};

/// Text; nothing where there is none, U+FFFD for what is no UTF-8.
pub(crate) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    })
}

/// A name, which must not be another's: none where it is no text.
pub(crate) fn name(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    Ok(row.get_ref(column)?.as_str().ok().map(str::to_owned))
}

/// A counter; triggers may leave NULL or less than nothing behind damaged rows, and a float behind sizes that are too
/// large to be added.
pub(crate) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(number) => number.max(0).unsigned_abs(),
        ValueRef::Real(number) => (number as i64).max(0).unsigned_abs(),
        _ => 0,
    })
}

/// A point, or whatever else may be below zero; none where there is no whole number.
pub(crate) fn signed(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<i64>> {
    Ok(row.get_ref(column)?.as_i64().ok())
}

/// A timestamp; what is none counts as the beginning of time.
pub(crate) fn timestamp(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    let read = match row.get_ref(column)? {
        ValueRef::Text(text) => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()),
        ValueRef::Integer(seconds) => u64::try_from(seconds).ok().map(Timestamp::from_seconds),
        _ => None,
    };
    Ok(read.unwrap_or_default())
}

/// Whether something is deleted.
pub(crate) fn flag(row: &Row<'_>, column: usize) -> rusqlite::Result<bool> {
    Ok(matches!(row.get_ref(column)?, ValueRef::Integer(number) if number != 0))
}

/// A policy, 0 where none is said; none for what no policy can be.
pub(crate) fn policy(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<PolicyIndex>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => Some(PolicyIndex::default()),
        ValueRef::Integer(number) => u32::try_from(number).ok().map(PolicyIndex),
        _ => None,
    })
}
