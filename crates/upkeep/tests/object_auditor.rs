//! Objects of real files audited, with the damage that drives and crashes leave.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod common;

use common::{Fake, pass, ring_client};
use object_engine::rules::set_lock;
use object_engine::{Commit, FilesConfig, FilesEngine, ObjectEngine, ObjectKey, ObjectMetadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use upkeep::{
    DarkData, DarkDataAction, Disks, ObjectAuditor, ObjectAuditorOptions, ReconWriter, Scan, UpkeepJob, UpkeepStep,
};
use vocabulary::object_lock::ObjectLock;
use vocabulary::{HashPrefix, Policies, Policy, PolicyIndex, Timestamp};
use world::World;

const MTIME: u64 = 1_700_000_000;

struct Site {
    dir: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("srv/sda")).unwrap();
        Self { dir }
    }

    fn device(&self) -> PathBuf {
        self.dir.path().join("srv/sda")
    }

    fn secrets() -> HashPrefix {
        HashPrefix::new("a", "b").unwrap()
    }

    /// Stores an object; where its file is.
    fn put(&self, name: &str, body: &[u8]) -> PathBuf {
        self.put_held(name, body, ObjectLock::default())
    }

    fn put_held(&self, name: &str, body: &[u8], lock: ObjectLock) -> PathBuf {
        let config = FilesConfig {
            mount_check: false,
            ..FilesConfig::new("sda", self.device())
        };
        let engine = FilesEngine::start(config, World::real());
        let hash = Self::secrets().object("a", "c", name);
        let key = ObjectKey {
            policy: PolicyIndex(0),
            partition: hash.partition(4),
            hash,
            name: format!("/a/c/{name}"),
        };
        let timestamp = Timestamp::from_seconds(MTIME);
        let etag = match body {
            b"hello" => "5d41402abc4b2a76b9719d911017c592",
            _ => "d41d8cd98f00b204e9800998ecf8427e",
        };
        let mut metadata = ObjectMetadata::new()
            .with("X-Timestamp", timestamp.internal())
            .with("Content-Type", "text/plain")
            .with("Content-Length", body.len().to_string())
            .with("ETag", etag);
        set_lock(&mut metadata, lock);
        engine.put(&key, body, Commit { timestamp, metadata }).unwrap();
        let suffix = format!("objects/{}/{}/{}", key.partition, hash.suffix(), hash.hex());
        self.device()
            .join(suffix)
            .join(format!("{}.data", timestamp.internal()))
    }

    fn auditor(&self, options: ObjectAuditorOptions, dark_data: Option<DarkData>) -> ObjectAuditor {
        self.auditor_with(Self::secrets(), options, dark_data)
    }

    fn auditor_with(
        &self,
        secrets: HashPrefix,
        options: ObjectAuditorOptions,
        dark_data: Option<DarkData>,
    ) -> ObjectAuditor {
        let disks = Disks::new(World::real(), self.dir.path().join("srv"), false);
        let policies = Policies::new(vec![Policy::replication(0, "gold")], None).unwrap();
        let recon = ReconWriter::new(World::real(), self.dir.path());
        ObjectAuditor::new(disks, secrets, policies, options, dark_data, recon)
    }

    async fn audit(&self, scan: Scan) -> (u64, u64) {
        let options = ObjectAuditorOptions {
            scan,
            ..ObjectAuditorOptions::default()
        };
        pass(&mut self.auditor(options, None)).await
    }

    fn quarantined(&self) -> Vec<String> {
        let listed = std::fs::read_dir(self.device().join("quarantined/objects"));
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = listed.into_iter().flatten().map(name).collect();
        names.sort();
        names
    }

    fn figures(&self) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.dir.path().join("object.recon")).unwrap()).unwrap()
    }
}

