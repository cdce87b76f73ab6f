//! The reconciler's queue: what its rows say, and what is to be done about them.
//!
//! A row is called `POLICY:/account/container/object`: the policy in which an object was written or
//! deleted although its container has another one. Its entity tag is the time of that, its content type
//! what happened. Rows stand in containers by the hour of the object.
//! Source: rows that OpenStack Swift 2.38.3 made, and what its reconciler did about them.
//! Always holds: any row is a record or none; the decision is a table over what is known.

use crate::internal_client::ListedItem;
use vocabulary::timestamp::decode_series;
use vocabulary::{EntityPath, PolicyIndex, Timestamp};

/// The hidden account of the queue, behind its prefix.
pub const ACCOUNT: &str = "misplaced_objects";
/// Containers of the queue hold so many seconds.
const DIVISOR: u64 = 3600;

/// What happened under the wrong policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Written,
    Deleted,
}

/// A row of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// Its name.
    pub(super) name: String,
    /// The policy that it happened under.
    pub(super) policy: PolicyIndex,
    /// The object.
    pub(super) path: EntityPath,
    pub(super) event: Event,
    /// When it happened.
    pub(super) at: Timestamp,
    /// When the row was written.
    pub(super) queued: Timestamp,
}

impl Record {
    /// Reads a row; `None` when it is no record.
    pub(super) fn read(row: &ListedItem) -> Option<Self> {
        let (policy, path) = row.name.split_once(':')?;
        let path = EntityPath::split(path.strip_prefix('/')?).ok()?;
        path.object.as_ref()?;
        let event = match row.content_type.as_str() {
            "application/x-put" => Event::Written,
            "application/x-delete" => Event::Deleted,
            _ => return None,
        };
        let [at, ..] = decode_series(&row.hash).ok()?;
        Some(Self {
            name: row.name.clone(),
            policy: PolicyIndex(policy.parse().ok()?),
            path,
            event,
            at,
            queued: Timestamp::from_iso(&row.last_modified)?,
        })
    }

    /// As of when the row is taken out: a little later than it was written.
    pub(super) fn done_at(&self) -> Timestamp {
        later(self.queued.max(self.at), 2)
    }
}

/// A moment that loses to everything that happens later, but wins over `time` itself.
pub(super) fn later(time: Timestamp, offset: u64) -> Timestamp {
    time.with_offset(time.offset().saturating_add(offset))
}

/// The container of the queue for what happens now.
pub(super) fn container_of(now: Timestamp) -> String {
    (now.seconds() / DIVISOR * DIVISOR).to_string()
}

/// What is known of an object under one policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundVersion {
    pub(super) status: u16,
    /// Of the object or its tombstone; zero for neither.
    pub(super) at: Timestamp,
    /// Its time is over.
    pub(super) has_expired: bool,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    /// Copy the object as of this time to the right policy, then clean up the wrong one.
    Copy(Timestamp),
    /// Delete as of this time under the right policy, then clean up the wrong one.
    Delete(Timestamp),
    /// The right policy has something newer: only clean up.
    CleanUp,
    /// Wait for the object to turn up.
    Wait,
    /// It has not turned up for too long.
    GiveUp,
}

/// Whether the right policy settles it by itself.
pub(super) fn judge_destination(record: &Record, there: FoundVersion) -> Option<Move> {
    (there.at >= record.at).then_some(Move::CleanUp)
}

