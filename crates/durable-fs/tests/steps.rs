//! The order of steps, and what is left when one of them fails, over the machine's file system with
//! a recorder in between.

#![allow(clippy::unwrap_used)] // a test says so by failing

mod recorder;

use durable_fs::{FsError, Health, StorageDevice, TrialOutcome, try_out};
use recorder::Recorder;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::FaultKind;
use world::World;
use world::random::OsRandom;

struct Bench {
    recorder: Recorder,
    device: Arc<StorageDevice>,
    root: PathBuf,
    _place: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("dev");
        std::fs::create_dir(&root).unwrap();
        let recorder = Recorder::default();
        let device = StorageDevice::new(Arc::new(recorder.clone()), Arc::new(OsRandom), &root);
        Self {
            recorder,
            device,
            root,
            _place: place,
        }
    }

    fn write(&self, content: &[u8]) -> Result<(), FsError> {
        let directory = self.root.join("objects/7/abc");
        let mut staged = self.device.stage(&directory, self.root.join("tmp"))?;
        staged.write(content)?;
        staged.set_attribute("user.a", b"b")?;
        staged.sync()?.publish("x.data").map(drop)
    }

    fn content(&self) -> Option<Vec<u8>> {
        std::fs::read(self.root.join("objects/7/abc/x.data")).ok()
    }

    fn orphaned_logs(&self) -> usize {
        std::fs::read_dir(self.root.join("tmp")).map_or(0, Iterator::count)
    }
}

/// No leftovers are to be found while a drive is tried out, nor after a crash.
#[test]
fn a_trial_has_no_name() {
    let bench = Bench::new();
    std::fs::create_dir(bench.root.join("tmp")).unwrap();
    let world = World {
        files: Arc::new(bench.recorder.clone()),
        ..World::real()
    };
    assert_eq!(try_out(&world, &bench.root, false), TrialOutcome::Well);
    assert_eq!(bench.recorder.steps(), ["write new", "sync new"]);
    bench.recorder.0.lock().named_only = true;
    assert_eq!(try_out(&world, &bench.root, false), TrialOutcome::Well);
    let steps = bench.recorder.steps();
    assert!(steps[0].starts_with("write .martlet-"), "{steps:?}");
    bench.recorder.0.lock().fail = Some(("sync", 5));
    assert!(matches!(try_out(&world, &bench.root, false), TrialOutcome::Sick(_)));
    assert_eq!(bench.orphaned_logs(), 0);
}

#[test]
fn a_process_that_can_open_no_more_files_learns_nothing_of_the_drive() {
    let bench = Bench::new();
    let world = World {
        files: Arc::new(bench.recorder.clone()),
        ..World::real()
    };
    // ENOMEM, ENFILE, EMFILE.
    for number in [12, 23, 24] {
        for named_only in [false, true] {
            bench.recorder.0.lock().named_only = named_only;
            bench.recorder.0.lock().opening = Some(number);
            let outcome = try_out(&world, &bench.root, false);
            assert!(matches!(outcome, TrialOutcome::Unclear(_)), "{number}: {outcome:?}");
            bench.recorder.0.lock().opening = None;
            assert_eq!(try_out(&world, &bench.root, false), TrialOutcome::Well);
        }
    }
    bench.recorder.0.lock().opening = Some(24);
    let failed = bench.write(b"one").unwrap_err();
    assert_eq!(failed.kind(), FaultKind::Contention, "{failed}");
    let failed = bench.device.sync_everything().unwrap_err();
    assert_eq!(failed.kind(), FaultKind::Contention, "{failed}");
    bench.device.check_writable().unwrap();
    bench.recorder.0.lock().opening = Some(13);
    assert_eq!(try_out(&world, &bench.root, false), TrialOutcome::Well);
    bench.recorder.0.lock().opening = Some(74);
    assert!(matches!(try_out(&world, &bench.root, false), TrialOutcome::Sick(_)));
}

