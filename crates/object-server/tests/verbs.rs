//! What no comparison with OpenStack shows of the verbs: answers of ours alone.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use http::StatusCode;
use peer::{Address, Body, PartitionTarget, Service};
use support::Times;
use support::calls::{call, fed, get, in_memory, on_files, pattern, put, read};
use vocabulary::Partition;

/// An older POST may bring a newer content type. That its metadata stay out is said beside the 202: a gateway of ours
/// sends it again then, with a later time.
#[tokio::test(flavor = "multi_thread")]
async fn a_post_whose_metadata_come_too_late_is_answered_with_the_newer_time() {
    let place = tempfile::tempdir().unwrap();
    for server in [on_files(place.path()), in_memory()] {
        let times = Times::new();
        let post = |seconds, headers: &[(&'static str, &str)]| {
            let mut all = vec![
                ("x-timestamp", times.at(seconds)),
                ("x-object-meta-colour", "red".into()),
            ];
            all.extend(headers.iter().map(|(name, value)| (*name, (*value).to_owned())));
            server.call(call("POST", "sda", &all).into())
        };
        assert_eq!(
            server.call(put(5.0, Body::whole("it")).into()).await.status(),
            StatusCode::CREATED
        );
        for (seconds, headers, status, newer) in [
            (10.0, &[][..], 202, None),
            (8.0, &[("content-type", "a/b")][..], 202, Some(10.0)),
            (9.0, &[], 409, Some(10.0)),
            (11.0, &[("content-type", "c/d")], 202, None),
        ] {
            let answer = post(seconds, headers).await;
            let given = answer.headers().get("x-backend-timestamp");
            let given = given.map(|value| value.to_str().unwrap().to_owned());
            let expected = (status, newer.map(|newer| times.at(newer)));
            assert_eq!((answer.status().as_u16(), given), expected, "{seconds}");
        }
    }
}

/// The expirer's time is that of the expiry. What was written before it, on servers that this one could not hear, is
/// newer than what is deleted here.
#[tokio::test(flavor = "multi_thread")]
async fn an_expiry_takes_only_the_version_it_is_of() {
    let place = tempfile::tempdir().unwrap();
    for server in [on_files(place.path()), in_memory()] {
        let times = Times::new();
        let due = times.whole(15);
        let expiring = [
            ("x-timestamp", times.at(10.0)),
            ("content-type", "t/t".into()),
            ("x-delete-at", due.clone()),
        ];
        let stored = server
            .call(call("PUT", "sda", &expiring).with_body(Body::whole("old")).into())
            .await;
        assert_eq!(stored.status(), StatusCode::CREATED);
        let expired = [("x-timestamp", times.at(15.0)), ("x-if-delete-at", due)];
        let deleted = server.call(call("DELETE", "sda", &expired).into()).await;
        assert_eq!(deleted.status(), StatusCode::NO_CONTENT);
        assert_eq!(server.call(get(None).into()).await.status(), StatusCode::NOT_FOUND);
        // It is gone for good: the same version, brought back by a server that had been away, stays out.
        let again = server
            .call(call("PUT", "sda", &expiring).with_body(Body::whole("old")).into())
            .await;
        assert_eq!(again.status(), StatusCode::CONFLICT);
        let newer = server.call(put(12.0, Body::whole("new")).into()).await;
        assert_eq!(newer.status(), StatusCode::CREATED);
        assert_eq!(read(server.call(get(None).into()).await).await, "new");
        assert_eq!(
            server.call(call("DELETE", "sda", &expired).into()).await.status(),
            StatusCode::PRECONDITION_FAILED
        );
    }
}

/// While the partition power of the ring is increased, what is written is found by the next power as well.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_is_linked_where_it_belongs_by_the_next_partition_power() {
    let place = tempfile::tempdir().unwrap();
    for server in [on_files(place.path()), in_memory()] {
        let times = Times::new();
        // By which a partition is the first byte of the hash.
        let power = 8;
        let hash = support::ours::options().hash_prefix.object("a", "c", "o");
        let next = Partition(hash.0[0].into());
        let send = async |method: &str, seconds, more: &[(&'static str, &str)], body: Body| {
            let mut headers = vec![
                ("x-timestamp", times.at(seconds)),
                ("x-backend-next-part-power", power.to_string()),
            ];
            headers.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
            server
                .call(call(method, "sda", &headers).with_body(body).into())
                .await
                .status()
                .as_u16()
        };
        let there = async || {
            let mut get = get(None);
            let Address::Entity(target) = &mut get.address else {
                panic!("not an object")
            };
            target.partition = next;
            server.call(get.into()).await
        };
        let typed = [("content-type", "t/t")];
        assert_eq!(send("PUT", 1.0, &typed, Body::whole("small")).await, 201);
        assert_eq!(read(there().await).await, "small");
        let long = pattern(3_000_000);
        let streamed = fed(long.clone(), Some(long.len() as u64), None);
        assert_eq!(send("PUT", 2.0, &typed, streamed).await, 201);
        assert_eq!(read(there().await).await, long);
        assert_eq!(send("POST", 3.0, &[("x-object-meta-a", "b")], Body::empty()).await, 202);
        assert_eq!(there().await.headers()["x-object-meta-a"], "b");
        assert_eq!(read(server.call(get(None).into()).await).await, long);
        assert_eq!(send("DELETE", 4.0, &[], Body::empty()).await, 204);
        let gone = there().await;
        assert_eq!(gone.status(), StatusCode::NOT_FOUND);
        assert_eq!(gone.headers()["x-backend-timestamp"], times.at(4.0).as_str());
        // The largest power there can be, and none.
        for (power, status) in [("32", 201), ("33", 400), ("x", 400)] {
            let headers = [
                ("x-timestamp", times.at(5.0)),
                ("x-backend-next-part-power", power.to_owned()),
                typed.map(|(name, value)| (name, value.to_owned()))[0].clone(),
            ];
            let put = call("PUT", "sda", &headers).with_body(Body::whole("again"));
            assert_eq!(server.call(put.into()).await.status().as_u16(), status, "{power}");
        }
    }
}

/// An expirer whose clock is fast does not take what has not expired.
#[tokio::test(flavor = "multi_thread")]
async fn what_expires_later_by_the_servers_clock_is_not_deleted_yet() {
    let place = tempfile::tempdir().unwrap();
    for server in [on_files(place.path()), in_memory()] {
        let now = world::World::real().clock.now().seconds();
        for (ahead, status, in_batch) in [(3600, 425, 425), (60, 425, 425), (0, 204, 204)] {
            let due = now + ahead;
            let stored = [
                ("x-timestamp", format!("{}.00000", now - 1000 - ahead)),
                ("content-type", "t/t".into()),
                ("x-delete-at", due.to_string()),
            ];
            let put = call("PUT", "sda", &stored).with_body(Body::whole("kept"));
            assert!(server.call(put.into()).await.status().is_success(), "{ahead}");
            let expired = [
                ("x-timestamp", format!("{due}.00000")),
                ("x-if-delete-at", format!("{due}.00000")),
            ];
            let deletion = call("DELETE", "sda", &expired);
            let one = peer::deletes::OneDelete {
                partition: Partition(1),
                path: vocabulary::EntityPath::split("a/c/o").unwrap(),
                headers: expired.map(|(name, value)| (name.into(), value)).to_vec(),
            };
            if status == 425 {
                assert_eq!(server.call(deletion.into()).await.status().as_u16(), status, "{ahead}");
            }
            let batch = peer::message::DeleteObjects::new(PartitionTarget {
                device: "sda".into(),
                partition: Partition(0),
                rest: String::new(),
            });
            let batch = peer::Call::new(peer::message::RequestContext::default(), batch)
                .with_body(Body::whole(peer::deletes::encode(&[one])));
            let answer = read(server.call(batch).await).await;
            let statuses = peer::deletes::decode_statuses(&answer, 1).unwrap();
            assert_eq!(statuses, [in_batch], "{ahead}");
            let left = server.call(get(None).into()).await.status().as_u16();
            assert_eq!(left, if status == 425 { 200 } else { 404 }, "{ahead}");
        }
    }
}

/// What a list of deletions is answered that is only to be checked, and what is there afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_only_checked_is_not_deleted() {
    let place = tempfile::tempdir().unwrap();
    for server in [on_files(place.path()), in_memory()] {
        let now = world::World::real().clock.now().seconds();
        let written = format!("{}.00000", now - 1000);
        let due = now - 10;
        let stored = [
            ("x-timestamp", written),
            ("content-type", "t/t".into()),
            ("x-delete-at", due.to_string()),
        ];
        let put = call("PUT", "sda", &stored).with_body(Body::whole("kept"));
        assert!(server.call(put.into()).await.status().is_success());
        let deletion = |path: &str, due: u64| peer::deletes::OneDelete {
            partition: Partition(1),
            path: vocabulary::EntityPath::split(path).unwrap(),
            headers: ["x-timestamp", "x-if-delete-at"]
                .map(|name| (name.into(), format!("{due}.00000")))
                .to_vec(),
        };
        let asked = [
            deletion("a/c/o", due),
            deletion("a/c/o", due - 1),
            deletion("a/c/none", due),
            deletion("a/c/o", now + 60),
        ];
        let send = async |body| {
            let batch = peer::message::DeleteObjects::new(PartitionTarget {
                device: "sda".into(),
                partition: Partition(0),
                rest: String::new(),
            });
            let batch = peer::Call::new(peer::message::RequestContext::default(), batch).with_body(Body::whole(body));
            read(server.call(batch).await).await
        };
        let answer = send(peer::deletes::encode_check(&asked)).await;
        let checked = peer::deletes::decode_checked(&answer, 4).unwrap();
        let statuses: Vec<u16> = checked.iter().map(|one| one.status).collect();
        assert_eq!(statuses, [204, 412, 404, 425]);
        let tombstones: Vec<_> = checked.iter().map(|one| one.tombstone.map(|at| at.seconds())).collect();
        assert_eq!(tombstones, [Some(now - 1000), None, None, None]);
        let there = server
            .call(call("HEAD", "sda", &[("x-backend-open-expired", "true".to_owned())]).into())
            .await;
        assert_eq!(there.status(), StatusCode::OK);
        // It is answered the same, once it is not only checked.
        let answer = send(peer::deletes::encode(&asked)).await;
        assert_eq!(
            peer::deletes::decode_statuses(&answer, 4).unwrap(),
            [204, 412, 404, 425]
        );
        assert_eq!(send(peer::deletes::encode_check([])).await, "[]");
    }
}

/// OpenStack's replicator removes what rsync has brought here once it has read the answer, whatever that says.
#[tokio::test]
async fn what_rsync_brought_in_vain_is_not_answered_to_the_end() {
    let place = tempfile::tempdir().unwrap();
    let server = on_files(place.path());
    for (rest, ends) in [("", true), ("abc", false)] {
        let mut call = call("REPLICATE", "missing", &[]);
        call.address = Address::Partition(PartitionTarget {
            device: "missing".into(),
            partition: Partition(7),
            rest: rest.into(),
        });
        let answer = server.call(call.into()).await;
        assert_eq!(answer.status(), StatusCode::INSUFFICIENT_STORAGE);
        assert_eq!(answer.into_body().collect(1000).await.is_ok(), ends, "{rest}");
    }
}

#[tokio::test]
async fn verbs_that_are_not_spoken_say_so() {
    let server = in_memory();
    let answer = server.call(call("BREW", "sda", &[]).into()).await;
    assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
}
