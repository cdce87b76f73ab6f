//! The AWS SDK for Rust with its default settings, against the system under test: `make s3-sdks`.
//!
//! `ENDPOINT BUCKET` are the arguments, the keys are in the environment. Ends with a panic where something is not as it
//! should be. Defaults matter: the SDK sends CRC32 in trailers of signed chunks, and checks what it reads.

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumMode, CompletedMultipartUpload, CompletedPart, Delete, ObjectIdentifier};
use std::collections::HashMap;
use std::time::Duration;

const MIB: usize = 1 << 20;

fn client(endpoint: &str) -> Client {
    let key = |name| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let credentials = Credentials::new(
        key("AWS_ACCESS_KEY_ID"),
        key("AWS_SECRET_ACCESS_KEY"),
        None,
        None,
        "environment",
    );
    let config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(endpoint)
        .region(Region::new("us-east-1"))
        .credentials_provider(credentials)
        .force_path_style(true)
        .build();
    Client::from_conf(config)
}

async fn read(s3: &Client, bucket: &str, key: &str) -> Vec<u8> {
    let got = s3
        .get_object()
        .bucket(bucket)
        .key(key)
        .checksum_mode(ChecksumMode::Enabled)
        .send()
        .await
        .unwrap();
    got.body.collect().await.unwrap().to_vec()
}

/// Objects, their metadata, ranges, conditions, refusals.
async fn objects(s3: &Client, bucket: &str) {
    let metadata = HashMap::from([("side".to_owned(), "rust".to_owned())]);
    let put = s3
        .put_object()
        .bucket(bucket)
        .key("a/b ü")
        .set_metadata(Some(metadata.clone()))
        .content_type("text/x");
    let put = put.body(ByteStream::from_static(b"0123456789")).send().await.unwrap();
    assert!(put.checksum_crc32().is_some(), "the SDK's checksum was taken");
    let got = s3
        .get_object()
        .bucket(bucket)
        .key("a/b ü")
        .range("bytes=2-4")
        .send()
        .await
        .unwrap();
    assert_eq!(
        (got.content_range(), got.metadata()),
        (Some("bytes 2-4/10"), Some(&metadata))
    );
    assert_eq!(got.body.collect().await.unwrap().to_vec(), b"234");
    assert_eq!(read(s3, bucket, "a/b ü").await, b"0123456789");
    s3.put_object()
        .bucket(bucket)
        .key("empty")
        .body(ByteStream::from_static(b""))
        .send()
        .await
        .unwrap();
    assert!(read(s3, bucket, "empty").await.is_empty());

    let refused = s3
        .get_object()
        .bucket(bucket)
        .key("none")
        .send()
        .await
        .unwrap_err()
        .into_service_error();
    assert!(matches!(refused, GetObjectError::NoSuchKey(_)), "{refused:?}");
    let again = s3
        .put_object()
        .bucket(bucket)
        .key("a/b ü")
        .if_none_match("*")
        .body(ByteStream::from_static(b"x"))
        .send()
        .await;
    assert_eq!(
        again
            .unwrap_err()
            .raw_response()
            .map(|response| response.status().as_u16()),
        Some(412)
    );
    s3.copy_object()
        .bucket(bucket)
        .key("copy")
        .copy_source(format!("{bucket}/a%2Fb%20%C3%BC"))
        .send()
        .await
        .unwrap();
    assert_eq!(read(s3, bucket, "copy").await, b"0123456789");
}

/// A stream of unknown content from a file, and an upload in parts.
async fn uploads(s3: &Client, bucket: &str) {
    let body: Vec<u8> = (0..11 * MIB).map(|at| (at % 251) as u8).collect();
    let file = std::env::temp_dir().join(format!("sdk-rust-{}", std::process::id()));
    std::fs::write(&file, &body).unwrap();
    let stream = ByteStream::from_path(&file).await.unwrap();
    s3.put_object()
        .bucket(bucket)
        .key("streamed")
        .body(stream)
        .send()
        .await
        .unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(read(s3, bucket, "streamed").await == body);

    let begun = s3
        .create_multipart_upload()
        .bucket(bucket)
        .key("parts")
        .send()
        .await
        .unwrap();
    let id = begun.upload_id().unwrap();
    let mut parts = CompletedMultipartUpload::builder();
    for (number, piece) in (1..).zip(body.chunks(5 * MIB)) {
        let part = s3
            .upload_part()
            .bucket(bucket)
            .key("parts")
            .upload_id(id)
            .part_number(number);
        let part = part.body(ByteStream::from(piece.to_vec())).send().await.unwrap();
        let done = CompletedPart::builder()
            .part_number(number)
            .set_e_tag(part.e_tag)
            .set_checksum_crc32(part.checksum_crc32);
        parts = parts.parts(done.build());
    }
    let done = s3
        .complete_multipart_upload()
        .bucket(bucket)
        .key("parts")
        .upload_id(id)
        .multipart_upload(parts.build());
    assert!(done.send().await.unwrap().e_tag().unwrap().ends_with("-3\""));
    assert!(read(s3, bucket, "parts").await == body);
    let url = s3
        .get_object()
        .bucket(bucket)
        .key("parts")
        .presigned(PresigningConfig::expires_in(Duration::from_secs(60)).unwrap());
    println!("{}", url.await.unwrap().uri());
}

/// Pages of a listing, and the deletion of all that they name.
async fn listings(s3: &Client, bucket: &str) {
    let mut pages = s3.list_objects_v2().bucket(bucket).into_paginator().page_size(2).send();
    let mut keys = Vec::new();
    while let Some(page) = pages.next().await {
        keys.extend(
            page.unwrap()
                .contents()
                .iter()
                .map(|found| found.key().unwrap().to_owned()),
        );
    }
    assert_eq!(keys, ["a/b ü", "copy", "empty", "parts", "streamed"]);
    let names = keys
        .iter()
        .map(|key| ObjectIdentifier::builder().key(key).build().unwrap())
        .collect();
    let delete = Delete::builder().set_objects(Some(names)).build().unwrap();
    assert!(
        s3.delete_objects()
            .bucket(bucket)
            .delete(delete)
            .send()
            .await
            .unwrap()
            .errors()
            .is_empty()
    );
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [endpoint, bucket] = &arguments[..] else {
        panic!("ENDPOINT BUCKET")
    };
    let s3 = client(endpoint);
    s3.create_bucket().bucket(bucket).send().await.unwrap();
    objects(&s3, bucket).await;
    uploads(&s3, bucket).await;
    listings(&s3, bucket).await;
    s3.delete_bucket().bucket(bucket).send().await.unwrap();
    let buckets = s3.list_buckets().send().await.unwrap();
    assert!(buckets.buckets().iter().all(|found| found.name() != Some(bucket)));
}
