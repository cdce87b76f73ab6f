//! SSYNC with senders that do not keep to it: what each is answered, and that nothing of it stays.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use http::{HeaderMap, Method};
use object_server::{ObjectServer, ObjectServerOptions, ReplicationOptions};
use peer::{Address, Body, PartitionTarget, RawCall, Service};
use std::path::{Path, PathBuf};
use support::ours::{FileDevices, options};
use vocabulary::{EntityPath, Partition, PathHash};
use world::World;

/// The answer to a sender that sends this instead of requests.
async fn answer_to(root: &Path, requests: &str) -> String {
    std::fs::create_dir_all(root.join("sda")).unwrap();
    let devices = std::sync::Arc::new(FileDevices(root.into()));
    let server = ObjectServer::new(World::real(), options(), devices).unwrap();
    let before = ":MISSING_CHECK: START\r\n:MISSING_CHECK: END\r\n:UPDATES: START\r\n";
    exchange(&server, format!("{before}{requests}")).await
}

async fn exchange(server: &ObjectServer, body: String) -> String {
    let call = RawCall {
        method: Method::from_bytes(b"SSYNC").unwrap(),
        address: Address::Partition(PartitionTarget {
            device: "sda".into(),
            partition: Partition(1),
            rest: String::new(),
        }),
        query: String::new(),
        headers: HeaderMap::new(),
        body: Body::whole(body),
        interim: None,
    };
    let body = server.call(call.into()).await.into_body().collect(u64::MAX).await;
    body.map_or("nothing".into(), |body| String::from_utf8_lossy(&body).into_owned())
}

fn files(place: &Path) -> usize {
    let entries = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
}

/// Files of this extension.
fn files_of(place: &Path, extension: &str) -> usize {
    let entries = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    let count = |path: PathBuf| match path.is_dir() {
        true => files_of(&path, extension),
        false => usize::from(path.extension().is_some_and(|there| there == extension)),
    };
    entries.map(count).sum()
}

fn hash_of(object: &EntityPath) -> PathHash {
    let (container, name) = (object.container.as_deref().unwrap(), object.object.as_deref().unwrap());
    options().hash_prefix.object(&object.account, container, name)
}

