//! The gateway among nodes that are silent: they are passed over, and no request waits for them that has its answer
//! without them; where all are silent, all are waited for.
//!
//! Every node is a scripted storage service that can be stopped, as SIGSTOP does it, and goes on. Time-outs are an
//! hour: a test that ends has waited for none.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod cluster;

use bytes::Bytes;
use cluster::{HOUR, SILENCE, cluster, cluster_with, large, small};
use gateway::GatewayOptions;
use http::{HeaderValue, Method};
use request_pipeline::{LockName, LockRefusal};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use vocabulary::{EntityPath, PolicyIndex};

/// Reads end at once, whatever they find, and no request reaches the node but one that finds out whether it answers.
#[tokio::test]
async fn a_silent_node_is_asked_last() {
    let cluster = cluster(5);
    cluster.put_on(0..3, &small(), "1");
    cluster.silence(0).await;
    let asked = cluster.asked(0);
    for _ in 0..50 {
        assert_eq!(cluster.ask(Method::GET, &[], Bytes::new()).await, (200, small()));
        assert_eq!(
            cluster.ask(Method::GET, &[("x-newest", "true")], Bytes::new()).await,
            (200, small())
        );
    }
    for place in 1..3 {
        cluster.nodes[place].objects.lock().clear();
    }
    for _ in 0..50 {
        assert_eq!(
            cluster.status(Method::HEAD, Bytes::new()).await,
            404,
            "two of three know of none"
        );
    }
    assert!(cluster.asked(0) <= asked + 1, "{} of {asked}", cluster.asked(0));
    assert_eq!(cluster.gateway.silence().times(), 1);
}

#[tokio::test]
async fn it_is_asked_where_the_others_do_not_agree() {
    let cluster = Arc::new(cluster(3));
    cluster.put_on([0], &small(), "1");
    cluster.silence(0).await;
    // One of the two that speak is gone: there is no quorum for a 404.
    cluster.stop([1]);
    let reading = tokio::spawn({
        let cluster = cluster.clone();
        async move { cluster.ask(Method::GET, &[], Bytes::new()).await }
    });
    tokio::time::sleep(3 * SILENCE).await;
    assert!(!reading.is_finished());
    cluster.go_on([0]);
    assert_eq!(reading.await.unwrap(), (200, small()));
}

#[tokio::test]
async fn the_newest_is_found_on_a_handoff_in_place_of_a_silent_primary() {
    let (cluster, newer) = (cluster(5), Bytes::from_static(b"newer"));
    cluster.put_on(0..3, &small(), "1");
    cluster.put_on([3], &newer, "2");
    cluster.silence(0).await;
    for _ in 0..5 {
        let found = cluster.ask(Method::GET, &[("x-newest", "true")], Bytes::new()).await;
        assert_eq!(found, (200, newer.clone()));
    }
}

/// It is not known yet: the read that waits for it asks another beside it.
#[tokio::test]
async fn a_read_goes_on_when_its_node_falls_silent() {
    for concurrent in [false, true] {
        let cluster = cluster(5);
        cluster.put_on(0..3, &small(), "1");
        cluster.stop([0, 1]);
        let headers: &[_] = if concurrent { &[("x-newest", "true")] } else { &[] };
        for _ in 0..10 {
            assert_eq!(cluster.ask(Method::GET, headers, Bytes::new()).await, (200, small()));
        }
    }
}

#[tokio::test]
async fn a_handoff_takes_what_is_written() {
    for bytes in [small(), large()] {
        let cluster = cluster(5);
        cluster.silence(0).await;
        let asked = cluster.asked(0);
        for _ in 0..20 {
            assert_eq!(cluster.status(Method::PUT, bytes.clone()).await, 201);
            assert_eq!(cluster.holders(&bytes), [1, 2, 3]);
            assert_eq!(cluster.status(Method::POST, Bytes::new()).await, 202);
            assert_eq!(cluster.status(Method::DELETE, Bytes::new()).await, 204);
            assert!(cluster.holders(&bytes).is_empty());
        }
        assert!(cluster.asked(0) <= asked + 1, "{} of {asked}", cluster.asked(0));
    }
}

/// It is not known yet: an upload that waits for its word goes to a handoff.
#[tokio::test]
async fn an_upload_goes_on_when_its_node_falls_silent() {
    let (cluster, bytes) = (cluster(5), large());
    cluster.stop([1]);
    assert_eq!(cluster.status(Method::PUT, bytes.clone()).await, 201);
    assert_eq!(cluster.holders(&bytes), [0, 2, 3]);
}

