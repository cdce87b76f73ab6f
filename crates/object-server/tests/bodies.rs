//! Bodies: long ones, some that are cut short or held back, checksums that are known before.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use http::{HeaderValue, StatusCode};
use peer::{Body, BodyError, Digest, Service};
use std::os::unix::fs::FileExt;
use support::calls::{fed, files, get, in_memory, on_files, pattern, put, read, until};

#[tokio::test(flavor = "multi_thread")]
async fn long_bodies_stream_in_and_out() {
    let place = tempfile::tempdir().unwrap();
    for server in [on_files(place.path()), in_memory()] {
        let bytes = pattern(3_000_000);
        for (seconds, length) in [(1.0, Some(3_000_000)), (2.0, None)] {
            let written = server.call(put(seconds, fed(bytes.clone(), length, None)).into()).await;
            assert_eq!(written.status(), StatusCode::CREATED);
            let whole = server.call(get(None).into()).await;
            assert_eq!(whole.headers()["content-length"], "3000000");
            assert_eq!(read(whole).await, bytes);
        }
        for (range, start, end) in [
            ("bytes=100-2000000", 100, 2_000_001),
            ("bytes=2999990-", 2_999_990, 3_000_000),
        ] {
            let part = server.call(get(Some(range)).into()).await;
            assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
            assert_eq!(read(part).await, bytes.slice(start..end));
        }
        let parts = server
            .call(get(Some("bytes=0-499999,1000000-1999999,70000-70009")).into())
            .await;
        let promised: usize = parts.headers()["content-length"].to_str().unwrap().parse().unwrap();
        let parts = read(parts).await;
        assert_eq!(parts.len(), promised);
        for (start, end) in [(0, 500_000), (1_000_000, 2_000_000), (70_000, 70_010)] {
            assert!(parts.windows(end - start).any(|window| window == &bytes[start..end]));
        }
        // A reader that goes away in the middle leaves the server as it was.
        let mut left = server.call(get(None).into()).await.into_body();
        assert!(left.next().await.unwrap().is_ok());
        drop(left);
        assert_eq!(
            server.call(get(Some("bytes=0-0")).into()).await.status(),
            StatusCode::PARTIAL_CONTENT
        );
    }
}

/// Ranges of the whole are what a gateway asks for when another server's body has broken off.
#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_is_noticed_by_whoever_reads_the_whole() {
    for range in [None, Some("bytes=0-"), Some("bytes=0-999999"), Some("bytes=-1000000")] {
        let place = tempfile::tempdir().unwrap();
        let (server, mut bytes) = (on_files(place.path()), pattern(1_000_000).to_vec());
        let body = fed(bytes.clone().into(), Some(1_000_000), None);
        assert_eq!(server.call(put(1.0, body).into()).await.status(), StatusCode::CREATED);
        let whole = server.call(get(range).into()).await;
        let (is_range, length) = (
            whole.headers().contains_key("content-range"),
            &whole.headers()["content-length"],
        );
        assert_eq!(
            (is_range, length),
            (range.is_some(), &HeaderValue::from_static("1000000"))
        );
        assert_eq!(read(whole).await, bytes);

        let data = files(place.path()).into_iter().find(|name| name.ends_with(".data"));
        let data = place.path().join(data.unwrap());
        bytes[900_000] ^= 1;
        let file = std::fs::File::options().write(true).open(&data).unwrap();
        file.write_all_at(&bytes[900_000..900_001], 900_000).unwrap();
        let spoilt = server.call(get(range).into()).await;
        let read = spoilt.into_body().collect(u64::MAX).await;
        assert_eq!(
            (read.err(), data.exists()),
            (Some(BodyError::Corrupt), false),
            "{range:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_cut_short_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let server = on_files(place.path());
    for (error, status) in [
        (BodyError::Abandoned, 499),
        (BodyError::Broken("reset".into()), 499),
        (BodyError::TimedOut, 408),
    ] {
        for (length, bytes) in [
            (Some(900_000), pattern(600_000)),
            (Some(900), pattern(600)),
            (None, pattern(600_000)),
        ] {
            let answer = server
                .call(put(1.0, fed(bytes, length, Some(error.clone()))).into())
                .await;
            assert_eq!(answer.status().as_u16(), status, "{error}");
        }
    }
    let short = server
        .call(put(1.0, fed(pattern(600_000), Some(900_000), None)).into())
        .await;
    assert_eq!(short.status().as_u16(), 499, "ended early");
    let long = server
        .call(put(1.0, fed(pattern(600_000), Some(300_000), None)).into())
        .await;
    assert_eq!(long.status(), StatusCode::BAD_REQUEST, "longer than promised");
    let mut wrong = put(1.0, fed(pattern(600_000), None, None));
    wrong
        .headers
        .insert("etag", HeaderValue::from_static("d41d8cd98f00b204e9800998ecf8427e"));
    assert_eq!(
        server.call(wrong.into()).await.status(),
        StatusCode::UNPROCESSABLE_ENTITY
    );
    assert_eq!(server.call(get(None).into()).await.status(), StatusCode::NOT_FOUND);
    until(|| files(&place.path().join("sda")).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_vanishes_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let server = on_files(place.path());
    let (feed, body) = Body::channel(1, None);
    let writing = tokio::spawn({
        let server = server.clone();
        async move { server.call(put(1.0, body).into()).await.status() }
    });
    for _ in 0..100 {
        assert!(feed.send(pattern(10_000)).await);
    }
    // As when a connection breaks: the call is dropped where it stands.
    writing.abort();
    drop(writing.await);
    until(|| files(&place.path().join("sda")).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_back_body_is_not_touched_before_it_is_wanted() {
    let server = in_memory();
    assert_eq!(
        server.call(put(5.0, Body::whole("new")).into()).await.status(),
        StatusCode::CREATED
    );
    for (seconds, length, wanted) in [(1.0, 10, false), (1.0, 100_000, false), (6.0, 10, true)] {
        let (mut feed, body) = Body::channel(1, Some(length));
        let mut held = put(seconds, body);
        held.headers.insert("expect", HeaderValue::from_static("100-continue"));
        held.headers.insert("content-length", HeaderValue::from(length));
        let feeding = async move {
            let started = feed.started().await;
            if started {
                assert!(feed.send(pattern(10)).await);
                feed.finish().await;
            }
            started
        };
        let (answer, started) = tokio::join!(server.call(held.into()), feeding);
        assert_eq!((answer.status() == StatusCode::CREATED, started), (wanted, wanted));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checksum_computed_next_door_is_taken() {
    let server = in_memory();
    let digest = "0123456789abcdef0123456789abcdef";
    for (seconds, body) in [(1.0, Body::whole("x")), (2.0, fed(pattern(100_000), None, None))] {
        let known = server
            .call(put(seconds, body.with_digest(Digest::known(digest))).into())
            .await;
        assert_eq!(known.headers()["etag"], format!("\"{digest}\""));
    }
}
