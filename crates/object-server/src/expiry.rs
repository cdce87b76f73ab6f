//! When an object expires, and the rows of the queue that the expirer works through.
//!
//! How the queue's containers and objects are named: `vocabulary::expiry_queue`.
//! Source: `doc/source/overview_expiring_objects.rst` and the requests OpenStack's server sends.

use crate::options::ObjectServerOptions;
use crate::request::{ObjectRequest, text};
use crate::updates::{ListingRow, named};
use http::HeaderValue;
use object_engine::ObjectMetadata;
use peer::message::RowChange;
use peer::message::header_names::{X_DELETE_AFTER, X_DELETE_AT};
use std::sync::Arc;
use storage_shell::{Refusal, header_value};
use vocabulary::{EntityPath, Timestamp, expiry_queue};

const EMPTY_ETAG: HeaderValue = HeaderValue::from_static("d41d8cd98f00b204e9800998ecf8427e");

/// Reads and checks the `X-Delete-After` and `X-Delete-At` of a PUT, and leaves the second in the headers.
pub(crate) fn resolve_delete_at(request: &mut ObjectRequest, now: Timestamp) -> Result<(), Refusal> {
    if let Some(after) = request.headers.get(X_DELETE_AFTER) {
        let after = whole_number(after.as_bytes());
        let after = after.ok_or_else(|| Refusal::bad_request("Non-integer X-Delete-After"))?;
        if after <= 0 {
            return Err(Refusal::bad_request("X-Delete-After in past"));
        }
        let at = seconds(now).saturating_add(after);
        let headers = Arc::make_mut(&mut request.headers);
        headers.remove(X_DELETE_AFTER);
        headers.insert(X_DELETE_AT, HeaderValue::from(at));
    }
    check_delete_at(request, |at| is_past(at, now))
}

/// Checks the `X-Delete-At` of a POST, which may name its own very second; `X-Delete-After` is not for it.
pub(crate) fn check_posted_delete_at(request: &ObjectRequest, now: Timestamp) -> Result<(), Refusal> {
    check_delete_at(request, |at| {
        u64::try_from(at).is_ok_and(|at| Timestamp::from_seconds(at) < now) || at < 0
    })
}

fn check_delete_at(request: &ObjectRequest, is_past: impl Fn(i64) -> bool) -> Result<(), Refusal> {
    let Some(at) = request.headers.get(X_DELETE_AT) else {
        return Ok(());
    };
    let at = whole_number(at.as_bytes()).ok_or_else(|| Refusal::bad_request("Non-integer X-Delete-At"))?;
    if is_past(at) && !request.is_replication {
        return Err(Refusal::bad_request("X-Delete-At in past"));
    }
    Ok(())
}

/// When the object these are the metadata of expires.
pub(crate) fn delete_at(metadata: &ObjectMetadata) -> Option<i64> {
    whole_number(metadata.get("X-Delete-At")?)
}

/// Whether it has expired at `now`.
pub(crate) fn has_expired(metadata: &ObjectMetadata, now: Timestamp) -> bool {
    delete_at(metadata).is_some_and(|at| is_past(at, now))
}

fn is_past(at: i64, now: Timestamp) -> bool {
    at <= seconds(now)
}

fn seconds(timestamp: Timestamp) -> i64 {
    i64::try_from(timestamp.seconds()).unwrap_or(i64::MAX)
}

/// A number as Python's `int` reads it, as far as anyone writes one.
pub(crate) fn whole_number(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    text.parse().ok()
}

/// What changed about an object's expiry.
pub(crate) struct ExpiryChange<'a> {
    /// What it was before.
    pub(crate) old: Option<i64>,
    /// The metadata it has now; `None` when it is deleted.
    pub(crate) new: Option<&'a ObjectMetadata>,
    /// Its size, which the queue row shows the expirer.
    pub(crate) size: u64,
    /// When it happened.
    pub(crate) timestamp: Timestamp,
    /// When the object's content type was set.
    pub(crate) content_type_timestamp: Timestamp,
}

/// The queue rows that follow from a change. None from one that upkeep brings: where it was made first, the queue has
/// got its rows.
pub(crate) fn queue_rows(
    request: &ObjectRequest,
    options: &ObjectServerOptions,
    change: &ExpiryChange<'_>,
) -> Vec<ListingRow> {
    if request.is_replication {
        return vec![];
    }
    let new = change.new.and_then(delete_at);
    let added = new.and_then(|at| added_row(request, options, change, at));
    let cleans = request.rows.cleans_queue.unwrap_or(true);
    let removed = change.old.filter(|old| cleans && new != Some(*old));
    let removed = removed.map(|at| {
        // Where the row was put is not known any more. The best guess goes to the updater; when it is
        // wrong, the expirer finds that the object's X-Delete-At does not match and leaves it alone.
        queue_row(request, RowChange::Delete, options, change, at)
    });
    added.into_iter().chain(removed).collect()
}

/// Only when the gateway says where to: it says so to as many object servers as are needed.
fn added_row(
    request: &ObjectRequest,
    options: &ObjectServerOptions,
    change: &ExpiryChange<'_>,
    at: i64,
) -> Option<ListingRow> {
    let servers = named(&request.rows.queue)?;
    let mut row = queue_row(request, RowChange::Put, options, change, at);
    row.servers = servers;
    row.update.size = 0.into();
    row.update.etag = Some(EMPTY_ETAG);
    row.update.content_type = header_value(format_args!("text/plain;swift_expirer_bytes={}", change.size));
    row.update.content_type_timestamp = change.content_type_timestamp.into();
    Some(row)
}

/// A row that goes is looked for where it would be put without a word of the gateway.
fn queue_row(
    request: &ObjectRequest,
    row_change: RowChange,
    options: &ObjectServerOptions,
    change: &ExpiryChange<'_>,
    at: i64,
) -> ListingRow {
    let account = &options.expiring_objects_account;
    let container = request.rows.queue_container.as_ref().and_then(text);
    let container = container.filter(|name| row_change == RowChange::Put && !name.is_empty() && !name.contains('/'));
    let container = match container {
        Some(name) => name.to_owned(),
        None => expiry_queue::container(at, &request.key.hash, options.expiring_objects_container_divisor),
    };
    let object = expiry_queue::task(at, &request.target.path);
    let hash = options.hash_prefix.object(account, &container, &object);
    let path = EntityPath::account(account)
        .with_container(container)
        .with_object(object);
    ListingRow::of_queue(request, row_change, change.timestamp, (path, hash))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_object_expires_with_its_second() {
        let metadata = ObjectMetadata::new().with("X-Delete-At", "100");
        let at = |text: &str| text.parse().unwrap();
        assert!(!has_expired(&metadata, at("99.99999")));
        assert!(has_expired(&metadata, at("100")));
        assert!(!has_expired(&ObjectMetadata::new(), at("100")));
    }

    proptest! {
        #[test]
        fn any_number_is_read_or_refused(text in "\\PC*") {
            let _ = whole_number(text.as_bytes());
        }
    }
}