/// They are not known to be silent yet: handoffs take what they do not, and they take it themselves when they go on.
#[tokio::test]
async fn a_write_goes_on_when_its_nodes_fall_silent() {
    let cluster = cluster(5);
    cluster.stop([0, 1]);
    assert_eq!(cluster.status(Method::PUT, small()).await, 201);
    assert_eq!(cluster.holders(&small()), [2, 3, 4]);
    cluster.go_on([0, 1]);
    let until = Instant::now() + Duration::from_secs(30);
    while cluster.holders(&small()).len() < 5 {
        tokio::time::sleep(SILENCE / 10).await;
        assert!(Instant::now() < until);
    }
}

/// One primary has deleted it, and a handoff that never had it has taken note: that is a quorum.
#[tokio::test]
async fn a_deletion_waits_for_no_silent_node_where_others_have_taken_note() {
    let cluster = cluster(4);
    cluster.put_on(0..3, &small(), "1");
    cluster.silence(0).await;
    cluster.silence(1).await;
    assert_eq!(cluster.status(Method::DELETE, Bytes::new()).await, 204);
}

/// A node without the object takes no note of a deletion on a condition.
#[tokio::test]
async fn a_deletion_on_a_condition_asks_silent_nodes_too() {
    let cluster = Arc::new(cluster(4));
    cluster.put_on(0..3, &small(), "1");
    cluster.silence(0).await;
    cluster.silence(1).await;
    let asking = cluster.clone();
    let deleting = tokio::spawn(async move {
        let condition = [("x-if-delete-at", "1800000000")];
        asking.ask(Method::DELETE, &condition, Bytes::new()).await.0
    });
    tokio::time::sleep(3 * SILENCE).await;
    assert!(!deleting.is_finished());
    cluster.go_on([0, 1]);
    assert_eq!(deleting.await.unwrap(), 204);
    assert!(cluster.holders(&small()).len() < 2);
}

/// A node that hangs with as much of a body as may wait for it does not hold up what becomes of the upload.
#[tokio::test]
async fn an_upload_that_fails_waits_for_no_node_that_hangs() {
    let (cluster, bytes) = (cluster(5), Bytes::from(vec![b'x'; 600_000]));
    cluster.nodes[0].takes_no_bodies.send_replace(true);
    let other = [("etag", "d41d8cd98f00b204e9800998ecf8427e")];
    let answer = tokio::time::timeout(Duration::from_secs(30), cluster.ask(Method::PUT, &other, bytes)).await;
    assert_eq!(answer.unwrap().0, 422);
}

/// The calls of uploads that went on without a node end after its time, whatever it does.
#[tokio::test]
async fn a_node_that_hangs_keeps_no_calls_of_uploads() {
    let (cluster, bytes) = (cluster_with(5, GatewayOptions::default(), 3 * SILENCE), large());
    cluster.stop([0]);
    assert_eq!(cluster.status(Method::PUT, bytes.clone()).await, 201);
    assert_eq!(cluster.holders(&bytes), [1, 2, 3]);
    let until = Instant::now() + Duration::from_secs(30);
    while cluster.under_way(0) > 0 {
        tokio::time::sleep(SILENCE / 10).await;
        assert!(Instant::now() < until);
    }
}

/// Three nodes for three replicas: nothing takes its place, and nothing waits for it.
#[tokio::test]
async fn without_a_handoff_a_quorum_is_enough() {
    for bytes in [small(), large()] {
        let cluster = cluster(3);
        cluster.silence(2).await;
        let asked = cluster.asked(2);
        for _ in 0..20 {
            assert_eq!(cluster.status(Method::PUT, bytes.clone()).await, 201);
            assert_eq!(cluster.holders(&bytes), [0, 1]);
        }
        assert!(cluster.asked(2) <= asked + 1, "{} of {asked}", cluster.asked(2));
    }
}

/// A handoff that never had the object does not speak for a silent primary.
#[tokio::test]
async fn a_change_waits_for_it_where_the_others_do_not_agree() {
    let cluster = Arc::new(cluster(5));
    cluster.put_on([0, 1], &small(), "1");
    cluster.silence(0).await;
    let changing = tokio::spawn({
        let cluster = cluster.clone();
        async move { cluster.status(Method::POST, Bytes::new()).await }
    });
    tokio::time::sleep(3 * SILENCE).await;
    assert!(!changing.is_finished());
    cluster.go_on([0]);
    assert_eq!(changing.await.unwrap(), 202);
}