/// Unmounted after the writer had looked: nothing comes to lie below the mount point.
#[test]
fn nothing_is_made_where_a_drive_should_be_mounted() {
    let place = tempfile::tempdir().unwrap();
    let health = Health::new(place.path());
    let device = StorageDevice::watched(Arc::new(Recorder::default()), Arc::new(OsRandom), health, true);
    let (pending, tmp) = (place.path().join("async_pending/abc"), place.path().join("tmp"));
    let refused = device.write_file(&pending, "x", &tmp, b"row");
    assert!(matches!(refused, Err(FsError::NotMounted(_))), "{refused:?}");
    let refused = device.make_directories(&place.path().join("objects"));
    assert!(matches!(refused, Err(FsError::NotMounted(_))), "{refused:?}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn steps_come_in_order_and_new_parents_are_synced_once() {
    let bench = Bench::new();
    bench.write(b"one").unwrap();
    assert_eq!(
        bench.recorder.steps(),
        [
            "make abc",
            "make 7",
            "make objects",
            "make 7",
            "make abc", // found missing, made from above
            "write new",
            "attribute new",
            "sync new",
            "link x.data",
            "sync-directory abc",
            "sync-directory 7",
            "sync-directory objects",
            "sync-directory dev",
        ]
    );
    std::fs::remove_file(bench.root.join("objects/7/abc/x.data")).unwrap();
    bench.write(b"two").unwrap();
    assert_eq!(
        bench.recorder.steps(),
        [
            "write new",
            "attribute new",
            "sync new",
            "link x.data",
            "sync-directory abc"
        ]
    );
}

/// A batch of `count` objects in suffixes of their own; what became of each.
fn write_batch(bench: &Bench, count: usize) -> Vec<Result<bool, FsError>> {
    let mut batch = bench.device.batch(count).unwrap();
    let mut stage = |number| {
        let directory = bench.root.join(format!("objects/7/{number:03}/hash"));
        let mut staged = batch.stage_new(&directory, bench.root.join("tmp")).unwrap();
        staged.write(b"body").unwrap();
        staged
    };
    let staged: Vec<_> = (0..count).map(&mut stage).collect();
    bench.recorder.steps();
    let (mut outcomes, mut synced) = (vec![], vec![]);
    for file in batch.sync(staged) {
        match file {
            Ok(file) => synced.push((file, "x.data".into())),
            Err(error) => outcomes.push(Err(error)),
        }
    }
    outcomes.extend(
        batch
            .publish(synced)
            .into_iter()
            .map(|file| file.map(|file| file.alone)),
    );
    outcomes
}

#[test]
fn a_batch_is_synced_twice_and_a_small_one_file_by_file() {
    for (count, at_once) in [(2, false), (20, true)] {
        let bench = Bench::new();
        let alone: Vec<bool> = write_batch(&bench, count).into_iter().map(Result::unwrap).collect();
        assert_eq!(alone, vec![true; count]);
        let steps: Vec<String> = bench.recorder.steps();
        let syncs: Vec<_> = steps.iter().filter(|step| step.starts_with("sync")).collect();
        match at_once {
            true => {
                assert_eq!(syncs, ["sync-everything dev"; 2]);
                let links = steps.iter().filter(|step| *step == "link x.data").count();
                assert_eq!((links, steps[0].as_str()), (count, "sync-everything dev"));
                assert_eq!(steps.last().unwrap(), "sync-everything dev");
            }
            false => assert!(
                !syncs.iter().any(|step| step.starts_with("sync-everything")),
                "{syncs:?}"
            ),
        }
        // The directories are known to be durable now, and no longer its own.
        assert!(write_batch(&bench, count).into_iter().all(|alone| !alone.unwrap()));
        let made = bench.recorder.steps();
        assert!(at_once || made.iter().filter(|step| step.starts_with("sync-directory")).count() == count);
    }
}

#[test]
fn a_batch_whose_sync_fails_is_not_there_and_ends_writing() {
    let errno = rustix::io::Errno::IO.raw_os_error();
    let bench = Bench::new();
    bench.device.health().tick();
    bench.recorder.0.lock().fail = Some(("sync-everything", errno));
    let outcomes = write_batch(&bench, 20);
    assert!(outcomes.iter().all(Result::is_err) && outcomes.len() == 20);
    assert!(!bench.root.join("objects/7/003/hash").exists());
    bench.recorder.0.lock().fail = None;
    assert!(bench.write(b"two").unwrap_err().is_unavailable());
}

/// On a system that does not report what it could not write.
#[test]
fn a_batch_is_synced_file_by_file_where_all_at_once_tells_nothing() {
    let bench = Bench::new();
    bench.recorder.0.lock().fail = Some(("sync-everything", rustix::io::Errno::OPNOTSUPP.raw_os_error()));
    assert!(write_batch(&bench, 20).iter().all(Result::is_ok));
    let steps = bench.recorder.steps();
    assert_eq!(steps.iter().filter(|step| *step == "sync new").count(), 20);
    assert_eq!(steps.iter().filter(|step| *step == "sync-directory hash").count(), 20);
}

/// Another process may publish below it, which knows nothing of its being new.
#[test]
fn a_directory_made_for_others_is_durable_at_once() {
    let bench = Bench::new();
    let place = bench.root.join("objects");
    bench.device.provide_directories(&place).unwrap();
    assert_eq!(
        bench.recorder.steps(),
        ["make objects", "sync-directory objects", "sync-directory dev"]
    );
    bench.device.provide_directories(&place).unwrap();
    assert!(bench.recorder.steps().is_empty());
}

#[test]
fn what_can_be_made_anew_is_not_synced() {
    for named_only in [false, true] {
        let bench = Bench::new();
        bench.recorder.0.lock().named_only = named_only;
        let (directory, temporaries) = (bench.root.join("objects/7/abc"), bench.root.join("tmp"));
        for content in [b"one", b"two"] {
            let written = bench.device.write_remaking(&directory, "x.data", &temporaries, content);
            written.unwrap();
            assert_eq!(bench.content().unwrap(), content);
        }
        let steps = bench.recorder.steps();
        assert!(!steps.iter().any(|step| step.starts_with("sync")), "{steps:?}");
        assert_eq!(bench.orphaned_logs(), 0);
    }
}

#[test]
fn a_name_that_is_taken_is_replaced_at_once() {
    for named_only in [false, true] {
        let bench = Bench::new();
        bench.recorder.0.lock().named_only = named_only;
        bench.write(b"old").unwrap();
        bench.write(b"new").unwrap();
        assert_eq!(bench.content().unwrap(), b"new");
        assert_eq!(bench.orphaned_logs(), 0);
        bench.recorder.0.lock().fail = Some(("rename", rustix::io::Errno::IO.raw_os_error()));
        bench.write(b"newer").unwrap_err();
        assert_eq!(bench.content().unwrap(), b"new");
        assert_eq!(bench.orphaned_logs(), 0);
    }
}

#[test]
fn a_failed_step_leaves_the_old_content_and_no_temporary_file() {
    let errno = rustix::io::Errno::NOSPC.raw_os_error();
    for named_only in [false, true] {
        for step in ["write", "attribute", "sync", "link", "rename"] {
            let bench = Bench::new();
            bench.recorder.0.lock().named_only = named_only;
            bench.write(b"old").unwrap();
            bench.recorder.0.lock().fail = Some((step, errno));
            if bench.write(b"new").is_err() {
                assert_eq!(bench.content().unwrap(), b"old", "{step}");
            }
            assert_eq!(bench.orphaned_logs(), 0, "{step}");
        }
    }
}

#[test]
fn a_failed_fsync_ends_writing_where_the_drive_is_tried_out() {
    for (step, is_watched) in [
        ("sync", true),
        ("sync-directory", true),
        ("sync", false),
        ("sync-directory", false),
    ] {
        let bench = Bench::new();
        if is_watched {
            bench.device.health().tick();
        }
        bench.recorder.0.lock().fail = Some((step, rustix::io::Errno::IO.raw_os_error()));
        bench.write(b"one").unwrap_err();
        bench.recorder.0.lock().fail = None;
        match bench.write(b"two") {
            Ok(()) => assert!(!is_watched, "{step}"),
            Err(refused) => assert!(is_watched && refused.is_unavailable(), "{step}: {refused}"),
        }
    }
}

#[test]
fn an_aborted_write_leaves_nothing() {
    let bench = Bench::new();
    let directory = bench.root.join("objects/7/abc");
    let mut staged = bench.device.stage(&directory, bench.root.join("tmp")).unwrap();
    staged.write(b"half").unwrap();
    drop(staged);
    assert!(!directory.exists());
}

#[test]
fn a_directory_that_is_taken_away_while_a_file_is_begun_in_it_is_made_again() {
    let bench = Bench::new();
    bench.recorder.0.lock().taken_away = true;
    bench.write(b"new").unwrap();
    assert_eq!(bench.content().unwrap(), b"new");
}

#[test]
fn a_directory_that_takes_no_files_is_an_error_in_the_end() {
    let (bench, eperm) = (Bench::new(), 1);
    bench.recorder.0.lock().opening = Some(eperm);
    let error = bench.write(b"new").unwrap_err();
    assert!(matches!(error, FsError::Io { source, .. } if source.raw_os_error() == Some(eperm)));
}

#[test]
fn a_missing_device_is_not_made() {
    let bench = Bench::new();
    std::fs::remove_dir(&bench.root).unwrap();
    let refused = bench.write(b"one").unwrap_err();
    assert!(refused.is_unavailable());
    assert!(refused.to_string().contains("does not exist"), "{refused}");
    assert!(!bench.root.exists());
    assert!(bench.device.check_present(false).is_err());
    std::fs::create_dir(&bench.root).unwrap();
    bench.device.check_present(false).unwrap();
    assert!(
        bench
            .device
            .check_present(true)
            .unwrap_err()
            .to_string()
            .contains("not mounted")
    );
}

#[test]
fn moving_aside_never_replaces() {
    let bench = Bench::new();
    let (from, to) = (bench.root.join("objects/1/h"), bench.root.join("quarantined/objects/h"));
    let mut places = vec![];
    for _ in 0..2 {
        std::fs::create_dir_all(&from).unwrap();
        std::fs::write(from.join("f"), b"x").unwrap();
        places.push(bench.device.move_aside(&from, &to).unwrap());
    }
    assert_eq!(places[0], to);
    assert!(places[1].to_string_lossy().starts_with(&format!("{}-", to.display())));
    assert!(places.iter().all(|place| place.join("f").exists()));
    // Files neither, nor a directory where a file is.
    let (file, to) = (
        bench.root.join("objects/1/file"),
        bench.root.join("quarantined/objects/file"),
    );
    for content in [&b"first"[..], b"second"] {
        std::fs::write(&file, content).unwrap();
        let place = bench.device.move_aside(&file, &to).unwrap();
        assert_eq!(
            (std::fs::read(place).unwrap(), std::fs::read(&to).unwrap()),
            (content.into(), b"first".to_vec())
        );
    }
    std::fs::create_dir(&file).unwrap();
    assert!(bench.device.move_aside(&file, &to).unwrap().is_dir());
}

#[test]
fn the_sweep_spares_living_writers_and_strangers() {
    let bench = Bench::new();
    bench.recorder.0.lock().named_only = true;
    let tmp = bench.root.join("tmp");
    let alive = bench.device.stage(bench.root.join("objects"), &tmp).unwrap();
    std::fs::write(tmp.join(".martlet-dead"), b"x").unwrap();
    std::fs::write(tmp.join("tmpstranger"), b"x").unwrap();
    std::fs::create_dir(tmp.join("directory")).unwrap();
    assert_eq!(bench.device.sweep(&tmp, None).unwrap(), 1);
    assert_eq!(bench.device.sweep(&tmp, Some(1_000_000_000)).unwrap(), 0);
    assert_eq!(bench.orphaned_logs(), 3);
    assert_eq!(bench.device.sweep(&tmp, Some(9_000_000_000)).unwrap(), 1);
    assert_eq!(bench.orphaned_logs(), 2);
    drop(alive);
    assert_eq!(bench.orphaned_logs(), 1);
    assert_eq!(bench.device.sweep(&bench.root.join("none"), None).unwrap(), 0);
}

#[test]
fn hints_are_appended_under_the_lock() {
    let bench = Bench::new();
    let locked = bench.device.lock(&bench.root, Duration::ZERO).unwrap();
    locked.append_hint("hashes.invalid", b"abc\n").unwrap();
    assert!(bench.device.lock(&bench.root, Duration::from_millis(3)).is_err());
    drop(locked);
    let locked = bench.device.lock(&bench.root, Duration::ZERO).unwrap();
    locked.append_hint("hashes.invalid", b"def\n").unwrap();
    assert_eq!(std::fs::read(bench.root.join("hashes.invalid")).unwrap(), b"abc\ndef\n");
}

#[test]
fn hints_that_were_renewed_are_there_and_stand_no_more() {
    let bench = Bench::new();
    let locked = bench.device.lock(&bench.root, Duration::ZERO).unwrap();
    let before = locked.append_hint("hashes.invalid", b"abc\n").unwrap();
    assert!(before.stands());
    let temporaries = bench.root.join("tmp");
    locked.renew_hints("hashes.invalid", &temporaries, b"abc\n").unwrap();
    assert!(!before.stands());
    let since = locked.append_hint("hashes.invalid", b"abc\n").unwrap();
    assert!(since.stands() && !before.stands());
    assert_eq!(std::fs::read(bench.root.join("hashes.invalid")).unwrap(), b"abc\nabc\n");
    locked.clear_hints("hashes.invalid").unwrap();
    assert!(!since.stands());
}

#[test]
fn a_file_outside_any_device_is_replaced_whole() {
    let place = tempfile::tempdir().unwrap();
    let world = World::real();
    let path = place.path().join("object.ring.gz");
    for (content, mode) in [(&b"one"[..], 0o644), (b"two", 0o640)] {
        durable_fs::write_file_atomically(&world, place.path(), "object.ring.gz", content).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), content);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    let nowhere = place.path().join("nowhere");
    assert!(durable_fs::write_file_atomically(&world, &nowhere, "x", b"").is_err());
    assert!(!nowhere.exists());
}

