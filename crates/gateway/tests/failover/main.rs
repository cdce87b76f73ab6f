//! The gateway among nodes that misbehave by name: what it acknowledges is on a quorum of nodes, what
//! it serves is whole, and one bad node is never a client's trouble.
//!
//! Every node is a scripted storage service with an address of its own in the ring (`cluster.rs`).

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod cluster;

use bytes::Bytes;
use cluster::{Cluster, Mood, NODES, chunks, cluster, cluster_of, cluster_with, large, small};
use http::Method;
use peer::{Body, BodyError};
use settings::SortingMethod;
use settings::kinds::OptionValue;
use std::time::Duration;

#[tokio::test]
async fn a_write_reaches_three_nodes_whatever_one_of_them_does() {
    for bytes in [small(), large()] {
        for mood in [Mood::Well, Mood::Gone, Mood::Broken, Mood::Hung] {
            let cluster = cluster();
            cluster.set(0, mood);
            assert_eq!(cluster.put(&bytes).await, 201, "{mood:?}");
            let enough = if mood == Mood::Hung { 2 } else { 3 };
            assert!(
                cluster.holders(&bytes) >= enough,
                "{mood:?}: {}",
                cluster.holders(&bytes)
            );
        }
    }
}

#[tokio::test]
async fn what_reaches_a_node_otherwise_is_no_object_there() {
    for bytes in [small(), large()] {
        let cluster = cluster();
        cluster.set(1, Mood::Garbles);
        assert_eq!(cluster.put(&bytes).await, 201);
        assert_eq!(cluster.holders(&bytes), 2);
        assert_eq!(cluster.copies(), 2);
    }
}

#[tokio::test]
async fn what_a_node_has_stored_otherwise_is_not_acknowledged() {
    for bytes in [small(), large()] {
        let cluster = cluster();
        cluster.set(1, Mood::GarblesBlindly);
        assert_eq!(cluster.put(&bytes).await, 500);
    }
}

#[tokio::test]
async fn object_servers_are_sent_the_next_partition_power() {
    let mut cluster = cluster();
    let powers_sent = async |cluster: &Cluster| {
        assert_eq!(cluster.put(&small()).await, 201);
        assert_eq!(cluster.put(&large()).await, 201);
        for method in [Method::POST, Method::DELETE] {
            // Not what a client says.
            let headers = [("x-backend-next-part-power", "3")];
            cluster.ask(method, &headers, Body::empty()).await;
        }
        let powers = cluster
            .nodes
            .iter()
            .flat_map(|node| std::mem::take(&mut *node.next_part_powers.lock()));
        let mut powers: Vec<_> = powers
            .map(|power| power.map(|text| text.to_str().unwrap().to_owned()))
            .collect();
        assert!(powers.len() >= 12, "{powers:?}");
        powers.dedup();
        powers
    };
    assert_eq!(powers_sent(&cluster).await, [None]);
    cluster.change_ring(|builder| assert!(builder.prepare_increase_partition_power().unwrap()));
    assert_eq!(powers_sent(&cluster).await, [Some("7".to_owned())]);
    cluster.change_ring(|builder| assert!(builder.increase_partition_power().unwrap()));
    assert_eq!(powers_sent(&cluster).await, [Some("7".to_owned())]);
    cluster.change_ring(|builder| assert!(builder.finish_increase_partition_power()));
    assert_eq!(powers_sent(&cluster).await, [None]);
}

#[tokio::test]
async fn one_object_that_fails_does_not_take_its_device_away() {
    for (mood, is_left_alone) in [(Mood::Unreadable, false), (Mood::Broken, true)] {
        let cluster = cluster();
        cluster.set(0, mood);
        // More than `error_suppression_limit`.
        for _ in 0..12 {
            assert_eq!(cluster.put(&small()).await, 201);
        }
        cluster.set(0, Mood::Well);
        let first = &cluster.nodes[cluster.order[0]];
        assert!(first.objects.lock().is_empty());
        assert_eq!(cluster.put(&small()).await, 201);
        assert_eq!(first.objects.lock().is_empty(), is_left_alone, "{mood:?}");
    }
}