/// Nor does one that never had the container, where primaries are late.
#[tokio::test]
async fn a_change_of_a_container_waits_for_primaries_that_have_it() {
    let cluster = Arc::new(cluster(5));
    for node in &cluster.container_nodes[3..] {
        node.lacks_containers.store(true, SeqCst);
    }
    for node in &cluster.container_nodes[..2] {
        node.is_stopped.send_replace(true);
    }
    let asking = cluster.clone();
    let changing = tokio::spawn(async move { asking.ask_for("/v1/a/c", Method::POST, &[], Bytes::new()).await.0 });
    tokio::time::sleep(3 * SILENCE).await;
    for node in &cluster.container_nodes[..2] {
        node.is_stopped.send_replace(false);
    }
    assert_eq!(changing.await.unwrap(), 204);
}

/// A cluster that stands still as a whole is waited for: what was asked before and what is asked meanwhile ends well.
#[tokio::test]
async fn where_all_are_silent_all_are_waited_for() {
    for count in [3, 5] {
        let cluster = Arc::new(cluster(count));
        let all = || 0..usize::from(count);
        cluster.put_on(0..3, &small(), "1");
        cluster.stop(all());
        let ask = |method: Method, body: Bytes| {
            let cluster = cluster.clone();
            tokio::spawn(async move { (method.clone(), cluster.status(method, body).await) })
        };
        let mut asked = Vec::new();
        for _ in 0..3 {
            asked.push(ask(Method::GET, Bytes::new()));
            asked.push(ask(Method::POST, Bytes::new()));
            asked.push(ask(Method::PUT, small()));
            asked.push(ask(Method::PUT, large()));
            tokio::time::sleep(2 * SILENCE).await;
        }
        assert_eq!(cluster.gateway.silence().silent(), usize::from(count));
        assert!(asked.iter().all(|asked| !asked.is_finished()));
        cluster.go_on(all());
        for asked in asked {
            let (method, status) = asked.await.unwrap();
            assert!((200..300).contains(&status), "{method}: {status}");
        }
        // Each of them was the last to be asked by something.
        cluster.put_on(0..3, &small(), "1");
        let until = Instant::now() + Duration::from_secs(30);
        while cluster.gateway.silence().silent() > 0 {
            cluster.status(Method::GET, Bytes::new()).await;
            cluster.status(Method::PUT, small()).await;
            assert!(Instant::now() < until);
        }
    }
}

#[tokio::test]
async fn a_node_that_answers_again_is_asked_again() {
    let cluster = cluster(5);
    cluster.put_on(0..3, &small(), "1");
    cluster.silence(0).await;
    // A request passes it over, and a HEAD asks whether it answers.
    assert_eq!(cluster.status(Method::GET, Bytes::new()).await, 200);
    cluster.go_on([0]);
    let until = Instant::now() + Duration::from_secs(30);
    while cluster.gateway.silence().silent() > 0 {
        assert_eq!(cluster.status(Method::GET, Bytes::new()).await, 200);
        assert!(Instant::now() < until);
    }
    assert_eq!(cluster.status(Method::PUT, small()).await, 201);
    assert!(cluster.holders(&small()).contains(&0));
    let asked = cluster.asked(0);
    for _ in 0..100 {
        assert_eq!(cluster.status(Method::GET, Bytes::new()).await, 200);
    }
    assert!(cluster.asked(0) > asked);
}

/// What it did not answer in time was counted against it, so that it was left alone; that is over with its silence.
#[tokio::test]
async fn a_node_that_answers_again_is_not_left_alone() {
    let options = GatewayOptions {
        error_suppression_limit: 0,
        error_suppression_interval: HOUR,
        ..GatewayOptions::default()
    };
    for bytes in [small(), large()] {
        for method in [Method::GET, Method::PUT] {
            let cluster = cluster_with(5, options.clone(), 3 * SILENCE);
            cluster.put_on(0..3, &bytes, "1");
            cluster.silence(0).await;
            // It waits for the node until its time is over.
            let lock = [("x-backend-write-lock", "l")];
            assert_eq!(cluster.ask(Method::PUT, &lock, bytes.clone()).await.0, 201);
            cluster.go_on([0]);
            let until = Instant::now() + Duration::from_secs(30);
            while cluster.gateway.silence().silent() > 0 {
                cluster.status(method.clone(), bytes.clone()).await;
                assert!(Instant::now() < until, "it is not asked whether it answers");
            }
            cluster.nodes[0].objects.lock().clear();
            assert_eq!(cluster.status(Method::PUT, bytes.clone()).await, 201);
            assert_eq!(cluster.holders(&bytes)[0], 0);
        }
    }
}

