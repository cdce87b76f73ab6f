//! Primaries bring each other what they lack.

use crate::common::pass;
use crate::site::{Site, names};
use std::sync::atomic::Ordering;
use vocabulary::Partition;

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_device_is_filled_again_and_then_nothing_is_left_to_do() {
    let site = Site::new();
    let names = names(20);
    for (number, name) in names.iter().enumerate() {
        let body = vec![b'x'; if number == 3 { 700_000 } else { number }];
        for node in &site.nodes(name)[..3] {
            site.put(node, name, 1, &body).await;
        }
    }
    let lost = site.dir.path().join("sd1");
    std::fs::remove_dir_all(lost.join("objects")).unwrap();
    let mut replicator = site.replicator(|_| {});
    let (done, failed) = pass(&mut replicator).await;
    assert!(done > 0 && failed == 0, "{done} {failed}");
    site.assert_whole(&names);
    for _ in 0..11 {
        assert_eq!(pass(&mut replicator).await, (0, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_wins_tombstones_and_posts_included() {
    let site = Site::new();
    let names = names(4);
    for name in &names {
        for node in &site.nodes(name)[..3] {
            site.put(node, name, 1, b"old").await;
        }
    }
    let nodes = |name: &String| site.nodes(name);
    site.delete(&nodes(&names[0])[0], &names[0], 5).await;
    site.put(&nodes(&names[1])[1], &names[1], 6, b"new").await;
    site.delete(&nodes(&names[1])[2], &names[1], 5).await;
    let post = [("content-type", "t/y"), ("x-object-meta-b", "c")];
    site.post(&nodes(&names[2])[2], &names[2], 7, &post).await;
    site.post(&nodes(&names[2])[0], &names[2], 8, &[("x-object-meta-d", "e")])
        .await;
    // A deletion that is known on a handoff only.
    site.delete(&nodes(&names[3])[3], &names[3], 9).await;
    let mut replicator = site.replicator(|_| {});
    for _ in 0..3 {
        assert_eq!(pass(&mut replicator).await.1, 0);
    }
    assert_eq!(pass(&mut replicator).await, (0, 0));
    site.assert_whole(&names);
    let ends = |name: &String| {
        let hash = site.hash.object("a", "c", name).hex();
        let content = site.content(&site.nodes(name)[0]);
        let mine = content.keys().filter(|path| path.starts_with(&hash)).cloned();
        mine.map(|path| path.rsplit('.').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ends(&names[0]), ["ts"]);
    assert_eq!(ends(&names[1]), ["data"]);
    assert_eq!(ends(&names[2]), ["data", "meta"]);
    assert_eq!(ends(&names[3]), ["ts"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_something_new_offers_it_before_others_offer_what_they_have() {
    let site = Site::new();
    let names = names(12);
    for name in &names {
        for node in &site.nodes(name)[..3] {
            site.put(node, name, 1, b"old").await;
        }
    }
    let mut replicator = site.replicator(|_| {});
    assert_eq!(pass(&mut replicator).await.1, 0);
    let mut partitions: Vec<Partition> = names.iter().map(|name| site.partition(name)).collect();
    partitions.sort_unstable();
    partitions.dedup();
    for name in &names {
        site.put(&site.nodes(name)[2], name, 2, b"new").await;
    }
    let before = site.door.exchanges.load(Ordering::Relaxed);
    assert_eq!(pass(&mut replicator).await.1, 0);
    site.assert_whole(&names);
    let exchanges = site.door.exchanges.load(Ordering::Relaxed) - before;
    assert_eq!(exchanges, 2 * partitions.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_the_place_of_a_partition_goes_to_quarantine_and_holds_up_nothing() {
    let site = Site::new();
    let nodes = site.nodes("o");
    let partition = site.partition("o").to_string();
    site.put(&nodes[0], "o", 1, b"on one").await;
    // One belongs there, the other does not.
    for device in [&nodes[1], &nodes[3]] {
        let objects = site.dir.path().join(device).join("objects");
        std::fs::create_dir_all(&objects).unwrap();
        std::fs::write(objects.join(&partition), b"foreign").unwrap();
    }
    let mut replicator = site.replicator(|options| options.handoffs_first = true);
    for _ in 0..2 {
        pass(&mut replicator).await;
    }
    site.assert_whole(&["o".into()]);
    for device in [&nodes[1], &nodes[3]] {
        let quarantine = site.dir.path().join(device).join("quarantined/objects");
        let kept = quarantine.join(format!("objects-{partition}"));
        assert_eq!(std::fs::read(kept).unwrap(), b"foreign");
    }
}