#[tokio::test]
async fn without_a_quorum_nothing_is_acknowledged() {
    for bytes in [small(), large()] {
        let cluster = cluster();
        for place in 1..usize::from(NODES) {
            cluster.set(place, Mood::Broken);
        }
        assert_eq!(cluster.put(&bytes).await, 503);
        assert!(cluster.holders(&bytes) <= 1);
    }
}

#[tokio::test]
async fn a_node_that_stalls_in_mid_upload_is_left_behind() {
    let (cluster, bytes) = (cluster(), large());
    cluster.set(1, Mood::StallsAfter(10_000));
    assert_eq!(cluster.put(&bytes).await, 201);
    assert_eq!(cluster.holders(&bytes), 2);
}

#[tokio::test]
async fn an_upload_cut_short_is_no_object() {
    for total in [1000u64, 200_000] {
        let cluster = cluster();
        let body = chunks(&large(), 700, BodyError::Broken("gone".into()));
        let response = cluster
            .ask(Method::PUT, &[("content-length", &total.to_string())], body)
            .await;
        assert_eq!(response.status().as_u16(), 499);
        assert!(
            cluster.nodes.iter().all(|node| node.objects.lock().is_empty()),
            "{total}"
        );
    }
}

#[tokio::test]
async fn a_wrong_etag_is_no_object() {
    for bytes in [small(), large()] {
        let cluster = cluster();
        let length = bytes.len().to_string();
        let headers = [
            ("content-length", length.as_str()),
            ("etag", "900150983cd24fb0d6963f7d28e17f72"),
        ];
        let response = cluster.ask(Method::PUT, &headers, Body::whole(bytes.clone())).await;
        assert_eq!(response.status().as_u16(), 422);
        assert_eq!(cluster.holders(&bytes), 0);
    }
}

#[tokio::test]
async fn a_download_survives_nodes_that_break_off() {
    let (cluster, bytes) = (cluster(), large());
    assert_eq!(cluster.put(&bytes).await, 201);
    // Whichever primaries are asked first, two of them break off at different places.
    for (broken, other, well) in [(0, 1, 2), (1, 2, 0), (2, 0, 1)] {
        cluster.set(broken, Mood::BreaksAfter(100_500));
        cluster.set(other, Mood::BreaksAfter(3));
        cluster.set(well, Mood::Well);
        assert_eq!(cluster.get(&[]).await, (200, Ok(bytes.clone())));
        let (status, part) = cluster.get(&[("range", "bytes=50000-249999")]).await;
        assert_eq!((status, part), (206, Ok(bytes.slice(50_000..250_000))));
    }
}

#[tokio::test]
async fn wrong_bytes_never_complete_a_download() {
    let (cluster, bytes) = (cluster(), large());
    assert_eq!(cluster.put(&bytes).await, 201);
    for place in 0..3 {
        cluster.set(place, Mood::Corrupt);
    }
    let (status, body) = cluster.get(&[]).await;
    assert_eq!((status, body), (200, Err(BodyError::Corrupt)));
}

/// A drive of this process fails, the next node breaks off after a wrong byte, which its server may have noticed.
#[tokio::test]
async fn what_another_node_sent_is_compared_when_it_breaks_off() {
    let plain = cluster();
    let zones = [0, 1, 2].map(|place| zone(&plain, place));
    for first_is_local in [true, false] {
        let cluster = cluster_of(
            |place| first_is_local && place == 0,
            |options| {
                let [first, second, third] = &zones;
                options.routing.common.sorting_method = SortingMethod::Affinity;
                options.routing.common.read_affinity =
                    OptionValue::parse(&format!("{first}=1, {second}=2, {third}=3")).unwrap();
            },
        );
        let bytes = large();
        assert_eq!(cluster.put(&bytes).await, 201);
        cluster.set(0, Mood::BreaksAfter(5_000));
        cluster.set(1, Mood::BreaksAfter(200_000));
        for range in [&[][..], &[("range", "bytes=0-")][..]] {
            assert!(cluster.get(range).await.1 == Ok(bytes.clone()));
        }
        let mut wrong = bytes.to_vec();
        wrong[100_000] ^= 1;
        let second = &cluster.nodes[cluster.order[1]];
        second.objects.lock().insert("/a/c/o".into(), wrong.into());
        for range in [&[][..], &[("range", "bytes=0-")][..]] {
            let read = cluster.get(range).await.1;
            assert_eq!(read.map(|body| body == bytes), Err(BodyError::Corrupt));
        }
    }
}

