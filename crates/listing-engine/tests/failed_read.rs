//! A read that fails, which SQLite on Linux takes for damage, costs an answer and not the database.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod preload;
mod support;

use listing_engine::{Broker, Error, Kind, ListQuery, Row};
use std::path::Path;
use support::{at, create, location, names, object};
use vocabulary::FaultKind;

/// Reads of databases fail once while the folder has a file `once`, and always while it has `always`.
const LIBRARY: &str = r#"
    static int is_read(int fd, off_t at) {
        // The header tells whether another connection has written: SQLite passes over what it cannot read there.
        return at > 100 && (fails(fd, "once", 1) || fails(fd, "always", 0));
    }
    ssize_t pread(int fd, void *to, size_t size, off_t at) {
        if (is_read(fd, at)) return -1;
        return ((ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread"))(fd, to, size, at);
    }
    ssize_t pread64(int fd, void *to, size_t size, off_t at) {
        if (is_read(fd, at)) return -1;
        return ((ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread64"))(fd, to, size, at);
    }
"#;

/// A database that is open nowhere.
fn closed(device: &Path) -> Broker {
    Broker::open(location(device, Kind::Container)).unwrap()
}

/// A container of some pages.
fn filled(device: &Path) {
    create(device, Kind::Container);
    let rows: Vec<Row> = (0..500)
        .map(|number| Row::Object(object(&format!("a-name-of-an-object-{number:03}"), at(1))))
        .collect();
    let broker = closed(device);
    broker.commit_batch(&rows).unwrap();
    assert_eq!(count(&broker).unwrap(), 500);
}

fn count(broker: &Broker) -> Result<usize, Error> {
    names(broker, &ListQuery::default()).map(|names| names.len())
}

fn read_with_failing_drives(device: &Path) {
    let fail = |name: &str| std::fs::write(device.join(name), "").unwrap();
    let doubtful = |broker: &Broker| {
        fail("once");
        let failed = count(broker).unwrap_err();
        assert!(matches!(failed, Error::Doubtful { .. }), "{failed}");
        assert_eq!(failed.kind(), FaultKind::Item, "the drive's other files may be fine");
        assert!(!device.join("once").exists());
    };
    let quarantined = |outcome: Result<usize, Error>| {
        let failed = outcome.unwrap_err();
        assert!(matches!(failed, Error::Quarantined { .. }), "{failed}");
    };
    filled(device);
    let broker = closed(device);
    doubtful(&broker);
    assert_eq!(count(&broker).unwrap(), 500);

    // What no look explains, the second time.
    let broker = closed(device);
    doubtful(&broker);
    fail("once");
    quarantined(count(&broker));

    filled(device);
    let broker = closed(device);
    fail("always");
    quarantined(count(&broker));
}

#[test]
fn a_read_that_fails_once_takes_no_database_away() {
    match preload::folder() {
        Some(device) => read_with_failing_drives(&device),
        None => preload::run_itself("a_read_that_fails_once_takes_no_database_away", LIBRARY),
    }
}
