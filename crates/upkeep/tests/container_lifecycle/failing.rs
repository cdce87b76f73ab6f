//! What servers fail to do holds up neither other buckets nor, where it is not the whole bucket, other keys.

use super::expires;
use super::site::{DAY, Site};
use std::collections::BTreeMap;
use vocabulary::PolicyIndex;

fn site_with(keys: usize, failing: &[&str]) -> Site {
    let site = Site::new(1000);
    site.bucket("b", expires(1));
    for number in 0..keys {
        site.object("b", &format!("k{number:03}"), DAY + 20);
    }
    let failing = failing.iter().map(|key| format!("/v1/a/b/{key}"));
    site.gateway.failing.lock().extend(failing);
    site
}

/// There is no second try with a pause before it, which the next pass is.
#[tokio::test]
async fn a_bucket_whose_servers_fail_is_left_soon() {
    let mut site = site_with(200, &["k"]);
    let (done, failed) = site.pass().await;
    assert_eq!(done, 0);
    let mut tries = BTreeMap::<String, u32>::new();
    for asked in site.gateway.asked("") {
        *tries.entry(asked).or_default() += 1;
    }
    assert!(tries.values().all(|tries| *tries == 1), "{tries:?}");
    // The bucket counts, too.
    assert!(
        (8..=9).contains(&tries.len()) && failed == 1 + tries.len() as u64,
        "{tries:?}"
    );
}

#[tokio::test]
async fn keys_for_which_servers_fail_hold_up_no_others() {
    let mut site = site_with(40, &["k003", "k01", "k030"]);
    // k010 to k019 are too many in a row.
    assert_eq!(site.pass().await, (9, 10));
    site.gateway.failing.lock().remove(1);
    assert_eq!(site.pass().await, (29, 2));
}

#[tokio::test]
async fn a_bucket_whose_policy_has_gone_is_left() {
    let mut site = Site::new(1000);
    site.create("b", PolicyIndex(7), expires(1), &[]);
    site.object("b", "k", DAY + 20);
    assert_eq!(site.pass().await, (0, 1));
    assert!(site.gateway.asked("").is_empty());
}
