//! A row stays where a server that was away would bring the object back: its tombstones are too old to wait for it.

use crate::common::pass;
use crate::site::{Servers, ago, site, with_servers};
use std::sync::Arc;
use vocabulary::Timestamp;

/// Older than `reclaim_age`.
const OLD: u64 = 700_000;
/// Much younger.
const YOUNG: u64 = 1_000;

#[tokio::test]
async fn an_old_task_stays_until_all_servers_have_answered_the_gateway() {
    for (seconds, status, kind, is_away, done) in [
        (OLD, 204, "text/plain", true, false),
        (OLD, 204, "text/plain", false, true),
        (OLD, 409, "text/plain", true, false),
        (OLD, 404, "text/plain", true, false),
        (OLD, 404, "text/plain", false, true),
        (OLD, 412, "text/plain", true, false),
        (OLD, 412, "text/plain", false, true),
        (OLD, 204, "application/async-deleted", true, false),
        (OLD, 404, "application/async-deleted", true, false),
        (OLD, 404, "application/async-deleted", false, true),
        (YOUNG, 204, "text/plain", true, true),
        (YOUNG, 404, "application/async-deleted", true, true),
    ] {
        let row = (format!("{}-a/c/o", ago(seconds)), kind);
        let mut site = site(&[row], &[("/v1/a/c/o", status)], |_| {});
        *site.cluster.one_is_away.lock() = is_away;
        let expected = if done { (1, 0) } else { (0, 1) };
        let what = format!("{seconds} {status} {kind} {is_away}");
        assert_eq!(pass(&mut site.expirer).await, expected, "{what}");
        assert_eq!(site.fake.lines().len(), if done { 3 } else { 0 }, "{what}");
    }
}

/// The tombstone is only just newer than the version, however late that expires.
#[tokio::test]
async fn a_young_task_of_an_old_version_stays_as_well() {
    for (written, done) in [(OLD, (0, 1)), (YOUNG + 100, (1, 0))] {
        let mut one = site(&[(format!("{}-a/c/o", ago(YOUNG)), "text/plain")], &[], |_| {});
        *one.cluster.one_is_away.lock() = true;
        *one.cluster.version.lock() = Some(Timestamp::from_seconds(ago(written)));
        assert_eq!(pass(&mut one.expirer).await, done, "{written}");
        *one.cluster.one_is_away.lock() = false;
        assert_eq!(pass(&mut one.expirer).await, (1, 0), "{written}");
    }
}

#[tokio::test]
async fn nor_does_a_row_go_after_a_batch_that_a_server_has_missed() {
    for (due, written, status, done) in [
        (OLD, OLD + 1, 507, false),
        (OLD, OLD + 1, 204, true),
        (OLD, OLD + 1, 404, true),
        (OLD, OLD + 1, 409, true),
        (YOUNG, OLD, 507, false),
        (YOUNG, OLD, 404, true),
        (YOUNG, YOUNG + 100, 507, true),
    ] {
        let servers = Arc::new(Servers {
            answers: [(("o", "sd1"), status)].into(),
            written_ago: written,
            ..Servers::default()
        });
        let rows = [(format!("{}-a/c/o", ago(due)), "text/plain")];
        let mut site = with_servers(site(&rows, &[], |_| {}), &servers);
        let expected = if done { (1, 0) } else { (0, 1) };
        assert_eq!(pass(&mut site.expirer).await, expected, "{due} {written} {status}");
        // The others have deleted it, and there is nothing that a gateway could do.
        assert!(!servers.received.lock().is_empty() && site.cluster.deleted.lock().is_empty());
    }
}