#[tokio::test]
async fn several_ranges_come_in_parts() {
    let (cluster, bytes) = (cluster(), large());
    assert_eq!(cluster.put(&bytes).await, 201);
    cluster.set(0, Mood::BreaksAfter(5));
    let response = cluster
        .ask(Method::GET, &[("range", "bytes=0-9,100000-100019")], Body::empty())
        .await;
    assert_eq!(response.status().as_u16(), 206);
    let declared: usize = response.headers()["content-length"].to_str().unwrap().parse().unwrap();
    let body = response.into_body().collect(1 << 20).await.unwrap();
    assert_eq!(body.len(), declared);
    for part in [&bytes[..10], &bytes[100_000..100_020]] {
        assert!(body.windows(part.len()).any(|window| window == part));
    }
}

#[tokio::test]
async fn what_no_node_has_is_missing_and_what_nobody_answers_is_unavailable() {
    let cluster = cluster();
    assert_eq!(cluster.get(&[]).await.0, 404);
    cluster.set(0, Mood::Broken);
    assert_eq!(cluster.get(&[]).await.0, 404);
    cluster.set(1, Mood::Hung);
    assert_eq!(cluster.get(&[]).await.0, 503);
    assert_eq!(
        cluster.ask(Method::DELETE, &[], Body::empty()).await.status().as_u16(),
        404
    );
}

const OTHERS: [&str; 10] = ["x-0", "x-1", "x-2", "x-3", "x-4", "x-5", "x-6", "x-7", "x-8", "x-9"];

/// A head that fits one node's request and not another's, whose device has a longer name, would be carried out in part.
#[tokio::test]
async fn a_head_that_may_be_too_long_for_one_node_goes_to_none() {
    let cluster = cluster();
    for (length, expected) in [(60_000, 201), (62_000, 431), (65_000, 431)] {
        let (filler, size) = ("x".repeat(length / OTHERS.len()), small().len().to_string());
        let mut headers = vec![("content-length", &*size)];
        headers.extend(OTHERS.map(|name| (name, &*filler)));
        let before = cluster.copies();
        let response = cluster.ask(Method::PUT, &headers, Body::whole(small())).await;
        assert_eq!(response.status().as_u16(), expected, "{length}");
        assert_eq!(cluster.copies() > before, expected == 201, "{length}");
        let deleted = cluster.ask(Method::DELETE, &headers[1..], Body::empty()).await;
        assert_eq!(
            deleted.status().as_u16(),
            if expected == 201 { 204 } else { expected },
            "{length}"
        );
    }
}