/// A name that may not be durable is to be seen: before others rely on it, everything is synced, once.
#[test]
fn what_a_failed_write_left_to_be_seen_is_synced_before_others_rely_on_it() {
    let bench = Bench::new();
    bench.device.sync_what_failed().unwrap();
    assert!(bench.recorder.steps().is_empty());
    bench.recorder.0.lock().fail = Some(("sync-directory", rustix::io::Errno::IO.raw_os_error()));
    bench.write(b"one").unwrap_err();
    bench.recorder.0.lock().fail = Some(("sync-all", rustix::io::Errno::IO.raw_os_error()));
    bench.recorder.steps();
    assert!(bench.device.sync_what_failed().is_err());
    bench.recorder.0.lock().fail = None;
    bench.device.sync_what_failed().unwrap();
    bench.device.sync_what_failed().unwrap();
    assert_eq!(bench.recorder.steps(), ["sync-all dev"; 2]);
}

/// A newer object that came between a batch's two steps leaves something obsolete to look for.
#[test]
fn a_directory_is_not_its_own_when_somebody_has_published_there_meanwhile() {
    let bench = Bench::new();
    let (directory, temporaries) = (bench.root.join("objects/7/abc/hash"), bench.root.join("tmp"));
    let mut batch = bench.device.batch(2).unwrap();
    let older = batch.stage_new(&directory, &temporaries).unwrap();
    let newer = bench.device.stage(&directory, &temporaries).unwrap();
    newer.sync().unwrap().publish("newer.data").map(drop).unwrap();
    let synced = batch.sync(vec![older]).into_iter().map(Result::unwrap);
    let published = batch.publish(synced.map(|file| (file, "older.data".into())).collect());
    assert!(!published[0].as_ref().unwrap().alone);
}
