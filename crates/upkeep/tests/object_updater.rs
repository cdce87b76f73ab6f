//! Records that OpenStack Swift's object server wrote, delivered to services in this process.
//!
//! What is expected here was seen with OpenStack Swift 2.38.3's updater on the same files, except where
//! a test says otherwise.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod common;

use common::{Fake, pass, ring_client};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use upkeep::{Disks, ObjectUpdater, UpkeepJob, UpkeepStep};
use vocabulary::Policies;
use world::World;

#[derive(serde::Deserialize)]
struct Golden {
    path: String,
    hash: String,
    bytes: String,
}

struct Site {
    _dir: tempfile::TempDir,
    device: PathBuf,
    fake: Arc<Fake>,
    updater: ObjectUpdater,
}

impl Site {
    fn new() -> Self {
        Self::with_at_once(100)
    }

    fn with_at_once(at_once: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let device = dir.path().join("sda");
        std::fs::create_dir(&device).unwrap();
        let fake = Arc::new(Fake::default());
        let disks = Disks::new(World::real(), dir.path(), false);
        let updater = ObjectUpdater::new(disks, ring_client(&fake), Policies::default(), 8, at_once);
        Self {
            _dir: dir,
            device,
            fake,
            updater,
        }
    }

    /// The first golden record (`PUT a/c/o`) or the second (`DELETE .shards_a/c-1/ü`); where it is now.
    fn place(&self, which: usize) -> PathBuf {
        let text = include_str!("../../object-engine/tests/golden/async.json");
        let case = serde_json::from_str::<Vec<Golden>>(text).unwrap().remove(which);
        assert!(case.path.contains(&case.hash));
        let path = self.device.parent().unwrap().join(case.path);
        let digits = |at| u8::from_str_radix(&case.bytes[at..at + 2], 16).unwrap();
        write(
            &path,
            &(0..case.bytes.len()).step_by(2).map(digits).collect::<Vec<u8>>(),
        );
        path
    }

    fn refuse(&self, device: &str, status: u16, location: Option<&str>) {
        let answer = (status, location.map(str::to_owned));
        self.fake.refusing.lock().insert(device.into(), answer);
    }
}

