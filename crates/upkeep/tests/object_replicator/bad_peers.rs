//! Peers that answer nonsense, slowly, or without end.

use crate::common::pass;
use crate::site::{DRIP, Mischief, PATIENCE, Site, names};

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_says_rubbish_costs_nothing_else() {
    let site = Site::new();
    let names = names(6);
    for name in &names {
        site.put(&site.nodes(name)[0], name, 1, b"x").await;
    }
    site.misbehave(&site.nodes(&names[0])[1], Mischief::Rubbish("REPLICATE"));
    let mut replicator = site.replicator(|_| {});
    let (_, failed) = pass(&mut replicator).await;
    assert!(failed > 0);
    site.door.mischief.lock().clear();
    assert_eq!(pass(&mut replicator).await.1, 0);
    site.assert_whole(&names);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_says_a_little_now_and_then_is_left_after_a_time_out() {
    let site = Site::new();
    site.put(&site.nodes("o")[0], "o", 1, b"x").await;
    for line in ["x", "\r\n"] {
        site.misbehave(&site.nodes("o")[1], Mischief::Trickles(line));
        let mut replicator = site.replicator(|options| options.http_timeout = DRIP * 5);
        let (_, failed) = tokio::time::timeout(PATIENCE, pass(&mut replicator)).await.unwrap();
        assert!(failed > 0, "{line:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_never_ends_is_left_soon() {
    let site = Site::new();
    site.put(&site.nodes("o")[0], "o", 1, b"x").await;
    let peer = &site.nodes("o")[1];
    for line in ["\r\n", ":UPDATES: START\r\n", ":MISSING_CHECK: START\r\n\r\n", "x"] {
        site.misbehave(peer, Mischief::Endless(line));
        let mut replicator = site.replicator(|_| {});
        let (_, failed) = tokio::time::timeout(PATIENCE * 4, pass(&mut replicator)).await.unwrap();
        assert!(failed > 0, "{line:?}");
    }
    site.door.mischief.lock().clear();
    assert_eq!(pass(&mut site.replicator(|_| {})).await.1, 0);
    site.assert_whole(&["o".into()]);
}
