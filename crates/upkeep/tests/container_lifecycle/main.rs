//! Buckets on one device, a container server and a gateway in this process: what goes of them, and in which order.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod failing;
mod parts;
mod site;
mod versions;

use lifecycle::{LifecycleExpiration, LifecycleRule};
use site::{DAY, Site};
use upkeep::{UpkeepJob, UpkeepStep};

fn expires(days: u32) -> LifecycleRule {
    LifecycleRule {
        is_enabled: true,
        expiration: Some(LifecycleExpiration::Days(days)),
        ..LifecycleRule::default()
    }
}

/// A machine whose clock is ahead of the bucket's servers deletes nothing that is not due by theirs.
#[tokio::test]
async fn the_clocks_of_the_buckets_servers_count() {
    let mut site = Site::new(1000);
    site.bucket("b", expires(1));
    site.object("b", "due", DAY + 20);
    *site.servers.behind.lock() = 3 * 86_400;
    assert_eq!(site.pass().await, (0, 1));
    assert!(site.gateway.asked("DELETE").is_empty());
    // Closer than that, but not yet due by the earlier clock.
    *site.servers.behind.lock() = 50;
    assert_eq!(site.pass().await, (0, 0));
    assert!(site.gateway.asked("DELETE").is_empty());
    *site.servers.behind.lock() = 0;
    assert_eq!(site.pass().await, (1, 0));
    assert_eq!(site.gateway.asked("DELETE"), ["DELETE /v1/a/b/due"]);
}

/// A look shows a link itself, not what it leads to, which may be newer, or gone.
#[tokio::test]
async fn symbolic_links_expire_by_their_own_age() {
    let mut site = Site::new(10);
    site.bucket("b", expires(1));
    for key in ["dangling", "link"] {
        site.object("b", key, DAY + 20);
        let mut objects = site.gateway.objects.lock();
        let link = objects.remove(&format!("/v1/a/b/{key}")).unwrap();
        objects.insert(format!("/v1/a/b/{key}?symlink=get"), link);
        if key == "link" {
            objects.insert("/v1/a/b/link".into(), vec![("x-timestamp", "1".into())]);
        }
    }
    site.pass().await;
    let deleted = site.gateway.asked("DELETE");
    assert_eq!(deleted, ["DELETE /v1/a/b/dangling", "DELETE /v1/a/b/link"]);
}

/// The current version may be a link, too: what the key shows is asked of the link to it.
#[tokio::test]
async fn a_version_that_is_a_symbolic_link_expires() {
    let mut site = Site::new(10);
    site.versioned("b", expires(1));
    let id = versions::version(&site, DAY + 20, true, "t")
        .split_once('=')
        .unwrap()
        .1
        .to_owned();
    let shown = [("", "null"), ("?symlink=get", id.as_str())];
    for (query, id) in shown {
        let headers = vec![("x-object-version-id", id.to_owned())];
        site.gateway.objects.lock().insert(format!("/v1/a/b/k{query}"), headers);
    }
    assert_eq!(site.pass().await, (1, 0));
    assert_eq!(site.gateway.asked("DELETE"), ["DELETE /v1/a/b/k"]);
}

fn ends_uploads() -> LifecycleRule {
    LifecycleRule {
        is_enabled: true,
        abort_after_days: Some(1),
        ..LifecycleRule::default()
    }
}

