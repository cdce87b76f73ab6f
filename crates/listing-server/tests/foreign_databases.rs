//! A database with a schema that Swift does not make is refused when it is sent, and put aside where it lies; all other
//! databases of its drive are served.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod support;

use http::{HeaderMap, HeaderValue, Method};
use peer::{Address, Body, RawCall, Service};
use rusqlite::functions::FunctionFlags;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use support::{Asked, Both, ask};

/// What no statement comes to the end of.
const ENDLESS: &str = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)";

fn foreign() -> Vec<String> {
    vec![
        format!("CREATE TRIGGER evil AFTER UPDATE ON container_info BEGIN SELECT count(*) FROM {ENDLESS}; END;"),
        format!("CREATE TRIGGER evil AFTER INSERT ON object BEGIN SELECT count(*) FROM {ENDLESS}; END;"),
        format!(
            "ALTER TABLE container_info RENAME TO stored;
             CREATE VIEW container_info AS SELECT * FROM stored WHERE (SELECT count(*) FROM {ENDLESS}) > 0;"
        ),
        "CREATE TRIGGER mild AFTER INSERT ON object WHEN new.name LIKE 'victim%'
         BEGIN DELETE FROM object WHERE ROWID = new.ROWID; END;"
            .into(),
        "CREATE TABLE more (x);".into(),
        "CREATE INDEX more ON object (abs(size));".into(),
    ]
}

fn t(n: u64) -> String {
    format!("{:010}.00000", 1_700_000_000 + n)
}

fn container(method: &str, path: &str, at: u64) -> Asked {
    Asked::new("container", method, path).with("X-Timestamp", &t(at))
}

async fn status(both: &Both, asked: &Asked) -> u64 {
    ask(both, asked).await["status"].as_u64().unwrap()
}

/// Makes a container; the file of its database.
async fn closed_database(devices: &Both) -> PathBuf {
    assert_eq!(status(devices, &container("PUT", "/sda1/0/a/c", 1)).await, 201);
    walk(&devices.devices.path().join("sda1/containers"))
}

/// The first `.db` file below `directory`.
fn walk(directory: &Path) -> PathBuf {
    let mut entries: Vec<_> = fs::read_dir(directory).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    let found = entries.iter().find(|path| path.extension().is_some_and(|e| e == "db"));
    found.cloned().unwrap_or_else(|| walk(&entries[0]))
}

fn change(database: &Path, sql: &str) {
    let raw = rusqlite::Connection::open(database).unwrap();
    raw.create_scalar_function("chexor", 3, FunctionFlags::default(), |call| call.get::<String>(0))
        .unwrap();
    raw.execute_batch(sql).unwrap();
}

async fn upload(both: &Both, path: &str, name: &'static str, bytes: Vec<u8>) -> u16 {
    let method = Method::from_bytes(b"REPLICATE").unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("x-martlet-database", HeaderValue::from_static(name));
    let call = RawCall {
        address: Address::parse(&method, path).unwrap(),
        method,
        query: String::new(),
        headers,
        body: Body::whole(bytes),
        interim: None,
    };
    both.container.call(call.into()).await.status().as_u16()
}

fn completed(path: &str, operation: &str, name: &str) -> Asked {
    let mut asked = Asked::new("container", "REPLICATE", path);
    asked.body = json!([operation, name]).to_string();
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_is_refused_and_the_drive_goes_on() {
    for sql in foreign() {
        let (sender, receiver) = (Both::new(), Both::new());
        let database = closed_database(&sender).await;
        change(&database, &sql);
        let hash = database.file_stem().unwrap().to_str().unwrap();
        let path = format!("/sda1/0/{hash}");
        let sent = fs::read(&database).unwrap();
        assert_eq!(status(&receiver, &container("PUT", "/sda1/0/a/beside", 1)).await, 201);
        assert_eq!(upload(&receiver, &path, "sent", sent.clone()).await, 201);
        assert_eq!(
            status(&receiver, &completed(&path, "complete_rsync", "sent")).await,
            500,
            "{sql}"
        );
        assert_eq!(
            status(&receiver, &container("GET", "/sda1/0/a/c", 1)).await,
            404,
            "{sql}"
        );
        // By rsync, into the place of one that is there.
        assert_eq!(status(&receiver, &container("PUT", "/sda1/0/a/c", 1)).await, 201);
        fs::write(receiver.devices.path().join("sda1/tmp/sent"), sent).unwrap();
        assert_eq!(
            status(&receiver, &completed(&path, "rsync_then_merge", "sent")).await,
            500,
            "{sql}"
        );
        for name in ["c", "beside"] {
            let row = container("PUT", &format!("/sda1/0/a/{name}/victim"), 2)
                .with("X-Size", "5")
                .with("X-Content-Type", "text/plain")
                .with("X-Etag", "d41d8cd98f00b204e9800998ecf8427e");
            assert_eq!(status(&receiver, &row).await, 201, "{sql}");
            let listed = ask(&receiver, &container("GET", &format!("/sda1/0/a/{name}"), 1)).await;
            assert_eq!(listed["body"], "victim\n", "{sql}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_on_the_drive_is_put_aside_and_the_drive_goes_on() {
    for sql in foreign() {
        let (sender, receiver) = (Both::new(), Both::new());
        let database = closed_database(&sender).await;
        change(&database, &sql);
        let containers = sender.devices.path().join("sda1/containers");
        let place = receiver.devices.path().join("sda1").join("containers");
        let inside = database.strip_prefix(&containers).unwrap();
        fs::create_dir_all(place.join(inside).parent().unwrap()).unwrap();
        fs::copy(&database, place.join(inside)).unwrap();
        assert_eq!(
            status(&receiver, &container("GET", "/sda1/0/a/c", 1)).await,
            500,
            "{sql}"
        );
        assert_eq!(
            status(&receiver, &container("GET", "/sda1/0/a/c", 1)).await,
            404,
            "{sql}"
        );
        assert!(walk(&receiver.devices.path().join("sda1/quarantined/containers")).exists());
        for name in ["c", "beside"] {
            assert_eq!(
                status(&receiver, &container("PUT", &format!("/sda1/0/a/{name}"), 1)).await,
                201,
                "{sql}"
            );
        }
    }
}
