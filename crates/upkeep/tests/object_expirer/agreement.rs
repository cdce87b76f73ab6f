//! No server deletes before the others have been heard.

use crate::common::pass;
use crate::site::{Servers, ago, site, with_servers};
use std::sync::Arc;

fn row(name: &str) -> (String, &'static str) {
    (format!("{}-a/c/{name}", ago(100)), "text/plain")
}

#[tokio::test]
async fn all_are_asked_before_any_deletes() {
    let servers = Arc::new(Servers::default());
    let mut site = with_servers(site(&[row("o")], &[], |_| {}), &servers);
    assert_eq!(pass(&mut site.expirer).await, (1, 0));
    assert_eq!(*servers.order.lock(), [true, true, true, false, false, false]);
}

/// A server that was away while a client extended the object's life still has the old time.
#[tokio::test]
async fn where_one_contradicts_none_deletes() {
    let newer = |device| (("extended", device), 412);
    for devices in [&["sd0", "sd1"][..], &["sd2"]] {
        let servers = Arc::new(Servers {
            answers: devices.iter().copied().map(newer).collect(),
            ..Servers::default()
        });
        let answers = [("/v1/a/c/extended", 412)];
        let mut site = with_servers(site(&[row("extended")], &answers, |_| {}), &servers);
        assert_eq!(pass(&mut site.expirer).await, (0, 1));
        assert!(servers.received.lock().is_empty());
        // It sees which version is the newest.
        assert_eq!(site.cluster.deleted.lock().len(), 1);
    }
}

/// It has nothing to delete, or did not say.
#[tokio::test]
async fn only_those_that_agree_are_asked_to_delete() {
    for (status, done) in [(404, 2), (507, 2), (409, 2), (204, 3)] {
        let servers = Arc::new(Servers {
            answers: [(("o", "sd1"), status)].into(),
            ..Servers::default()
        });
        let mut site = with_servers(site(&[row("o")], &[], |_| {}), &servers);
        assert_eq!(pass(&mut site.expirer).await, (1, 0));
        assert_eq!(servers.received.lock().len(), done, "{status}");
        assert!(site.cluster.deleted.lock().is_empty());
    }
}

/// What a client has asked for is deleted whatever is there.
#[tokio::test]
async fn deletions_that_clients_have_asked_for_need_no_agreement() {
    let servers = Arc::new(Servers::default());
    let rows = [(row("segment").0, "application/async-deleted")];
    let mut site = with_servers(site(&rows, &[], |_| {}), &servers);
    assert_eq!(pass(&mut site.expirer).await, (1, 0));
    assert_eq!(*servers.order.lock(), [false; 3]);
}

/// It would delete at once.
#[tokio::test]
async fn a_server_that_cannot_check_is_sent_no_batch() {
    let servers = Arc::new(Servers {
        are_earlier: true,
        ..Servers::default()
    });
    let mut site = with_servers(site(&[row("o")], &[], |_| {}), &servers);
    assert_eq!(pass(&mut site.expirer).await, (1, 0));
    assert!(servers.received.lock().is_empty() && servers.checks.lock().is_empty());
    assert_eq!(site.cluster.deleted.lock().len(), 1);
}

/// Of a part of a bucket with object lock one server may have missed that it is held: the others are heard first.
#[tokio::test]
async fn what_an_object_lock_holds_is_deleted_for_no_client() {
    for (held_on, are_foreign, done) in [
        (&[][..], false, true),
        (&["sd2"], false, false),
        (&["sd0", "sd1"], false, false),
        (&[], true, false),
    ] {
        let servers = Arc::new(Servers {
            answers: held_on.iter().map(|device| (("part", *device), 403)).collect(),
            are_foreign,
            ..Servers::default()
        });
        for container in ["locked", "locked+segments"] {
            let rows = [(format!("{}-a/{container}/part", ago(100)), "application/async-deleted")];
            let mut site = with_servers(site(&rows, &[], |_| {}), &servers);
            let counts = (u64::from(done), u64::from(!done));
            assert_eq!(pass(&mut site.expirer).await, counts, "{container} {held_on:?}");
            // Nor does the gateway, which would ask for no agreement.
            assert!(site.cluster.deleted.lock().is_empty());
        }
        assert_eq!(servers.received.lock().len(), if done { 6 } else { 0 });
    }
}

/// … nor because it has expired.
#[tokio::test]
async fn one_server_that_knows_of_an_object_lock_is_enough() {
    let servers = Arc::new(Servers {
        answers: [(("o", "sd1"), 403)].into(),
        ..Servers::default()
    });
    let mut site = with_servers(site(&[row("o")], &[], |_| {}), &servers);
    assert_eq!(pass(&mut site.expirer).await, (0, 1));
    assert!(servers.received.lock().is_empty() && site.cluster.deleted.lock().is_empty());
}
