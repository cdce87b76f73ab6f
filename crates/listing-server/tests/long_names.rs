//! Names that no client could send, which another replica's database may bring: they are listed as far as a listing's
//! memory is bounded.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod support;

use rusqlite::functions::FunctionFlags;
use std::path::Path;
use support::{Asked, Both, ask};

/// Each byte of a name takes six in JSON and three in XML: all of them are 228 MiB and 114 MiB.
const NAMES: &str = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 400)";
const NAME: &str = "printf('%06d', i) || replace(hex(zeroblob(50000)), '0', char(1))";

fn change(database: &Path, sql: &str) {
    let raw = rusqlite::Connection::open(database).unwrap();
    raw.create_scalar_function("chexor", 3, FunctionFlags::default(), |call| call.get::<String>(0))
        .unwrap();
    raw.execute_batch(sql).unwrap();
}

/// The database below `directory`.
fn database(directory: &Path) -> std::path::PathBuf {
    let mut entries: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    let found = entries
        .iter()
        .find(|path| path.extension().is_some_and(|end| end == "db"));
    found.cloned().unwrap_or_else(|| database(&entries[0]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_that_would_be_too_long_is_refused() {
    let columns = "put_timestamp, delete_timestamp, object_count, bytes_used, deleted";
    for (server, path, folder, rows) in [
        (
            "container",
            "/sda1/0/a/c",
            "containers",
            format!(
                "INSERT INTO object (name, created_at, size, content_type, etag, deleted)
                 {NAMES} SELECT {NAME}, '1700000002.00000', 1, 'text/plain', 'e', 0 FROM n"
            ),
        ),
        (
            "account",
            "/sda1/0/a",
            "accounts",
            format!(
                "INSERT INTO container (name, {columns})
                 {NAMES} SELECT {NAME}, '1700000002.00000', '0', 0, 0, 0 FROM n"
            ),
        ),
    ] {
        let both = Both::new();
        let made = Asked::new(server, "PUT", path).with("X-Timestamp", "1700000001.00000");
        assert_eq!(ask(&both, &made).await["status"], 201, "{server}");
        change(&database(&both.devices.path().join("sda1").join(folder)), &rows);
        for (query, status) in [
            ("format=json", 500),
            ("format=json&limit=100", 200),
            ("format=xml&limit=100", 200),
            ("limit=10000", 200),
        ] {
            let answer = ask(&both, &Asked::new(server, "GET", &format!("{path}?{query}"))).await;
            assert_eq!(answer["status"], status, "{server} {query}");
            let one_item = &answer["headers"]["x-backend-one-item-failed"];
            assert_eq!(one_item.is_null(), status == 200, "{answer}");
        }
    }
}