fn write(path: &Path, content: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[tokio::test]
async fn a_record_goes_to_all_primaries_and_away() {
    let mut site = Site::new();
    let (put, delete) = (site.place(0), site.place(1));
    assert_eq!(pass(&mut site.updater).await, (2, 0));
    {
        let received = site.fake.received.lock();
        let (_, headers) = received.iter().find(|(line, _)| line.ends_with("/a/c/o")).unwrap();
        let text = |name: &str| headers[name].to_str().unwrap();
        assert_eq!((text("x-size"), text("x-timestamp")), ("3", "1700000000.12345"));
        assert_eq!(text("x-backend-accept-redirect"), "true");
        assert!(text("user-agent").starts_with("object-updater "));
        let (_, headers) = received.iter().find(|(line, _)| line.starts_with("DELETE")).unwrap();
        assert_eq!(headers["x-backend-storage-policy-index"], "0");
    }
    // In OpenStack's ring of the same size: the same partitions.
    let mut expected = vec![];
    for device in 0..3 {
        expected.push(format!("DELETE /sd{device}/7/.shards_a/c-1/%C3%BC"));
        expected.push(format!("PUT /sd{device}/15/a/c/o"));
    }
    expected.sort();
    assert_eq!(site.fake.lines(), expected);
    assert!(!put.exists() && !delete.exists());
    assert_eq!(pass(&mut site.updater).await, (0, 0));
    assert!(site.fake.lines().is_empty());
}

#[tokio::test]
async fn what_only_some_took_is_kept_for_the_others() {
    let mut site = Site::new();
    let record = site.place(0);
    site.refuse("sd1", 503, None);
    assert_eq!(pass(&mut site.updater).await, (0, 1));
    assert_eq!(site.fake.lines().len(), 3);
    assert!(record.exists());
    for _ in 0..2 {
        assert_eq!(pass(&mut site.updater).await, (0, 1));
        assert_eq!(site.fake.lines(), ["PUT /sd1/15/a/c/o"]);
    }
    site.fake.refusing.lock().clear();
    assert_eq!(pass(&mut site.updater).await, (1, 0));
    assert_eq!(site.fake.lines(), ["PUT /sd1/15/a/c/o"]);
    assert!(!record.exists());
}

#[tokio::test]
async fn a_newer_record_replaces_an_older_one() {
    let mut site = Site::new();
    let newest = site.place(0);
    let name = newest
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .replace("1700000000", "1600000000");
    let older = newest.with_file_name(name);
    std::fs::copy(&newest, &older).unwrap();
    assert_eq!(pass(&mut site.updater).await, (1, 0));
    assert_eq!(site.fake.lines().len(), 3);
    assert!(!newest.exists() && !older.exists());
}

#[tokio::test]
async fn rubbish_costs_nothing_but_a_line() {
    let mut site = Site::new();
    let good = site.place(0);
    let pending = site.device.join("async_pending");
    let name = "06fbf0b514e5199dfc4e00f42eb5eabc-1700000000.12345";
    write(&pending.join("abc").join(name), b"cos\nsystem\n(S'true'\ntR.");
    write(&pending.join("abc/nodash"), b"x");
    write(&pending.join("abd"), b"a file where a directory belongs");
    std::fs::create_dir_all(pending.join("abc/06fbf0b514e5199dfc4e00f42eb5eabd-1700000000.12345")).unwrap();
    write(
        &site.device.join("async_pending-7/abc").join(name),
        b"of a policy that does not exist",
    );
    write(&site.device.parent().unwrap().join("file"), b"no device");
    pass(&mut site.updater).await;
    assert!(!good.exists());
    assert!(site.device.join("quarantined/objects").join(name).exists());
    assert!(pending.join("abc/nodash").exists() && pending.join("abd").exists());
    assert!(site.device.join("async_pending-7/abc").join(name).exists());
}

/// Not compared with OpenStack's updater, which follows at once; here it is the next pass.
#[tokio::test]
async fn a_record_follows_its_row_into_a_shard() {
    let mut site = Site::new();
    let record = site.place(0);
    site.refuse("sd2", 301, Some("/.shards_a/y"));
    assert_eq!(pass(&mut site.updater).await, (0, 1));
    assert!(record.exists());
    site.fake.lines();
    site.fake.refusing.lock().clear();
    assert_eq!(pass(&mut site.updater).await, (1, 0));
    let lines = site.fake.lines();
    assert!(
        lines.len() == 3 && lines.iter().all(|line| line.ends_with("/.shards_a/y/o")),
        "{lines:?}"
    );
}

/// Records of rows for one container: `count` of them.
fn several(site: &Site, count: usize) -> Vec<PathBuf> {
    let one = std::fs::read_to_string(site.place(0)).unwrap();
    std::fs::remove_file(site.place(0)).unwrap();
    let write_one = |number: usize| {
        // Of one length with the name of the golden record, so that its pickle stays whole.
        let text = one.replace("Vo\n", &format!("V{}\n", char::from(b'a' + number as u8)));
        assert_ne!(text, one);
        let path = site
            .device
            .join(format!("async_pending/{number:03x}/{number:032x}-1700000000.12345"));
        write(&path, text.as_bytes());
        path
    };
    (0..count).map(write_one).collect()
}

#[tokio::test]
async fn rows_for_one_container_travel_together() {
    let mut site = Site::new();
    let records = several(&site, 5);
    assert_eq!(pass(&mut site.updater).await, (5, 0));
    {
        let received = site.fake.received.lock();
        let (_, headers) = received.first().unwrap();
        assert_eq!(headers["x-timestamp"], "1700000000.12345");
        assert_eq!(headers["x-backend-storage-policy-index"], "0");
    }
    let lines = site.fake.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with("UPDATE") && line.ends_with("/a/c"))
    );
    assert!(records.iter().all(|record| !record.exists()));
}