/// Two nodes know of a POST that a third has missed, and would delete what has expired by the older time.
#[tokio::test]
async fn the_newest_version_says_when_an_object_expires() {
    let (due, later) = ("1750000000", "1760000000");
    let old = Mood::Expires {
        posted: "1700000000.00000",
        due,
    };
    let extended = Mood::Expires {
        posted: "1700000001.00000",
        due: later,
    };
    let time = "1750000000.00000";
    let headers = [("x-if-delete-at", time), ("x-timestamp", time)];
    for (moods, status, are_done) in [
        ([old, old, old], 204, true),
        ([old, old, extended], 412, true),
        ([old, extended, extended], 412, true),
        ([old, extended, Mood::Broken], 412, false),
        ([old, Mood::Broken, Mood::Gone], 503, false),
        ([old, old, Mood::Hung], 204, false),
        ([old, old, Mood::Gone], 204, false),
        ([old, old, Mood::Never], 204, true),
    ] {
        let cluster = cluster();
        assert_eq!(cluster.put(&small()).await, 201);
        for (place, mood) in moods.into_iter().enumerate() {
            cluster.set(place, mood);
        }
        let response = cluster.ask(Method::DELETE, &headers, Body::empty()).await;
        assert_eq!(response.status(), status, "{moods:?}");
        assert_eq!(cluster.holders(&small()) == 3, status != 204, "{moods:?}");
        // What upkeep learns: whether a server is left that may have the object still, and how old that was.
        let learnt = response.headers();
        assert_eq!(
            learnt.contains_key("x-backend-all-primaries-done"),
            are_done,
            "{moods:?}"
        );
        let version = learnt.get("x-backend-timestamp").map(|value| value.to_str().unwrap());
        assert_eq!(version, (status == 204).then_some("1700000000.00000"), "{moods:?}");
    }
}

#[tokio::test]
async fn no_room_for_a_write_keeps_nobody_from_reading() {
    let (cluster, bytes) = (cluster(), small());
    assert_eq!(cluster.put(&bytes).await, 201);
    for place in 0..usize::from(NODES) {
        cluster.set(place, Mood::NoRoom);
    }
    for _ in 0..20 {
        assert_eq!(cluster.put(&large()).await, 503);
    }
    // Nor for metadata, which a file system may limit where it has room: other objects' devices are not passed over.
    for _ in 0..20 {
        let post = cluster
            .ask(Method::POST, &[("x-object-meta-a", "b")], Body::empty())
            .await;
        assert_eq!(post.status().as_u16(), 503);
        let deleted = cluster.ask(Method::DELETE, &[], Body::empty()).await;
        assert_eq!(deleted.status().as_u16(), 503);
    }
    assert_eq!(cluster.get(&[]).await, (200, Ok(bytes)));
}

#[tokio::test]
async fn the_newest_is_found_on_a_handoff_while_a_primary_is_silent() {
    let (cluster, old, new) = (cluster(), small(), Bytes::from_static(b"newer"));
    assert_eq!(cluster.put(&old).await, 201);
    cluster.set(1, Mood::Hung);
    let handoff = &cluster.nodes[cluster.order[3]];
    handoff.objects.lock().insert("/a/c/o".into(), new.clone());
    cluster.set(3, Mood::Newer);
    for _ in 0..5 {
        assert_eq!(cluster.get(&[("x-newest", "true")]).await, (200, Ok(new.clone())));
    }
}

/// Zones are numbered as nodes are, from one.
fn zone(cluster: &Cluster, place: usize) -> String {
    format!("r1z{}", cluster.order[place] + 1)
}

#[tokio::test]
async fn reads_go_where_affinity_points() {
    let plain = cluster();
    let (near, all) = (zone(&plain, 2), NODES);
    let cluster = cluster_with(|options| {
        options.routing.common.sorting_method = SortingMethod::Affinity;
        options.routing.common.read_affinity = OptionValue::parse(&format!("{near}=1, r1=2")).unwrap();
    });
    for node in 0..usize::from(all) {
        let bytes = if node == cluster.order[2] { "near" } else { "far" };
        cluster.nodes[node].objects.lock().insert("/a/c/o".into(), bytes.into());
    }
    for _ in 0..20 {
        let response = cluster.ask(Method::GET, &[], Body::empty()).await;
        assert_eq!(response.into_body().collect(100).await.unwrap(), "near");
    }
}