const HEAD: &str = "X-Timestamp: 1700000000.00000\r\nContent-Type: t/t\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_does_not_keep_to_it_gets_an_error_and_leaves_nothing() {
    let long = "x".repeat(60_000);
    let fat: String = (0..20).map(|n| format!("X-Object-Meta-{n}: {long}\r\n")).collect();
    let many: String = (0..300).map(|_| "X-Object-Meta-A: b\r\n").collect();
    for (requests, expected) in [
        (
            format!("PUT /a/c/o\r\n{HEAD}{fat}Content-Length: 1\r\n\r\nx:UPDATES: END\r\n"),
            ":ERROR: 0 \"too many headers",
        ),
        (
            format!("PUT /a/c/o\r\n{HEAD}{many}Content-Length: 1\r\n\r\nx:UPDATES: END\r\n"),
            ":ERROR: 0 \"too many headers",
        ),
        (
            format!("PUT /a/c/o\r\n{HEAD}{long}{long}"),
            ":ERROR: 0 \"a line is longer",
        ),
        (format!("PUT /a/c/o\r\n{HEAD}Content-Length: 9\r\n\r\nless"), "nothing"),
        (
            format!("PUT /a/c/o\r\n{HEAD}Content-Length: 99999999\r\n\r\nless"),
            "nothing",
        ),
        (
            format!("PUT /a/c/o\r\n{HEAD}Content-Length: -1\r\n\r\n"),
            ":ERROR: 0 \"invalid content-length",
        ),
        (
            format!(
                "PUT /a/c/o\r\n{HEAD}Content-Length: 1\r\nETag: {}\r\n\r\nx:UPDATES: END\r\n",
                "0".repeat(32)
            ),
            ":ERROR: 500 ",
        ),
        (
            format!("DELETE /a/c/o\r\n{HEAD}Content-Length: 1\r\n\r\nx"),
            ":ERROR: 0 \"DELETE subrequest",
        ),
        (format!("DELETE /a/c\r\n{HEAD}\r\n"), ":ERROR: 0 \"Invalid path"),
        (format!("DELETE a/c/o\r\n{HEAD}\r\n"), ":ERROR: 0 \"Invalid path"),
        (format!("DELETE /a/c/%FF\r\n{HEAD}\r\n"), ":ERROR: 0 \"Invalid path"),
        (
            "DELETE /a/%00c/o\r\nX-Timestamp: never\r\n\r\n:UPDATES: END\r\n".into(),
            ":ERROR: 500 ",
        ),
        (format!("GET /a/c/o\r\n{HEAD}\r\n"), ":ERROR: 0 \"Invalid subrequest"),
        (":UPDATES: START\r\n".into(), ":ERROR: 0 "),
    ] {
        let root = tempfile::tempdir().unwrap();
        let answer = answer_to(root.path(), &requests).await;
        let last = answer.rsplit("END\r\n").next().unwrap();
        assert!(
            last.starts_with(expected),
            "{answer:?} to {:?}",
            &requests[..requests.len().min(200)]
        );
        assert_eq!(files(&root.path().join("sda")), 0, "{expected}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exchange_takes_a_bounded_number_of_objects_and_tells_the_sender_of_the_rest() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("sda")).unwrap();
    let options = ObjectServerOptions {
        replication: ReplicationOptions {
            most_wishes: 3,
            ..ReplicationOptions::default()
        },
        ..options()
    };
    let devices = std::sync::Arc::new(FileDevices(root.path().into()));
    let server = ObjectServer::new(World::real(), options, devices).unwrap();
    let name = |n: usize| EntityPath::account("a").with_container("c").with_object(n.to_string());
    let hashes: Vec<_> = (0..10).map(|n| hash_of(&name(n))).collect();
    let mut brought = 0;
    for round in 0..4 {
        let offers: String = hashes
            .iter()
            .map(|hash| format!("{hash} 1700000000.00000\r\n"))
            .collect();
        let wanted = brought..hashes.len().min(brought + 3);
        let requests: String = wanted
            .clone()
            .map(|n| format!("PUT /a/c/{n}\r\n{HEAD}Content-Length: 1\r\n\r\nx"))
            .collect();
        let body = format!(
            ":MISSING_CHECK: START\r\n{offers}:MISSING_CHECK: END\r\n:UPDATES: START\r\n{requests}:UPDATES: END\r\n"
        );
        let answer = exchange(&server, body).await;
        let wishes = answer.lines().filter(|line| line.ends_with(" dm")).count();
        assert_eq!(wishes, wanted.len(), "{round}: {answer}");
        brought = wanted.end;
        match brought < hashes.len() {
            // A sender that does not hear of it removes what it takes for being here.
            true => assert!(
                answer.contains(":ERROR: 503 ") && !answer.contains(":UPDATES: END"),
                "{answer}"
            ),
            false => assert!(answer.ends_with(":UPDATES: END\r\n"), "{answer}"),
        }
    }
    assert_eq!(files_of(&root.path().join("sda"), "data"), hashes.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_put_and_a_delete_of_one_time_the_deletion_wins() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("sda")).unwrap();
    let devices = std::sync::Arc::new(FileDevices(root.path().into()));
    let server = ObjectServer::new(World::real(), options(), devices).unwrap();
    let hash = hash_of(&EntityPath::account("a").with_container("c").with_object("o"));
    // Older deletions would be reclaimed.
    let time = World::real().clock.now().internal();
    let head = format!("/a/c/o\r\nX-Timestamp: {time}\r\n");
    let (put, delete) = (
        format!("PUT {head}Content-Type: t/t\r\nContent-Length: 1\r\n\r\nx"),
        format!("DELETE {head}\r\n"),
    );
    for (kind, request, wish, left) in [
        ("", &put, "dm", "data"),
        (" deleted:True", &delete, "d", "ts"),
        // What OpenStack's senders say of either.
        ("", &put, "", "ts"),
        (" deleted:True", &delete, "", "ts"),
    ] {
        let start = format!(":MISSING_CHECK: START\r\n{hash} {time}{kind}\r\n:MISSING_CHECK: END\r\n");
        let answer = exchange(&server, format!("{start}:UPDATES: START\r\n{request}:UPDATES: END\r\n")).await;
        let wished = answer.lines().find_map(|line| line.strip_prefix(&format!("{hash} ")));
        assert_eq!(wished.unwrap_or_default(), wish, "{answer}");
        assert!(answer.ends_with(":UPDATES: END\r\n"), "{answer}");
        let device = root.path().join("sda");
        let found = ["data", "ts"].map(|extension| files_of(&device, extension));
        assert_eq!(
            found,
            [usize::from(left == "data"), usize::from(left == "ts")],
            "{kind:?}"
        );
    }
}
