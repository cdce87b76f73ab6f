//! What no comparison with OpenStack shows of the verbs: answers of ours alone.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use http::StatusCode;
use peer::{Address, Body, PartitionTarget, Service};
use support::Times;
use support::calls::{call, get, in_memory, on_files, put, read};
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
