//! What lies on a handoff goes home, and only then away.

use crate::common::pass;
use crate::site::{Mischief, Site, names};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn a_handoff_goes_only_when_all_primaries_have_it() {
    let site = Site::new();
    let name = "handed off".to_owned();
    let nodes = site.nodes(&name);
    let handoff = nodes[3].clone();
    site.put(&handoff, &name, 1, b"only here").await;
    let mut replicator = site.replicator(|options| {
        (options.node_timeout, options.http_timeout) = (Duration::from_secs(2), Duration::from_secs(2));
    });
    for mischief in [
        Mischief::Refuses(507),
        Mischief::Refuses(500),
        Mischief::Rubbish("SSYNC"),
        Mischief::Greedy,
        Mischief::Silent,
    ] {
        for device in &nodes[..3] {
            site.misbehave(device, mischief);
        }
        // Whatever two of them say, the third does not have it.
        for device in &nodes[..2] {
            site.door.mischief.lock().remove(device);
            let began = Instant::now();
            let (_, failed) = pass(&mut replicator).await;
            assert!(failed > 0);
            assert!(began.elapsed() < Duration::from_secs(40));
            assert_eq!(site.content(&handoff).len(), 1);
        }
        assert_eq!(site.content(&nodes[0]).len(), 1);
    }
    site.door.mischief.lock().clear();
    let mut replicator = site.replicator(|_| {});
    assert_eq!(pass(&mut replicator).await.1, 0);
    site.assert_whole(&[name]);
    let partition = site.partition("handed off").to_string();
    assert!(!site.dir.path().join(handoff).join("objects").join(partition).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_handoffs_first_nothing_else_is_copied_before_they_are_home() {
    let site = Site::new();
    let names = names(20);
    let (away, rest) = names.split_first().unwrap();
    site.put(&site.nodes(away)[3], away, 1, b"only here").await;
    let mut names = vec![away.clone()];
    names.extend(
        rest.iter()
            .filter(|name| site.partition(name) != site.partition(away))
            .cloned(),
    );
    for name in &names[1..] {
        site.put(&site.nodes(name)[0], name, 1, b"on one").await;
    }
    let before = site.content(&site.nodes(away)[0]);
    let down = site.nodes(away)[1].clone();
    site.misbehave(&down, Mischief::Refuses(500));
    let mut replicator = site.replicator(|options| options.handoffs_first = true);
    for _ in 0..2 {
        let (done, failed) = pass(&mut replicator).await;
        assert_eq!((done, failed), (0, 1));
    }
    // The handoff alone has travelled.
    assert_eq!(site.content(&site.nodes(away)[0]).len(), before.len() + 1);
    site.door.mischief.lock().clear();
    let mut passes = 1;
    while pass(&mut replicator).await != (0, 0) {
        passes += 1;
        assert!(passes < 10, "it does not come to rest");
    }
    site.assert_whole(&names);
}

#[tokio::test(flavor = "multi_thread")]
async fn fewer_primaries_are_enough_when_the_operator_says_so() {
    let site = Site::new();
    let nodes = site.nodes("o");
    site.put(&nodes[3], "o", 1, b"only here").await;
    site.misbehave(&nodes[1], Mischief::Refuses(507));
    let mut replicator = site.replicator(|options| options.handoff_delete = Some(2));
    pass(&mut replicator).await;
    assert!(site.content(&nodes[3]).is_empty());
    assert_eq!(site.content(&nodes[0]).len(), 1);
    assert_eq!(site.content(&nodes[2]).len(), 1);
}