/// A bucket with much to do holds up no other, and a key with many versions and uploads costs their sum at most.
#[tokio::test]
async fn buckets_take_turns_and_versions_are_looked_at_once() {
    let mut site = Site::new(10);
    site.versioned("heavy", ends_uploads());
    site.versions("heavy", 25, 5, &[]);
    for number in 0..20 {
        site.upload("heavy", &format!("u{number:02}"), 1, [DAY + 20, DAY + 20]);
    }
    for number in 0..8 {
        let bucket = format!("b{number}");
        site.bucket(&bucket, expires(1));
        site.object(&bucket, "due", DAY + 20);
    }
    assert_eq!(site.pass().await, (28, 0));
    let asked = site.gateway.asked("");
    let place = |what: &str| asked.iter().position(|line| line == what).unwrap();
    for number in 0..8 {
        let expired = place(&format!("DELETE /v1/a/b{number}/due"));
        assert!(expired < place("DELETE /v1/a/heavy+segments/k/u00"), "{number}");
    }
    let looks = asked.iter().filter(|line| line.contains("?version-id=")).count();
    assert_eq!(looks, 25);
}

/// What becomes due meanwhile does not wait for the end of a long pass.
#[tokio::test]
async fn the_devices_are_looked_at_anew_while_a_bucket_has_much_to_do() {
    let mut site = Site::new(10);
    site.bucket("heavy", ends_uploads());
    for number in 0..20 {
        site.upload("heavy", &format!("u{number:02}"), 1, [DAY + 20, DAY + 20]);
    }
    while site.gateway.asked("DELETE").is_empty() {
        site.job.step().await;
    }
    site.bucket("late", expires(1));
    site.object("late", "due", DAY + 20);
    site.pass().await;
    let deleted = site.gateway.asked("DELETE");
    let place = |what: &str| deleted.iter().position(|line| line == what).unwrap();
    assert!(place("DELETE /v1/a/late/due") < place("DELETE /v1/a/heavy+segments/k/u05"));
}

/// What is older than an upload was not made by it.
#[tokio::test]
async fn older_versions_are_not_looked_at() {
    let mut site = Site::new(10);
    site.versioned("b", ends_uploads());
    site.versions("b", 25, DAY + 5000, &[]);
    for number in 0..3 {
        site.upload("b", &format!("u{number}"), 0, [DAY + 20, 0]);
    }
    assert_eq!(site.pass().await, (3, 0));
    let asked = site.gateway.asked("HEAD");
    assert!(!asked.iter().any(|line| line.contains("?version-id=")), "{asked:?}");
}

/// The marker of an upload is written anew when what it made is about to be deleted: after a crash in between it is
/// younger than the version whose parts must stay.
#[tokio::test]
async fn parts_of_a_version_stay_whose_upload_is_open_again() {
    let mut site = Site::new(10);
    site.versioned("b", ends_uploads());
    site.upload("b", "u", 2, [DAY + 20, DAY + 9000]);
    site.versions("b", 1, DAY + 8000, &[("x-object-sysmeta-s3api-upload-id", "u")]);
    assert_eq!(site.pass().await, (0, 0));
    assert_eq!(site.gateway.asked("DELETE"), ["DELETE /v1/a/b+segments/k/u"]);
    // A change of a part's lock makes the part look young; the marker says that it was written anew.
    site.gateway.listings.lock().remove("/v1/a/b+segments");
    site.upload("b", "u", 2, [DAY + 20, DAY + 20]);
    site.reopen("/v1/a/b+segments/k/u");
    assert_eq!(site.pass().await, (0, 0));
    assert_eq!(site.gateway.asked("DELETE"), ["DELETE /v1/a/b+segments/k/u"]);
}

/// A step deletes a page of parts, so that a shutdown waits for no more.
#[tokio::test]
async fn an_upload_of_many_parts_ends_in_steps() {
    let mut site = Site::new(2);
    site.bucket("b", ends_uploads());
    site.upload("b", "u", 5, [DAY + 20, DAY + 20]);
    let mut most = 0;
    let mut all = vec![];
    while site.job.step().await != UpkeepStep::PassOver {
        let deleted = site.gateway.asked("DELETE");
        most = most.max(deleted.len());
        all.extend(deleted);
    }
    assert!(most <= 2, "{most}");
    assert_eq!(all.len(), 6);
    assert_eq!(all[5], "DELETE /v1/a/b+segments/k/u");
}
