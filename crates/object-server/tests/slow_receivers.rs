//! What is read ahead for a receiver that takes nothing: little; it is given up, and read again when the receiver comes
//! back.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use bytes::Bytes;
use http::StatusCode;
use object_server::ObjectServer;
use peer::{Body, BodyError, Service};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use support::calls::{fed, files, get, on_files, pattern, put};

const LENGTH: usize = 1_000_000;
/// What the first look at an object brings, and what a slow receiver gets at a time.
const FEW: usize = 64 * 1024;
/// A receiver that has taken so much gets long chunks.
const MUCH: usize = 512 * 1024;
/// Longer than a chunk waits for its receiver.
const LONG: Duration = Duration::from_millis(1500);
/// A machine may be too busy to give a chunk up within [`LONG`].
const TRIES: usize = 20;

async fn stored(root: &Path, seconds: f64) -> (Arc<ObjectServer>, Bytes) {
    let (server, bytes) = (on_files(root), pattern(LENGTH));
    let written = server
        .call(put(seconds, fed(bytes.clone(), Some(LENGTH as u64), None)).into())
        .await;
    assert_eq!(written.status(), StatusCode::CREATED);
    (server, bytes)
}

/// A download of which so many bytes were taken, and then nothing.
async fn stalled(server: &ObjectServer, range: Option<&str>, taken: usize, body: &mut Vec<u8>) -> Body {
    let mut download = server.call(get(range).into()).await.into_body();
    while body.len() < taken {
        body.extend_from_slice(&download.next().await.unwrap().unwrap());
    }
    tokio::time::sleep(LONG).await;
    download
}

/// Other bytes at this place of the only object.
fn overwrite(root: &Path, offset: usize) {
    let files = files(root);
    let data = files.iter().find(|name| name.ends_with(".data")).unwrap();
    let mut file = std::fs::File::options().write(true).open(root.join(data)).unwrap();
    file.seek(SeekFrom::Start(offset as u64)).unwrap();
    file.write_all(b"something else").unwrap();
}

async fn rest(mut download: Body, body: &mut Vec<u8>) -> Result<(), BodyError> {
    while let Some(chunk) = download.next().await {
        body.extend_from_slice(&chunk?);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_ahead_is_given_up_and_read_again() {
    let place = tempfile::tempdir().unwrap();
    let (server, bytes) = stored(place.path(), 1.0).await;
    for range in [None, Some("bytes=1000-")] {
        let mut was_small = false;
        for _ in 0..TRIES {
            let mut body = Vec::new();
            let mut download = stalled(&server, range, MUCH, &mut body).await;
            let next = download.next().await.unwrap().unwrap();
            was_small = next.len() == FEW;
            body.extend_from_slice(&next);
            rest(download, &mut body).await.unwrap();
            assert!(bytes.ends_with(&body) && body.len() >= LENGTH - 1000);
            if was_small {
                break;
            }
        }
        assert!(was_small, "{range:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_again_is_the_same_or_the_body_fails() {
    let place = tempfile::tempdir().unwrap();
    let mut failed = None;
    for number in 1..=TRIES {
        let (server, _) = stored(place.path(), number as f64).await;
        let mut body = Vec::new();
        let download = stalled(&server, None, MUCH, &mut body).await;
        overwrite(place.path(), MUCH);
        // Without an error it was not given up yet.
        failed = rest(download, &mut body).await.err();
        if failed.is_some() {
            break;
        }
    }
    assert_eq!(failed, Some(BodyError::Corrupt));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_behind_the_first_bytes_before_it_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let (server, bytes) = stored(place.path(), 1.0).await;
    let mut body = Vec::new();
    let download = stalled(&server, None, 1, &mut body).await;
    overwrite(place.path(), FEW);
    assert_eq!(body, bytes[..FEW]);
    assert_eq!(rest(download, &mut body).await, Err(BodyError::Corrupt));
}
