//! Parts of what goes: all of them go, and none that something else is made of.

use super::expires;
use super::site::{DAY, Site, now};
use lifecycle::{LifecycleRule, NoncurrentExpiration};
use serde_json::{Value, json};
use vocabulary::Timestamp;

/// A bucket with the object `k` that the upload `u` has made of two parts, whose numbers it says.
fn site_with_object(numbers: Option<&'static str>) -> Site {
    let site = Site::new(10);
    site.bucket("b", expires(1));
    with_object(&site, numbers);
    site
}

fn with_object(site: &Site, numbers: Option<&'static str>) {
    site.object("b", "k", DAY + 20);
    made_by_upload(site, "/v1/a/b/k", numbers);
    for part in 1..=2 {
        site.put("b+segments", json!({"name": format!("k/u/{part}")}), "", DAY + 20, &[]);
    }
}

fn made_by_upload(site: &Site, path: &str, numbers: Option<&'static str>) {
    let mut objects = site.gateway.objects.lock();
    let headers = objects.get_mut(path).unwrap();
    headers.push(("x-static-large-object", "True".into()));
    headers.push(("x-object-sysmeta-s3api-upload-id", "u".into()));
    headers.extend(numbers.map(|numbers| ("x-object-sysmeta-s3api-part-numbers", numbers.into())));
}

/// A first try deletes the object, and its answer is lost.
#[tokio::test]
async fn parts_go_also_where_the_answer_to_the_deletion_is_lost() {
    let mut site = site_with_object(Some("1-2"));
    site.gateway.losing.lock().push("/v1/a/b/k".into());
    assert_eq!(site.pass().await, (0, 0));
    assert_eq!(site.gateway.names("b+segments"), [""; 0]);
}

/// A container server that was away lists none of the parts yet.
#[tokio::test]
async fn parts_go_that_are_not_listed_yet() {
    for numbers in [Some("1-2"), None] {
        let mut site = site_with_object(numbers);
        site.gateway.listings.lock().remove("/v1/a/b+segments");
        // What OpenStack's s3api has made says its parts in its manifest alone.
        let part = |number: u32| json!({"name": format!("/b+segments/k/u/{number}"), "bytes": 1, "hash": "x"});
        let manifest = vec![part(2), part(1)];
        site.gateway.listings.lock().insert("/v1/a/b/k".into(), manifest);
        assert_eq!(site.pass().await, (1, 0));
        let deleted = site.gateway.asked("DELETE");
        let [object, parts @ .., marker] = &deleted[..] else {
            panic!("{deleted:?}")
        };
        assert_eq!(
            (&**object, &**marker),
            ("DELETE /v1/a/b/k", "DELETE /v1/a/b+segments/k/u")
        );
        assert_eq!(
            parts,
            ["DELETE /v1/a/b+segments/k/u/1", "DELETE /v1/a/b+segments/k/u/2"]
        );
    }
}

/// What a suspended bucket has without a version: after a crash behind its deletion the marker names its parts.
#[tokio::test]
async fn the_upload_is_open_before_what_it_made_goes() {
    let mut site = Site::new(10);
    site.versioned("b", expires(1));
    with_object(&site, Some("1-2"));
    is_latest(&site);
    assert_eq!(site.pass().await, (1, 0));
    let asked = site.gateway.asked("");
    let at = |what: &str| asked.iter().position(|line| line == what).unwrap();
    assert!(at("PUT /v1/a/b+segments/k/u") < at("DELETE /v1/a/b/k"), "{asked:?}");
    assert_eq!(site.gateway.names("b+segments"), [""; 0]);
}

/// Makes `k` the latest of its versions, which has none.
fn is_latest(site: &Site) {
    let row = json!({"version_id": "null", "is_latest": true});
    let mut listings = site.gateway.listings.lock();
    let listed = listings.get_mut("/v1/a/b").unwrap()[0].as_object_mut().unwrap();
    listed.extend(row.as_object().unwrap().clone());
    drop(listings);
    let mut objects = site.gateway.objects.lock();
    let object = objects["/v1/a/b/k"].clone();
    objects.insert("/v1/a/b/k?version-id=null".into(), object);
}

/// The manifest of a version was stored again as what has no version: its ACL was changed, say.
#[tokio::test]
async fn parts_stay_that_a_version_is_made_of_as_well() {
    let mut site = Site::new(10);
    site.versioned("b", expires(1));
    with_object(&site, Some("1-2"));
    is_latest(&site);
    let id = Timestamp::from_seconds(now() - DAY - 30).normal();
    let row = json!({"name": "k", "version_id": id, "bytes": 1, "hash": "x; slo_etag=y", "content_type": "t",
        "is_latest": false});
    site.put("b", row, &format!("?version-id={id}"), DAY + 30, &[]);
    made_by_upload(&site, &format!("/v1/a/b/k?version-id={id}"), Some("1-2"));
    assert_eq!(site.pass().await, (1, 0));
    assert_eq!(site.gateway.asked("DELETE"), ["DELETE /v1/a/b/k"]);
}