#[tokio::test]
async fn writes_stay_where_affinity_points() {
    let plain = cluster();
    let homes = format!("{}, {}", zone(&plain, 3), zone(&plain, 4));
    let cluster = cluster_with(|options| {
        options.routing.common.write_affinity = OptionValue::parse(&homes).unwrap();
    });
    let response = cluster
        .ask(
            Method::PUT,
            &[("content-length", "1")],
            Body::whole(Bytes::from_static(b"x")),
        )
        .await;
    assert_eq!(response.status(), 201);
    let has = |place: usize| !cluster.nodes[cluster.order[place]].objects.lock().is_empty();
    assert!(has(3) && has(4), "the handoffs at home have it");
    assert_eq!((0..3).filter(|place| has(*place)).count(), 1);
}

#[tokio::test]
async fn deletions_reach_what_affinity_has_put_on_handoffs() {
    let plain = cluster();
    let homes = format!("{}, {}, {}", zone(&plain, 0), zone(&plain, 3), zone(&plain, 4));
    for (count, expected) in [("auto", 204), ("0", 404), ("2", 204)] {
        let cluster = cluster_with(|options| {
            options.routing.common.write_affinity = OptionValue::parse(&homes).unwrap();
            options.routing.common.write_affinity_handoff_delete_count = OptionValue::parse(count).unwrap();
        });
        for place in [0, 3, 4] {
            let mut objects = cluster.nodes[cluster.order[place]].objects.lock();
            objects.insert("/a/c/o".into(), "here".into());
        }
        let response = cluster.ask(Method::DELETE, &[], Body::empty()).await;
        assert_eq!(response.status(), expected, "{count}");
        let kept = |place: usize| !cluster.nodes[cluster.order[place]].objects.lock().is_empty();
        assert_eq!(kept(3) || kept(4), expected == 404, "{count}");
    }
}

#[tokio::test]
async fn a_handoff_that_never_had_it_does_not_speak_for_silent_primaries() {
    let cluster = cluster();
    for place in 0..3 {
        cluster.set(place, Mood::Gone);
    }
    for (handoff, expected) in [(Mood::Never, 503), (Mood::Deleted, 404)] {
        cluster.set(3, handoff);
        assert_eq!(cluster.get(&[]).await.0, expected, "{handoff:?}");
    }
}

#[tokio::test]
async fn a_silent_node_is_not_waited_for_where_gets_are_concurrent() {
    let hour = Duration::from_secs(3600);
    let cluster = cluster_with(|options| {
        (options.node_timeout, options.recoverable_node_timeout) = (hour, hour);
        options.routing.common.concurrent_gets = true;
        options.routing.common.concurrency_timeout = Some(Duration::from_millis(10));
    });
    cluster.nodes[cluster.order[2]]
        .objects
        .lock()
        .insert("/a/c/o".into(), "here".into());
    cluster.set(0, Mood::Hung);
    cluster.set(1, Mood::Hung);
    // Without it, it would take an hour for each of the two.
    let response = cluster.ask(Method::GET, &[], Body::empty()).await;
    assert_eq!(response.into_body().collect(100).await.unwrap(), "here");
}

#[tokio::test]
async fn a_deletion_that_one_node_knows_of_beats_older_copies() {
    for newest in [true, false] {
        let (cluster, bytes) = (cluster(), small());
        assert_eq!(cluster.put(&bytes).await, 201);
        cluster.set(2, Mood::Deleted);
        let headers: &[_] = if newest { &[("x-newest", "true")] } else { &[] };
        for _ in 0..10 {
            // Without X-Newest an older copy may be met first.
            let status = cluster.get(headers).await.0;
            assert!(status == 404 || (status == 200 && !newest), "{status}");
        }
    }
}

/// The times of databases are those at which each replica was made, which say nothing of the others.
#[tokio::test]
async fn a_container_is_there_as_long_as_one_server_has_it() {
    for newest in ["true", "false"] {
        for place in 0..3 {
            let cluster = cluster();
            for other in (0..cluster.nodes.len()).filter(|other| *other != place) {
                cluster.set(other, Mood::ContainerDeleted);
            }
            let response = cluster
                .ask_of("/v1/a/c", Method::HEAD, &[("x-newest", newest)], Body::empty())
                .await;
            assert_eq!(response.status(), 204, "{place}, newest {newest}");
        }
    }
}
