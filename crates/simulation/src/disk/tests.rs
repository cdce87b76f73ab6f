//! What survives, and what does not.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use super::*;
use crate::executor::Executor;
use std::path::PathBuf;
use world::files::{FileSystem, Purpose};

fn disks(seed: u64, order: WriteOrder) -> SimFiles {
    let dice = Dice::new(seed);
    let clock = SimClock::new(Executor::new(dice.clone()));
    SimFiles::new(clock, dice, Trace::new(false), 0, &[("d", order)])
}

fn path(name: &str) -> PathBuf {
    Path::new("/srv/d").join(name)
}

/// Writes and syncs a file and its name.
fn write_safely(files: &SimFiles, name: &str, content: &[u8]) {
    let file = files.open(&path(name), Purpose::Create).unwrap();
    file.write_all_at(content, 0).unwrap();
    file.set_attribute("user.a", b"value").unwrap();
    file.sync().unwrap();
    files
        .open_directory(path(name).parent().unwrap())
        .unwrap()
        .sync()
        .unwrap();
}

#[test]
fn what_was_synced_survives() {
    for seed in 0..50 {
        for order in [WriteOrder::Log, WriteOrder::Any] {
            let files = disks(seed, order);
            write_safely(&files, "f", &[7; 3000]);
            files
                .open(&path("f"), Purpose::Change)
                .unwrap()
                .write_all_at(&[8; 1000], 0)
                .unwrap();
            let held = files.open(&path("f"), Purpose::Read).unwrap();
            files.restore_power();
            assert!(held.read_at(&mut [0], 0).is_err(), "a handle from before");
            let content = files.read(&path("f"), 1 << 20).unwrap();
            assert!(content.len() == 3000 && content[1024..].iter().all(|byte| *byte == 7));
            let file = files.open(&path("f"), Purpose::Read).unwrap();
            assert_eq!(file.attribute_length("user.a").unwrap(), 5);
        }
    }
}

#[test]
fn what_was_not_survives_wholly_in_parts_or_not_at_all() {
    let (mut whole, mut torn, mut absent, mut empty) = (0, 0, 0, 0);
    for seed in 0..200 {
        let files = disks(seed, WriteOrder::Any);
        let file = files.open(&path("f"), Purpose::Create).unwrap();
        file.write_all_at(&[7; 3000], 0).unwrap();
        files.restore_power();
        match files.read(&path("f"), 1 << 20) {
            Err(_) => absent += 1,
            Ok(content) if content.is_empty() => empty += 1,
            Ok(content) if content == [7; 3000] => whole += 1,
            Ok(_) => torn += 1,
        }
    }
    assert!(
        whole > 0 && torn > 0 && absent > 0 && empty > 0,
        "{whole} {torn} {absent} {empty}"
    );
}

#[test]
fn a_file_is_safe_only_with_every_directory_above() {
    let mut lost = 0;
    for seed in 0..50 {
        let files = disks(seed, WriteOrder::Any);
        files.make_directory(&path("a")).unwrap();
        write_safely(&files, "a/f", b"x");
        files.restore_power();
        lost += usize::from(files.info(&path("a/f")).is_err());
        let files = disks(seed, WriteOrder::Log);
        files.make_directory(&path("a")).unwrap();
        write_safely(&files, "a/f", b"x");
        files.restore_power();
        assert!(files.info(&path("a/f")).is_ok(), "the log has it in order");
    }
    assert!(lost > 0);
}

#[test]
fn a_rename_happens_or_does_not() {
    for seed in 0..100 {
        let files = disks(seed, WriteOrder::Any);
        write_safely(&files, "old", b"new");
        files.make_directory(&path("there")).unwrap();
        files.open_directory(&path("")).unwrap().sync().unwrap();
        files.rename(&path("old"), &path("there/f")).unwrap();
        files.restore_power();
        let (old, new) = (files.info(&path("old")).is_ok(), files.info(&path("there/f")).is_ok());
        assert!(old != new);
    }
}

#[test]
fn the_end_of_a_process_loses_nothing_but_what_has_no_name() {
    let files = disks(1, WriteOrder::Any);
    let file = files.open(&path("f"), Purpose::Create).unwrap();
    file.write_all_at(b"abc", 0).unwrap();
    file.lock(Duration::ZERO).unwrap();
    let unnamed = files.open_unnamed(&path("")).unwrap();
    assert!(
        files
            .open(&path("f"), Purpose::Read)
            .unwrap()
            .lock(Duration::ZERO)
            .is_err()
    );
    files.close_all();
    assert_eq!(files.read(&path("f"), 10).unwrap(), b"abc");
    files
        .open(&path("f"), Purpose::Read)
        .unwrap()
        .lock(Duration::ZERO)
        .unwrap();
    assert!(unnamed.link(&path("g")).is_err());
}

#[test]
fn a_failed_sync_loses_for_good() {
    let mut lost = 0;
    for seed in 0..30 {
        let files = disks(seed, WriteOrder::Any);
        write_safely(&files, "f", b"old");
        let file = files.open(&path("f"), Purpose::Change).unwrap();
        file.write_all_at(b"new", 0).unwrap();
        files.inject("d", DriveFault::FailingSyncs(1));
        assert!(file.sync().is_err());
        file.sync().unwrap();
        files.restore_power();
        lost += usize::from(files.read(&path("f"), 10).unwrap() == b"old");
    }
    assert!(lost > 10);
}

#[test]
fn the_power_goes_between_two_steps() {
    let files = disks(1, WriteOrder::Any);
    files.lose_power_after(2);
    let file = files.open(&path("f"), Purpose::Create).unwrap();
    file.write_all_at(b"abc", 0).unwrap();
    assert!(!files.is_dark());
    assert!(file.sync().is_err() && files.is_dark());
    assert!(files.info(&path("f")).is_err());
}

#[test]
fn a_drive_that_is_pulled_leaves_an_empty_place() {
    let files = disks(1, WriteOrder::Any);
    write_safely(&files, "f", b"abc");
    assert!(files.is_mount_point(&path("")).unwrap());
    files.inject("d", DriveFault::Pulled(true));
    assert!(!files.is_mount_point(&path("")).unwrap());
    assert!(files.info(&path("f")).is_err());
    assert!(files.make_directory(&path("a")).is_err());
    files.inject("d", DriveFault::Pulled(false));
    assert_eq!(files.read(&path("f"), 10).unwrap(), b"abc");
    files.inject("d", DriveFault::FlippedBit);
    let file = files.open(&path("f"), Purpose::Read).unwrap();
    let mut value = [0; 5];
    file.get_attribute("user.a", &mut value).unwrap();
    assert!(files.read(&path("f"), 10).unwrap() != b"abc" || &value != b"value");
}