/// A server that is away for a week is no reason for rules to rest that long.
#[tokio::test]
async fn versions_of_parts_that_cannot_be_compared_hold_up_no_others() {
    let mut site = Site::new(100);
    let rule = LifecycleRule {
        is_enabled: true,
        noncurrent: Some(NoncurrentExpiration {
            days: 1,
            newer_versions: None,
        }),
        ..LifecycleRule::default()
    };
    site.versioned("b", rule);
    let mut plain = vec![];
    for number in 0..24 {
        // More keys than may fail in a row.
        let (key, is_made_of_parts) = (format!("k{number:02}"), number < 12);
        for (age, is_latest) in [(DAY + 20, true), (DAY + 30, false)] {
            let id = Timestamp::from_seconds(now() - age).normal();
            let (query, path) = (format!("?version-id={id}"), format!("/v1/a/b/{key}?version-id={id}"));
            let hash = if is_made_of_parts && !is_latest {
                "x; slo_etag=y"
            } else {
                "x"
            };
            let row = json!({"name": key, "version_id": id, "bytes": 1, "hash": hash, "content_type": "t",
                "is_latest": is_latest});
            site.put("b", row, &query, age, &[]);
            match (is_latest, is_made_of_parts) {
                (true, _) => {}
                (false, true) => made_by_upload(&site, &path, Some("1-2")),
                (false, false) => plain.push(format!("DELETE {path}")),
            }
        }
    }
    *site.servers.lists_nothing.lock() = true;
    assert_eq!(site.pass().await, (12, 12));
    assert_eq!(site.gateway.asked("DELETE"), plain);
}

/// Versions are kept since a moment ago: what is gone has become one.
#[tokio::test]
async fn parts_stay_where_versions_are_kept_meanwhile() {
    let mut site = site_with_object(Some("1-2"));
    site.gateway.losing.lock().push("/v1/a/b/k".into());
    let enabled = vec![("x-versions-enabled", "True".to_owned())];
    site.gateway.objects.lock().insert("/v1/a/b".into(), enabled);
    assert_eq!(site.pass().await, (0, 0));
    assert_eq!(site.gateway.names("b+segments"), ["k/u/1", "k/u/2", "k/u"]);
}

/// A bucket that keeps versions, an older one of which was made of parts; its row has this entity tag.
fn site_with_older(hash: &str) -> Site {
    let site = Site::new(10);
    site.versioned(
        "b",
        LifecycleRule {
            is_enabled: true,
            noncurrent: Some(NoncurrentExpiration {
                days: 1,
                newer_versions: None,
            }),
            ..LifecycleRule::default()
        },
    );
    let id = |age: u64| Timestamp::from_seconds(now() - age).normal();
    for (age, is_latest) in [(DAY + 20, true), (DAY + 30, false)] {
        let row = json!({"name": "k", "version_id": id(age), "bytes": 1, "hash": hash, "content_type": "t",
            "is_latest": is_latest});
        site.put("b", row, &format!("?version-id={}", id(age)), age, &[]);
    }
    made_by_upload(&site, &format!("/v1/a/b/k?version-id={}", id(DAY + 30)), Some("1"));
    site.put("b+segments", json!({"name": "k/u/1"}), "", DAY + 20, &[]);
    site
}

/// A secret is lost: rows do not say what is large, and nothing can be decrypted.
#[tokio::test]
async fn rules_need_no_key() {
    let mut site = site_with_older("<unknown>");
    site.gateway.sealed.lock().push("/v1/a/b/k".into());
    assert_eq!(site.pass().await, (1, 0));
    assert_eq!(site.gateway.names("b+segments"), [""; 0]);
}

/// Gateways encrypt and this daemon's does not decrypt: what versions a key has is not known.
#[tokio::test]
async fn a_bucket_whose_versions_are_encrypted_waits() {
    let mut site = site_with_older("Y2lwaGVy; swift_meta=%7B%7D");
    assert_eq!(site.pass().await, (0, 1));
    assert_eq!(site.gateway.asked(""), [""; 0]);
    // Without versions, no rule asks for what is encrypted.
    site = site_with_object(Some("1-2"));
    site.gateway.listings.lock().get_mut("/v1/a/b").unwrap()[0]["hash"] = Value::from("Y2lwaGVy; swift_meta=%7B%7D");
    assert_eq!(site.pass().await, (1, 0));
    assert_eq!(site.gateway.names("b+segments"), [""; 0]);
}

/// What cannot be read says nothing of servers, which do what they are asked for other keys.
#[tokio::test]
async fn unreadable_objects_hold_up_no_others() {
    let mut site = Site::new(100);
    site.bucket("b", expires(1));
    for number in 0..20 {
        site.object("b", &format!("k{number:02}"), DAY + 20);
    }
    site.gateway.unreadable.lock().push("/v1/a/b/k0".into());
    assert_eq!(site.pass().await, (10, 10));
}