/// It hangs over what it is to store and answers all else, so that it is silent for moments: what it did not answer in
/// time is not forgiven each time.
#[tokio::test]
async fn a_node_that_answers_questions_and_stores_nothing_is_left_alone() {
    let options = GatewayOptions {
        error_suppression_limit: 3,
        error_suppression_interval: HOUR,
        ..GatewayOptions::default()
    };
    let cluster = cluster_with(5, options, 3 * SILENCE);
    cluster.nodes[0].takes_no_bodies.send_replace(true);
    let until = Instant::now() + Duration::from_secs(30);
    let mut left_alone = 0;
    while left_alone < 30 {
        let asked = cluster.asked(0);
        assert_eq!(cluster.status(Method::PUT, small()).await, 201);
        tokio::time::sleep(SILENCE / 10).await;
        left_alone = if cluster.asked(0) > asked { 0 } else { left_alone + 1 };
        assert!(Instant::now() < until, "writes go to it again and again");
    }
}

/// That it answers again says that its device is gone.
#[tokio::test]
async fn a_silent_node_whose_device_is_gone_is_left_alone() {
    let cluster = cluster(5);
    cluster.put_on(0..3, &small(), "1");
    cluster.silence(0).await;
    cluster.nodes[0].is_gone.store(true, SeqCst);
    cluster.go_on([0]);
    let until = Instant::now() + Duration::from_secs(30);
    while cluster.gateway.silence().silent() > 0 {
        assert_eq!(cluster.status(Method::GET, Bytes::new()).await, 200);
        assert!(Instant::now() < until);
    }
    let asked = cluster.asked(0);
    for _ in 0..100 {
        assert_eq!(cluster.status(Method::GET, Bytes::new()).await, 200);
    }
    assert_eq!(cluster.asked(0), asked);
}

/// Most primaries have to grant a lock. One that is silent is not waited for; where two are, both are.
#[tokio::test]
async fn a_lock_is_taken_from_those_that_answer() {
    let cluster = cluster(5);
    let locks = cluster.gateway.write_locks();
    let name = LockName {
        entity: EntityPath::account("a").with_container("c").with_object("o"),
        policy: PolicyIndex(0),
        value: HeaderValue::from_static("lock"),
        trans_id: "tx".into(),
    };
    cluster.put_on(0..3, &small(), "1");
    cluster.silence(0).await;
    let asked = cluster.asked(0);
    assert!(locks.take(&name, Duration::from_secs(10)).await.is_ok());
    assert!(cluster.asked(0) <= asked + 1);

    cluster.stop([1]);
    let mut taking = std::pin::pin!(locks.take(&name, Duration::from_secs(10)));
    let early = tokio::time::timeout(5 * SILENCE, &mut taking).await;
    assert!(
        early.is_err(),
        "one of three is no majority: {:?}",
        early.map(|taken| taken.err())
    );
    cluster.go_on([1]);
    assert_eq!(taking.await.err(), None::<LockRefusal>);
}

/// The next who takes the lock asks primaries only: what went to a handoff in their place would not be seen.
#[tokio::test]
async fn what_is_written_under_a_lock_goes_to_primaries_alone() {
    for bytes in [small(), large()] {
        let cluster = Arc::new(cluster(5));
        cluster.silence(0).await;
        let (asking, body) = (cluster.clone(), bytes.clone());
        let put = tokio::spawn(async move {
            let lock = [("x-backend-write-lock", "l")];
            asking.ask(Method::PUT, &lock, body).await.0
        });
        tokio::time::sleep(4 * SILENCE).await;
        assert!(!put.is_finished());
        cluster.go_on([0]);
        assert_eq!(put.await.unwrap(), 201);
        assert_eq!(cluster.holders(&bytes), [0, 1, 2]);
    }
}