/// What to do, by what the wrong policy has. What has expired there is not moved; it must go, as the expirer asks for
/// it in the right policy only.
pub(super) fn judge_source(record: &Record, here: FoundVersion, too_old: bool) -> Move {
    let is_whole = (200..300).contains(&here.status) && here.at >= record.at;
    let is_gone = (400..500).contains(&here.status) || here.has_expired;
    match record.event {
        Event::Written if is_whole && here.has_expired => Move::CleanUp,
        Event::Deleted if here.has_expired => Move::Delete(later(record.at.max(here.at), 3)),
        _ if is_whole => Move::Copy(later(here.at, 3)),
        Event::Deleted if is_gone => Move::Delete(later(record.at.max(here.at), 3)),
        _ if too_old => Move::GiveUp,
        _ => Move::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(name: &str, content_type: &str) -> ListedItem {
        ListedItem {
            name: name.into(),
            content_type: content_type.into(),
            hash: "1795201483.75000_0000000000000001".into(),
            last_modified: "2026-11-20T19:04:43.750000".into(),
        }
    }

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn rows_are_records_or_none() {
        let record = Record::read(&row("1:/a/c/o/p:q", "application/x-put")).unwrap();
        assert_eq!(
            (record.policy, record.path.path().as_str()),
            (PolicyIndex(1), "/a/c/o/p:q")
        );
        assert_eq!(record.at.internal(), "1795201483.75000_0000000000000001");
        assert_eq!(record.queued.internal(), "1795201483.75000");
        assert_eq!(record.done_at().internal(), "1795201483.75000_0000000000000003");
        for (name, content_type) in [
            ("x", "application/x-put"),
            ("0:/a/c", "application/x-put"),
            ("0:a/c/o", "application/x-put"),
            ("x:/a/c/o", "application/x-delete"),
            ("0:/a/c/o", "text/plain"),
        ] {
            assert_eq!(Record::read(&row(name, content_type)), None, "{name}");
        }
    }

    /// What OpenStack Swift 2.38.3's reconciler did, given the same.
    #[test]
    fn decisions_are_openstacks() {
        let put = Record {
            at: time("100.00000"),
            ..Record::read(&row("0:/a/c/o", "application/x-put")).unwrap()
        };
        let delete = Record {
            event: Event::Deleted,
            ..put.clone()
        };
        let copy = |text: &str| Move::Copy(later(time(text), 3));
        let gone = Move::Delete(later(time("100"), 3));
        for (record, status, at, too_old, expected) in [
            (&put, 200, "100", false, copy("100")),
            (&put, 200, "105", false, copy("105")),
            (&put, 200, "95", false, Move::Wait),
            (&put, 404, "0", false, Move::Wait),
            (&put, 404, "103", false, Move::Wait),
            (&put, 404, "0", true, Move::GiveUp),
            (&put, 503, "0", false, Move::Wait),
            (&delete, 404, "0", false, gone),
            (&delete, 404, "100", false, gone),
            (&delete, 200, "102", false, copy("102")),
            (&delete, 200, "98", false, Move::Wait),
            (&delete, 503, "0", false, Move::Wait),
        ] {
            let here = FoundVersion {
                status,
                at: time(at),
                has_expired: false,
            };
            assert_eq!(judge_source(record, here, too_old), expected, "{record:?} {here:?}");
        }
        for (at, expected) in [
            ("0", None),
            ("99", None),
            ("100", Some(Move::CleanUp)),
            ("101", Some(Move::CleanUp)),
        ] {
            let there = FoundVersion {
                status: 200,
                at: time(at),
                has_expired: false,
            };
            assert_eq!(judge_destination(&put, there), expected);
        }
        // OpenStack's looks for what has expired until it gives up.
        for (record, at, expected) in [
            (&put, "100", Move::CleanUp),
            (&put, "105", Move::CleanUp),
            (&put, "95", Move::Wait),
            (&delete, "100", gone),
            (&delete, "95", gone),
        ] {
            let here = FoundVersion {
                status: 200,
                at: time(at),
                has_expired: true,
            };
            assert_eq!(judge_source(record, here, false), expected, "{record:?} {here:?}");
        }
    }

    #[test]
    fn containers_go_by_the_hour() {
        assert_eq!(container_of(time("1795201583.75")), "1795201200");
    }

    proptest! {
        #[test]
        fn any_row_is_read(name in "\\PC{0,40}", hash in "[0-9._+-]{0,30}", modified in "[0-9T:.-]{0,30}") {
            let row = ListedItem { name, hash, last_modified: modified, ..row("", "application/x-put") };
            let _ = Record::read(&row);
        }
    }
}