/// As after a time in which no container server could be reached: each device with a replica of an object keeps its
/// row.
#[tokio::test]
async fn rows_of_all_devices_travel_together_each_once() {
    let mut site = Site::new();
    let mut records = several(&site, 5);
    let devices = site.device.parent().unwrap().to_owned();
    for other in ["sdb", "sdc"] {
        for record in records
            .clone()
            .into_iter()
            .filter(|record| record.starts_with(&site.device))
        {
            let copy = devices.join(other).join(record.strip_prefix(&site.device).unwrap());
            std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
            std::fs::copy(&record, &copy).unwrap();
            records.push(copy);
        }
    }
    std::fs::create_dir_all(devices.join("sdd/async_pending/abc")).unwrap();
    assert_eq!(pass(&mut site.updater).await, (15, 0));
    assert_eq!(site.fake.lines().len(), 3);
    let bodies = site.fake.bodies.lock();
    for body in &*bodies {
        let rows: Vec<serde_json::Value> = serde_json::from_str(body).unwrap();
        let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e"]);
    }
    assert!(records.iter().all(|record| !record.exists()));
}

#[tokio::test]
async fn a_step_takes_no_more_records_than_it_may() {
    let mut site = Site::with_at_once(4);
    several(&site, 5);
    for other in ["sdb", "sdc"] {
        let copy = site.device.with_file_name(other);
        let status = std::process::Command::new("cp")
            .arg("-r")
            .arg(&site.device)
            .arg(&copy)
            .status();
        assert!(status.unwrap().success());
    }
    let mut steps = vec![];
    loop {
        match site.updater.step().await {
            UpkeepStep::Did { done, failed: 0 } => steps.push(done),
            UpkeepStep::Did { failed, .. } => panic!("{failed} failed"),
            UpkeepStep::PassOver => break,
        }
    }
    assert!(steps.iter().all(|done| *done <= 4), "{steps:?}");
    assert_eq!(steps.iter().sum::<u64>(), 15);
}

#[tokio::test]
async fn a_server_without_update_gets_the_rows_one_by_one() {
    let mut site = Site::new();
    let records = several(&site, 4);
    site.refuse("sd1", 405, None);
    assert_eq!(pass(&mut site.updater).await, (0, 4));
    // Three were sent the batch, the one that refused of each row.
    let lines = site.fake.lines();
    assert_eq!(lines.iter().filter(|line| line.starts_with("UPDATE")).count(), 3);
    assert_eq!(
        lines.iter().filter(|line| line.starts_with("PUT /sd1/")).count(),
        4,
        "{lines:?}"
    );
    assert!(records.iter().all(|record| record.exists()));
    site.fake.refusing.lock().clear();
    assert_eq!(pass(&mut site.updater).await, (4, 0));
    // Those who took the batch are not asked again.
    let lines = site.fake.lines();
    assert!(
        lines.len() == 4 && lines.iter().all(|line| line.starts_with("PUT /sd1/")),
        "{lines:?}"
    );
    assert!(records.iter().all(|record| !record.exists()));
}

#[tokio::test]
async fn a_batch_that_only_some_took_is_kept_for_the_others() {
    let mut site = Site::new();
    let records = several(&site, 3);
    site.refuse("sd2", 507, None);
    assert_eq!(pass(&mut site.updater).await, (0, 3));
    assert!(records.iter().all(|record| record.exists()));
    site.fake.lines();
    site.fake.refusing.lock().clear();
    assert_eq!(pass(&mut site.updater).await, (3, 0));
    let lines = site.fake.lines();
    assert!(
        lines.len() == 3 && lines.iter().all(|line| line.starts_with("PUT /sd2/")),
        "{lines:?}"
    );
}
