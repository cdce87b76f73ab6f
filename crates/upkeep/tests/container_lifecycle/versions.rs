//! Which versions go where listings tell what is no more, or not all that there is.

use super::site::{DAY, MARKER, Site, now};
use lifecycle::{LifecycleExpiration, LifecycleRule, NoncurrentExpiration};
use serde_json::{Value, json};
use vocabulary::Timestamp;

/// A version of `k` that is so old, and its row.
pub fn version(site: &Site, age: u64, is_latest: bool, kind: &str) -> String {
    let id = Timestamp::from_seconds(now() - age).normal();
    let row = json!({"name": "k", "version_id": id, "bytes": 1, "is_latest": is_latest, "content_type": kind});
    site.put("b", row, &format!("?version-id={id}"), age, &[("content-type", kind)]);
    format!("/v1/a/b/k?version-id={id}")
}

/// Seven versions, newest first, the newest a marker where `is_hidden`, of which the second and the third are gone.
fn versions_of_which_two_are_gone(is_hidden: bool) -> (Site, Vec<String>) {
    let site = Site::new(3);
    site.versioned("b", keeps_two());
    let newest = if is_hidden { MARKER } else { "t" };
    let first = version(&site, DAY + 20, true, newest);
    let older = (1..7).map(|more| version(&site, DAY + 20 + more, false, "t"));
    let versions = [first].into_iter().chain(older).collect::<Vec<_>>();
    let mut objects = site.gateway.objects.lock();
    if !is_hidden {
        let (key, id) = versions[0].split_once("?version-id=").unwrap();
        objects.insert(key.to_owned(), vec![("x-object-version-id", id.to_owned())]);
    }
    for gone in &versions[1..3] {
        objects.remove(gone);
    }
    drop(objects);
    (site, versions)
}

fn keeps_two() -> LifecycleRule {
    LifecycleRule {
        is_enabled: true,
        noncurrent: Some(NoncurrentExpiration {
            days: 1,
            newer_versions: Some(2),
        }),
        ..LifecycleRule::default()
    }
}

/// A container database that missed deletions lists versions that are gone: they are none of those that a rule keeps.
#[tokio::test]
async fn versions_that_are_gone_do_not_count_as_newer_ones() {
    for is_hidden in [false, true] {
        let (mut site, versions) = versions_of_which_two_are_gone(is_hidden);
        assert_eq!(site.pass().await, (2, 0));
        let deleted = site.gateway.asked("DELETE");
        let expected: Vec<_> = versions[5..].iter().map(|path| format!("DELETE {path}")).collect();
        assert_eq!(deleted, expected, "{is_hidden}");
    }
}

/// Versions of a page are looked at once, however many behind them are due.
#[tokio::test]
async fn newer_versions_are_looked_at_once() {
    let mut site = Site::new(1000);
    site.versioned("b", keeps_two());
    for number in 0..50 {
        version(&site, DAY + 20 + number, number == 0, "t");
    }
    assert_eq!(site.pass().await, (47, 0));
    // The key shows none of them, so that the newest counts as the current one.
    assert_eq!(site.gateway.asked("HEAD").len(), 4);
}

/// What a client has made the current version since the listing is no older one.
#[tokio::test]
async fn an_older_version_goes_unless_it_is_current() {
    let mut site = Site::new(10);
    site.versioned("b", keeps_two());
    let versions: Vec<_> = (0..5)
        .map(|more| version(&site, DAY + 20 + more, more == 0, "t"))
        .collect();
    *site.gateway.made_current.lock() = Some(versions[4].clone());
    assert_eq!(site.pass().await, (1, 0));
    assert!(site.gateway.objects.lock().contains_key(&versions[4]));
}

/// A container database that missed a version lists its delete marker as if nothing stood behind it.
#[tokio::test]
async fn a_delete_marker_stays_while_a_server_lists_a_version_behind_it() {
    let mut site = Site::new(10);
    let rule = LifecycleRule {
        is_enabled: true,
        expiration: Some(LifecycleExpiration::DeleteMarkers(true)),
        ..LifecycleRule::default()
    };
    site.versioned("b", rule);
    let marker = version(&site, 5, true, MARKER);
    let row = |kind: &str| json!({"name": "\u{0}k\u{0}1", "content_type": kind});
    let servers = site.servers.clone();
    let listed = |rows: &[Value]| servers.listed.lock().insert("/a/v".into(), rows.to_vec());
    for rows in [&[row(MARKER), row("t")][..], &[row("t")], &[]] {
        listed(rows);
        assert_eq!(site.pass().await, (0, 0));
        assert!(site.gateway.asked("DELETE").is_empty(), "{rows:?}");
    }
    listed(&[row(MARKER)]);
    assert_eq!(site.pass().await, (1, 0));
    assert_eq!(site.gateway.asked("DELETE"), [format!("DELETE {marker}")]);
}
