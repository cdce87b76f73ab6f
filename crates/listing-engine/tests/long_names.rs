//! Names that no client could send: they are kept, and are never held all at once.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod support;

use listing_engine::wire::Numbered;
use listing_engine::{Arriving, Broker, CopyIdentity, Kind, Row};
use support::{at, fill, location, replica};
use vocabulary::PolicyIndex;

/// What is read at a time.
const BATCH: usize = 8 << 20;

/// A hundred and fifty names of 100,000 bytes, which are two batches.
fn long_names() -> Vec<String> {
    (0..150)
        .map(|number| format!("{number:06}{}", "n".repeat(99_994)))
        .collect()
}

fn name(numbered: &Numbered) -> &str {
    match &numbered.row {
        Row::Object(row) => &row.name,
        Row::Container(row) => &row.name,
    }
}

/// All names; none of the batches that they are read in is larger than it may be.
fn read(broker: &Broker) -> Vec<String> {
    let (mut point, mut names) = (-1, vec![]);
    loop {
        let rows = broker.rows_since(point, 1000).unwrap();
        let Some(last) = rows.last() else { break };
        point = last.id;
        let bytes: usize = rows.iter().map(|row| name(row).len()).sum();
        assert!(bytes <= BATCH, "{bytes} bytes in {} rows", rows.len());
        names.extend(rows.iter().map(|row| name(row).to_owned()));
    }
    names.sort();
    names
}

#[test]
fn rows_are_read_in_batches_of_bounded_size() {
    for kind in [Kind::Container, Kind::Account] {
        let dir = tempfile::tempdir().unwrap();
        let broker = replica(&dir.path().join("sda"), kind, 1);
        fill(&broker, &long_names());
        assert_eq!(read(&broker), long_names());
    }
}

#[test]
fn misplaced_rows_are_read_in_batches_of_bounded_size() {
    let dir = tempfile::tempdir().unwrap();
    let broker = replica(&dir.path().join("sda"), Kind::Container, 1);
    fill(&broker, &long_names());
    broker.set_policy(PolicyIndex(1), at(9)).unwrap();
    let first = broker.misplaced_since(-1, 1000).unwrap();
    let bytes: usize = first.iter().map(|(_, row)| row.name.len()).sum();
    assert!((BATCH / 2..=BATCH).contains(&bytes), "{bytes}");
    let rest = broker.misplaced_since(first.last().unwrap().0, 1000).unwrap();
    assert_eq!(first.len() + rest.len(), 150);
}

/// What does not fit in a batch is one by itself.
#[test]
fn a_longer_name_is_read_alone() {
    let dir = tempfile::tempdir().unwrap();
    let broker = replica(&dir.path().join("sda"), Kind::Container, 1);
    let names = ["a".to_owned(), "b".repeat(BATCH + 1), "c".to_owned()];
    fill(&broker, &names);
    let mut point = -1;
    for name_of_batch in &names {
        let rows = broker.rows_since(point, 1000).unwrap();
        assert_eq!(rows.iter().map(name).collect::<Vec<_>>(), [name_of_batch]);
        point = rows[0].id;
    }
    assert!(broker.rows_since(point, 1000).unwrap().is_empty());
}

#[test]
fn a_database_with_long_names_takes_along_what_was_here() {
    let dir = tempfile::tempdir().unwrap();
    let here = replica(&dir.path().join("sda"), Kind::Container, 1);
    std::fs::create_dir_all(dir.path().join("sdb")).unwrap();
    let there = location(&dir.path().join("sdb"), Kind::Container);
    let there = replica(there.device(), Kind::Container, 2);
    let (mine, theirs) = (["here".to_owned()], long_names());
    fill(&here, &mine);
    fill(&there, &theirs);
    let identity = CopyIdentity {
        name: "remote-id",
        unique: "5e7ab1e5-0000-4000-8000-00000000000f",
    };
    let snapshot = here.snapshot("1").unwrap();
    let mut arriving = Arriving::begin(there.location(), identity).unwrap();
    arriving.write(&std::fs::read(snapshot.path()).unwrap()).unwrap();
    arriving.finish().unwrap();
    there.replace_with(identity, |_| true).unwrap();
    assert_eq!(read(&there), [theirs.as_slice(), &mine].concat());
}
