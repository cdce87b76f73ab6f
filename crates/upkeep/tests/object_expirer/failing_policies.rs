//! A policy that cannot be served takes neither the time nor the rows of the others.

use crate::common::pass;
use crate::site::{Servers, Site, ago, site, with_servers};
use std::sync::Arc;
use upkeep::UpkeepJob;

/// How often the gateway was asked to delete something in a container.
fn asked(site: &Site, container: &str) -> usize {
    let deleted = site.cluster.deleted.lock();
    let path = format!("/v1/a/{container}/");
    deleted.iter().filter(|line| line.starts_with(&path)).count()
}

fn rows(container: &str, count: usize) -> Vec<(String, &'static str)> {
    let due = ago(100);
    let row = |number| (format!("{due}-a/{container}/{number:03}"), "text/plain");
    (0..count).map(row).collect()
}

/// The container `gone` has policy 9, of which there is no ring.
#[tokio::test]
async fn nothing_is_asked_about_a_policy_without_a_ring() {
    let all = [rows("gone", 50), rows("c", 50)].concat();
    let mut site = with_servers(site(&all, &[], |_| {}), &Arc::new(Servers::default()));
    assert_eq!(pass(&mut site.expirer).await, (50, 50));
    assert_eq!(asked(&site, "gone"), 0);
    assert!(site.expirer.oldest().is_some());
}

/// Each request to the container `down` fails after a while.
#[tokio::test(start_paused = true)]
async fn a_policy_whose_servers_are_down_holds_up_no_other() {
    // Spread over shards: the gateway deletes one by one.
    let all = [rows("down", 100), rows("far", 100)].concat();
    let change = |options: &mut upkeep::ExpirerOptions| options.concurrency = 1;
    let mut site = with_servers(site(&all, &[], change), &Arc::new(Servers::default()));
    let began = tokio::time::Instant::now();
    assert_eq!(pass(&mut site.expirer).await, (100, 100));
    assert_eq!((asked(&site, "far"), asked(&site, "down")), (100, 6));
    assert!(began.elapsed().as_secs() < 70, "{:?}", began.elapsed());
    // The next pass tries again.
    pass(&mut site.expirer).await;
    assert_eq!(asked(&site, "down"), 12);
}

/// What batches have finished is out of the queue before the gateway is asked for the rest.
#[tokio::test]
async fn rows_do_not_wait_for_the_gateway() {
    let all = [rows("c", 10), rows("far", 1)].concat();
    let mut site = with_servers(site(&all, &[], |_| {}), &Arc::new(Servers::default()));
    *site.cluster.watched.lock() = Some(site.fake.clone());
    assert_eq!(pass(&mut site.expirer).await, (11, 0));
    // At the time of the gateway's only deletion: an UPDATE to each of three servers.
    assert_eq!(*site.cluster.updates_before.lock(), [3]);
}