fn hash_of(file: &Path) -> String {
    file.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

#[tokio::test]
async fn rotten_bytes_go_to_quarantine_and_replication_is_notified() {
    let site = Site::new();
    let (good, rotten) = (site.put("good", b"hello"), site.put("rotten", b"hello"));
    std::fs::write(&rotten, b"jello").unwrap();
    let invalid = rotten.ancestors().nth(3).unwrap().join("hashes.invalid");
    std::fs::write(&invalid, "").unwrap();
    assert_eq!(site.audit(Scan::ZeroByte).await, (2, 0));
    assert!(rotten.exists());
    assert_eq!(site.audit(Scan::All).await, (2, 0));
    assert!(good.exists() && !rotten.exists());
    assert_eq!(site.quarantined(), [hash_of(&rotten)]);
    assert_eq!(
        std::fs::read_to_string(&invalid).unwrap(),
        format!("{}\n", &hash_of(&rotten)[29..])
    );
    let figures = &site.figures()["object_auditor_stats_ALL"];
    assert!(figures["audit_time"].as_f64().unwrap() > 0.0);
    assert_eq!(site.audit(Scan::All).await, (1, 0));
    assert_eq!(site.quarantined().len(), 1);
}

#[tokio::test]
async fn the_fast_scan_finds_what_a_crash_left_empty() {
    let site = Site::new();
    let (empty, cut) = (site.put("empty", b""), site.put("cut", b"hello"));
    std::fs::File::options()
        .write(true)
        .open(&cut)
        .unwrap()
        .set_len(0)
        .unwrap();
    assert_eq!(site.audit(Scan::ZeroByte).await, (2, 0));
    assert!(empty.exists());
    assert_eq!(site.quarantined(), [hash_of(&cut)]);
}

#[tokio::test]
async fn a_device_named_by_other_secrets_is_left_alone() {
    for scan in [Scan::All, Scan::ZeroByte] {
        let site = Site::new();
        let other = || HashPrefix::new("x", "y").unwrap();
        let options = || ObjectAuditorOptions {
            scan,
            ..ObjectAuditorOptions::default()
        };
        let mut files = vec![site.put("one", b"hello"), site.put("two", b"hello")];
        files.push(site.put("three", b"hello"));
        pass(&mut site.auditor_with(other(), options(), None)).await;
        assert!(site.quarantined().is_empty() && files.iter().all(|file| file.exists()));
        assert_eq!(site.audit(scan).await, (3, 0), "they were whole all the time");
        // What one stray directory looks like: nothing speaks for other secrets.
        std::fs::remove_dir_all(files[0].parent().unwrap()).unwrap();
        pass(&mut site.auditor_with(other(), options(), None)).await;
        assert_eq!(site.quarantined().len(), 2, "{scan:?}");
    }
}

#[tokio::test]
async fn strays_are_quarantined_where_one_object_is_in_its_place() {
    let site = Site::new();
    for name in ["one", "two", "three", "four"] {
        let file = site.put(name, b"hello");
        let directory = file.parent().unwrap();
        let suffix = directory.parent().unwrap();
        let other = format!("{:0>29}{}", "", suffix.file_name().unwrap().to_str().unwrap());
        std::fs::rename(directory, suffix.join(other)).unwrap();
    }
    let sound = site.put("sound", b"hello");
    site.audit(Scan::All).await;
    assert!(sound.exists());
    assert_eq!(site.quarantined().len(), 4);
}

#[tokio::test]
async fn foreign_things_are_left_alone() {
    let site = Site::new();
    let good = site.put("good", b"hello");
    let objects = site.device().join("objects");
    let files = ["7", "rubbish", "1/file", "1/abc/file", "1/.lock", "1/hashes.pkl"].map(|name| objects.join(name));
    std::fs::create_dir_all(objects.join("1/abc")).unwrap();
    for file in &files {
        std::fs::write(file, "x").unwrap();
    }
    std::fs::write(good.with_file_name("junk"), "x").unwrap();
    std::os::unix::fs::symlink("/nowhere", objects.join("99")).unwrap();
    let (done, failed) = site.audit(Scan::All).await;
    assert_eq!((done, failed), (1, 0));
    assert!(files.iter().all(|file| file.exists()) && good.exists());
    assert!(site.quarantined().is_empty());
}

#[tokio::test]
async fn what_lies_where_a_directory_or_a_file_belongs_goes_to_quarantine() {
    let site = Site::new();
    let (a, b, c) = (
        site.put("a", b"hello"),
        site.put("b", b"hello"),
        site.put("c", b"hello"),
    );
    std::fs::remove_dir_all(a.parent().unwrap()).unwrap();
    std::fs::write(a.parent().unwrap(), "x").unwrap();
    std::fs::remove_file(&b).unwrap();
    std::fs::create_dir(&b).unwrap();
    std::fs::remove_file(&c).unwrap();
    std::os::unix::fs::symlink("/nowhere", &c).unwrap();
    assert_eq!(site.audit(Scan::All).await, (3, 0));
    let mut expected = [hash_of(&a), hash_of(&b), hash_of(&c)];
    expected.sort();
    assert_eq!(site.quarantined(), expected);
}

#[tokio::test]
async fn an_interrupted_pass_goes_on_with_what_was_left() {
    let site = Site::new();
    let files: Vec<PathBuf> = (0..40).map(|n| site.put(&n.to_string(), b"hello")).collect();
    let mut auditor = site.auditor(ObjectAuditorOptions::default(), None);
    let status = site.device().join("objects/auditor_status_ALL.json");
    while !status.exists() {
        auditor.step().await;
    }
    drop(auditor);
    let number = |file: &PathBuf| file.ancestors().nth(3).unwrap().file_name().unwrap().to_owned();
    let left = number(&files[0]).into_string().unwrap();
    std::fs::write(&status, format!("{{\"partitions\": [\"{left}\"]}}")).unwrap();
    let there = files.iter().filter(|file| *number(file) == *left).count() as u64;
    assert_eq!(site.audit(Scan::All).await, (there, 0));
    assert!(!status.exists());
    assert_eq!(site.audit(Scan::All).await, (40, 0));
}

#[tokio::test]
async fn side_by_side_each_device_is_one_auditors() {
    let site = Site::new();
    site.put("one", b"hello");
    std::fs::create_dir(site.dir.path().join("srv/sdb")).unwrap();
    let mut sums = vec![];
    for lane in 0..2 {
        let options = ObjectAuditorOptions {
            lane: (lane, 2),
            ..ObjectAuditorOptions::default()
        };
        sums.push(pass(&mut site.auditor(options, None)).await.0);
    }
    assert_eq!(sums, [1, 0]);
    assert!(site.figures()["object_auditor_stats_ALL"]["sda"].is_object());
}

#[tokio::test]
async fn a_long_body_is_read_in_pieces_that_are_paid_for() {
    let site = Site::new();
    let file = site.put("long", b"hello");
    std::fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_len(5)
        .unwrap();
    let options = ObjectAuditorOptions {
        bytes_per_second: 10.0,
        ..ObjectAuditorOptions::default()
    };
    let mut auditor = site.auditor(options, None);
    let mut due = Duration::ZERO;
    while auditor.step().await != UpkeepStep::PassOver {
        due += auditor.due();
    }
    assert_eq!(due, Duration::from_millis(500));
}

/// Three container servers, each of which answers as configured.
async fn dark(action: DarkDataAction, grace_age: Duration, rows: [Option<&str>; 3]) -> (Site, PathBuf) {
    dark_and_held(action, grace_age, rows, (ObjectLock::default(), &OLD_CONTAINER)).await
}

const OLD_CONTAINER: [(&str, &str); 2] = [
    ("x-backend-timestamp", "1600000000.00000"),
    ("x-backend-storage-policy-index", "0"),
];

async fn dark_and_held(
    action: DarkDataAction,
    grace_age: Duration,
    rows: [Option<&str>; 3],
    (lock, container): (ObjectLock, &[(&'static str, &'static str)]),
) -> (Site, PathBuf) {
    let site = Site::new();
    let file = site.put_held("o", b"hello", lock);
    let fake = Arc::new(Fake::default());
    *fake.listing_headers.lock() = container.to_vec();
    for (device, row) in rows.into_iter().enumerate() {
        let answer = match row {
            Some(name) => (200, format!("[{{\"name\": {name:?}}}]")),
            None => (503, String::new()),
        };
        fake.listing.lock().insert(format!("sd{device}"), answer);
    }
    let watcher = DarkData::new(World::real(), ring_client(&fake), action, grace_age);
    assert_eq!(
        pass(&mut site.auditor(ObjectAuditorOptions::default(), Some(watcher))).await,
        (1, 0)
    );
    (site, file)
}

#[tokio::test]
async fn dark_data_is_what_every_container_server_denies() {
    use DarkDataAction::{Delete, Log, Quarantine};
    let nobody = [Some("other"); 3];
    for (action, grace, rows, stays, in_quarantine) in [
        (Quarantine, 0, nobody, false, 1),
        (Delete, 0, nobody, false, 0),
        (Log, 0, nobody, true, 0),
        (Delete, 1 << 40, nobody, true, 0),
        (Delete, 0, [Some("other"), Some("o"), Some("other")], true, 0),
        (Delete, 0, [Some("other"), None, Some("other")], true, 0),
    ] {
        let (site, file) = dark(action, Duration::from_secs(grace), rows).await;
        assert_eq!(
            (file.exists(), site.quarantined().len()),
            (stays, in_quarantine),
            "{action:?} {rows:?}"
        );
        assert_eq!(file.parent().unwrap().exists(), stays);
    }
}

#[tokio::test]
async fn what_an_object_lock_holds_stays_though_it_is_dark() {
    let (at, rows) = (Timestamp::from_seconds(MTIME), [Some("other"); 3]);
    for (is_held, action) in [
        (true, DarkDataAction::Delete),
        (true, DarkDataAction::Quarantine),
        (false, DarkDataAction::Delete),
    ] {
        let lock = ObjectLock::of_hold(is_held, at);
        let (_site, file) = dark_and_held(action, Duration::ZERO, rows, (lock, &OLD_CONTAINER)).await;
        assert_eq!(file.exists(), is_held, "{action:?}");
    }
}

/// One made anew while its rows are elsewhere, one whose reconciler has the object still to move, and one that is being
/// cut into shards.
#[tokio::test]
async fn what_a_container_cannot_know_is_not_dark() {
    let [made, policy] = OLD_CONTAINER;
    for (container, stays) in [
        (&[made, policy][..], false),
        (&[("x-backend-timestamp", "1700000001.00000"), policy], true),
        (&[made, ("x-backend-storage-policy-index", "1")], true),
        (&[policy], true),
        (&[made], true),
        (&[made, policy, ("x-backend-sharding-state", "sharded")], false),
        (&[made, policy, ("x-backend-sharding-state", "sharding")], true),
    ] {
        let of = (ObjectLock::default(), container);
        let (_site, file) = dark_and_held(DarkDataAction::Delete, Duration::ZERO, [Some("other"); 3], of).await;
        assert_eq!(file.exists(), stays, "{container:?}");
    }
}
