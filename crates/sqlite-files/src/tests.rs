//! Files that SQLite has through a mount are those that it has by itself, down to journals and locks.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use super::*;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use vocabulary::Timestamp;
use world::BoxFuture;
use world::real_files::RealFiles;

/// The time is always the same.
struct StoppedClock;

const STOPPED_AT: u64 = 1_234_567_890;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_seconds(STOPPED_AT)
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn mounted() -> (SqliteMount, TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    (
        SqliteMount::new(Arc::new(RealFiles), Arc::new(StoppedClock)),
        directory,
        path,
    )
}

fn open(mount: &SqliteMount, path: &Path) -> Connection {
    Connection::open_with_flags_and_vfs(path, OpenFlags::default(), mount.vfs()).unwrap()
}

fn count(connection: &Connection) -> i64 {
    connection
        .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
        .unwrap()
}

/// More than a page cache of ten pages holds, so that pages and journal are written before the end.
const ROWS: &str = "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000)
     SELECT i, hex(zeroblob(100)) FROM n";

#[test]
fn a_database_is_the_same_to_both_vfs() {
    let (mount, _directory, path) = mounted();
    let through = open(&mount, &path);
    through.execute_batch("CREATE TABLE t (i INTEGER, text TEXT)").unwrap();
    through.execute(ROWS, []).unwrap();
    let directly = Connection::open(&path).unwrap();
    assert_eq!(count(&directly), 1_000);
    directly.execute(ROWS, []).unwrap();
    assert_eq!(count(&through), 2_000);
    let copy = path.with_extension("copy");
    through.execute("VACUUM INTO ?", [copy.to_string_lossy()]).unwrap();
    assert_eq!(count(&Connection::open(copy).unwrap()), 2_000);
}

#[test]
fn what_a_killed_process_left_unfinished_is_undone() {
    for mode in ["DELETE", "TRUNCATE"] {
        let (mount, directory, path) = mounted();
        let through = open(&mount, &path);
        through.execute_batch("CREATE TABLE t (i INTEGER, text TEXT)").unwrap();
        through.execute(ROWS, []).unwrap();
        through
            .query_row(&format!("PRAGMA journal_mode={mode}"), [], |_| Ok(()))
            .unwrap();
        let before = std::fs::read(&path).unwrap();
        through
            .execute_batch("PRAGMA cache_size=10; BEGIN; UPDATE t SET text = 'x'")
            .unwrap();
        through.execute(ROWS, []).unwrap();
        // As they are when the process ends here.
        let (left, journal) = (directory.path().join("b.db"), directory.path().join("b.db-journal"));
        std::fs::copy(&path, &left).unwrap();
        std::fs::copy(directory.path().join("a.db-journal"), &journal).unwrap();
        assert_ne!(std::fs::read(&left).unwrap(), before, "nothing was unfinished");
        let again = open(&mount, &left);
        assert_eq!(count(&again), 1_000, "{mode}");
        let sound: String = again.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
    }
}

#[test]
fn one_connection_writes_and_then_nobody_reads() {
    let (mount, _directory, path) = mounted();
    let (one, other) = (open(&mount, &path), open(&mount, &path));
    one.execute_batch("CREATE TABLE t (i INTEGER, text TEXT)").unwrap();
    let busy = |outcome: rusqlite::Result<()>| {
        assert_eq!(outcome.unwrap_err().sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
    };
    one.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (1, '')")
        .unwrap();
    assert_eq!(count(&other), 0, "who is about to write keeps no reader out");
    other.busy_timeout(Duration::from_secs(3_600)).unwrap();
    busy(other.execute_batch("BEGIN IMMEDIATE"));
    other.execute_batch("BEGIN; SELECT * FROM t").unwrap();
    busy(one.execute_batch("COMMIT"));
    let third = open(&mount, &path);
    busy(third.query_row("SELECT count(*) FROM t", [], |_| Ok(())));
    other.execute_batch("COMMIT").unwrap();
    one.execute_batch("COMMIT").unwrap();
    assert_eq!((count(&other), count(&third)), (1, 1));
    one.execute_batch("BEGIN EXCLUSIVE").unwrap();
    busy(other.query_row("SELECT count(*) FROM t", [], |_| Ok(())));
    drop(one);
    assert_eq!(count(&other), 1);
}

#[test]
fn the_time_is_that_of_the_mount() {
    let (mount, _directory, path) = mounted();
    let now = open(&mount, &path).query_row("SELECT CAST(strftime('%s', 'now') AS INTEGER)", [], |row| row.get(0));
    assert_eq!(now, Ok(STOPPED_AT as i64));
}

#[test]
fn what_is_unmounted_leaves_its_vfs_to_the_next() {
    for _ in 0..100 {
        let (mount, _directory, path) = mounted();
        open(&mount, &path).execute_batch("CREATE TABLE t (i INTEGER)").unwrap();
    }
    assert!(MADE.load(Ordering::Relaxed) < 50, "a VFS for each");
}
