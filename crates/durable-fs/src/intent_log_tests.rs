use super::*;
use world::World;

struct Bench {
    place: tempfile::TempDir,
    device: Arc<StorageDevice>,
}

impl Bench {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let world = World::real();
        let device = StorageDevice::new(world.files, world.random, place.path());
        Self { place, device }
    }

    fn log(&self) -> IntentLog {
        IntentLog::new(self.device.clone(), self.tmp())
    }

    fn tmp(&self) -> PathBuf {
        self.place.path().join("tmp")
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.tmp()).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    fn left(&self) -> Vec<Vec<u8>> {
        let left = orphaned_logs(&self.device, &self.tmp()).unwrap();
        left.iter().flat_map(|file| file.records().unwrap()).collect()
    }
}

/// Of a length that takes several units, different for each.
fn long(number: u8) -> Vec<u8> {
    (0..usize::from(number) * 300).map(|at| (at as u8) ^ number).collect()
}

#[test]
fn what_is_under_way_is_found_when_its_process_is_gone_and_not_before() {
    let bench = Bench::new();
    assert_eq!(bench.left(), Vec::<Vec<u8>>::new());
    let log = bench.log();
    assert!(!log.is_open());
    let records: Vec<Vec<u8>> = (0..20).map(long).collect();
    let taken: Vec<_> = records.iter().map(|record| log.take(record)).collect();
    assert!(taken.iter().all(Option::is_some) && log.is_open());
    assert_eq!((bench.files().len(), bench.left()), (1, vec![]));
    let other = bench.log();
    let _other = other.take(b"another process").unwrap();
    assert_eq!(bench.files().len(), 2);
    drop((log, taken));
    assert_eq!(bench.left(), records);
    for file in orphaned_logs(&bench.device, &bench.tmp()).unwrap() {
        file.remove().unwrap();
    }
    assert_eq!((bench.files().len(), bench.left()), (1, vec![]));
}

#[test]
fn room_is_used_again_and_the_file_goes_when_nothing_is_under_way() {
    let bench = Bench::new();
    let log = bench.log();
    for number in 0..200 {
        drop(log.take(&long(number % 9)).unwrap());
    }
    assert!(std::fs::metadata(&bench.files()[0]).unwrap().len() <= 3 * UNIT as u64);
    let under_way = log.take(b"x").unwrap();
    log.close_idle();
    log.close_idle();
    assert_eq!(bench.files().len(), 1);
    drop(under_way);
    log.close_idle();
    assert!(log.is_open());
    log.close_idle();
    assert!(!log.is_open() && bench.files().is_empty());
    let _again = log.take(b"y").unwrap();
    assert_eq!(bench.files().len(), 1);
}

#[test]
fn an_old_file_gets_no_more_records_and_goes_with_its_last() {
    let bench = Bench::new();
    let log = bench.log();
    let first = log.take(b"first").unwrap();
    (0..MOST_LOOKS).for_each(|_| log.close_idle());
    let second = log.take(b"second").unwrap();
    assert_eq!(bench.files().len(), 2);
    drop(first);
    log.close_idle();
    assert_eq!(bench.files().len(), 1);
    drop(log);
    drop(second);
    assert_eq!(bench.left(), [b"second"]);
}

#[test]
fn what_cannot_be_done_is_left_to_others_while_nothing_else_is_under_way() {
    let bench = Bench::new();
    let log = bench.log();
    log.take(b"left").unwrap().leave();
    let other = log.take(b"other").unwrap();
    (0..LOOKS_WHEN_LEFT).for_each(|_| log.close_idle());
    let _next = log.take(b"next").unwrap();
    assert_eq!((bench.files().len(), bench.left().len()), (2, 0));
    drop(other);
    log.close_idle();
    assert_eq!(bench.left(), [b"left".to_vec(), b"other".to_vec()]);
    let leave_one = || {
        log.take(b"more").unwrap().leave();
        (0..LOOKS_WHEN_LEFT).for_each(|_| log.close_idle());
    };
    (0..MOST_LEFT + 10).for_each(|_| leave_one());
    assert!(bench.files().len() <= MOST_LEFT + 1, "a drive is not filled");
    for orphan in orphaned_logs(&bench.device, &bench.tmp()).unwrap() {
        orphan.remove().unwrap();
    }
    leave_one();
    assert_eq!(
        bench.left().last().unwrap(),
        b"more",
        "those that were worked off do not count"
    );
}

#[test]
fn what_is_torn_or_overwritten_in_part_is_passed_over() {
    let bench = Bench::new();
    let log = bench.log();
    // A record that holds what looks like another where its second unit begins.
    let mut sly = vec![b'.'; UNIT - 1 - HEAD];
    sly.extend(frame(b"planted"));
    let taken = log.take(&sly).unwrap();
    drop(taken);
    let _short = log.take(b"short").unwrap();
    let torn = frame(&long(9));
    let path = &bench.files()[0];
    for (length, at) in [(UNIT, 7), (2000, 20), (5, 30)] {
        let file = bench.device.files().open(path, Purpose::Change).unwrap();
        file.write_all_at(&torn[..length], (at * UNIT) as u64).unwrap();
    }
    drop((log, _short));
    assert_eq!(bench.left(), [b"short"]);
}

#[test]
fn without_a_place_to_write_there_are_no_intents() {
    let bench = Bench::new();
    std::fs::write(bench.tmp(), b"no directory").unwrap();
    let log = bench.log();
    assert!(log.take(b"x").is_none() && !log.is_open());
    assert!(orphaned_logs(&bench.device, &bench.tmp()).is_err());
    std::fs::remove_file(bench.tmp()).unwrap();
    assert!(log.take(b"x").is_some());
    // More than there is room for.
    assert!(log.take(&vec![0; MOST_UNITS * UNIT]).is_none());
    assert!(log.take(b"y").is_some());
}

proptest::proptest! {
    #[test]
    fn any_file_is_read(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..5000)) {
        let _ = unframe(&bytes);
    }

    #[test]
    fn what_is_framed_is_found(
        records in proptest::collection::vec(proptest::collection::vec(proptest::prelude::any::<u8>(), 0..3000), 0..5),
    ) {
        let mut file = vec![];
        for record in &records {
            file.extend(frame(record));
            file.resize(file.len().next_multiple_of(UNIT), 0);
        }
        proptest::prop_assert_eq!(unframe(&file), records);
    }
}
