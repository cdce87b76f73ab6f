//! Rows that were under way when all servers of an object lost power: the object is there, its intent is not.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod common;

use common::{Fake, pass, ring_client};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use object_engine::{EngineError, FilesConfig, FilesEngine, ListingUpdate, ObjectEngine, PendingUpdates};
use object_server::{DeviceSource, ObjectServer, ObjectServerOptions};
use peer::{Body, RawCall, Service, Target};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use upkeep::{
    Boot, DarkData, DarkDataAction, Disks, ObjectAuditor, ObjectAuditorOptions, ObjectUpdater, ReconWriter, Scan,
};
use vocabulary::{EntityPath, HashPrefix, Policies};
use world::World;

/// What tells requests apart and not rows.
const OF_THE_REQUEST: [&str; 3] = ["X-Trans-Id", "Referer", "User-Agent"];

struct Files(PathBuf);

impl DeviceSource for Files {
    fn open(&self, name: &str) -> Result<Arc<dyn ObjectEngine>, EngineError> {
        let config = FilesConfig {
            mount_check: false,
            ..FilesConfig::new(name, self.0.join(name))
        };
        Ok(Arc::new(FilesEngine::start(config, World::real())))
    }
}

struct Site {
    dir: tempfile::TempDir,
    server: Arc<ObjectServer>,
    now: u64,
}

impl Site {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sda")).unwrap();
        let options = ObjectServerOptions::new(Self::secrets(), Arc::new(Policies::default()));
        let source = Arc::new(Files(dir.path().to_owned()));
        let server = ObjectServer::new(World::real(), options, source).unwrap();
        let now = World::real().clock.now().seconds();
        Self { dir, server, now }
    }

    fn secrets() -> HashPrefix {
        HashPrefix::new("a", "b").unwrap()
    }

    fn device(&self) -> PathBuf {
        self.dir.path().join("sda")
    }

    /// A request that names a container server which this server cannot reach.
    async fn send(&self, method: &str, object: &str, ago: u64, headers: &[(&str, &str)]) {
        let path = EntityPath::account("a").with_container("c").with_object(object);
        let target = Target {
            device: "sda".into(),
            partition: Self::secrets().object("a", "c", object).partition(4),
            path: Arc::new(path),
        };
        let timestamp = format!("{}.00000", self.now - ago);
        let rows = [
            ("x-timestamp", &*timestamp),
            ("x-container-partition", "5"),
            ("x-container-host", "127.0.0.9:6201"),
            ("x-container-device", "sdc"),
        ];
        let field = |(name, value): &(&str, &str)| {
            let name: HeaderName = name.parse().unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        };
        let headers: HeaderMap = rows.iter().chain(headers).map(field).collect();
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let body = if method == Method::PUT {
            Body::whole("body")
        } else {
            Body::empty()
        };
        let call = RawCall::new(method, target, headers).with_body(body);
        let status = self.server.call(call.into()).await.status();
        assert!(status.is_success(), "{object}: {status}");
    }

    /// The newest record of each object, without what only names the request.
    fn pending(&self) -> Vec<ListingUpdate> {
        let world = World::real();
        let pending = PendingUpdates::new(&world, self.device(), false);
        let mut found = vec![];
        for suffix in pending.suffixes().unwrap() {
            for record in pending.records(&suffix, world.clock.now()).unwrap().0 {
                let mut update = pending.load(&record).unwrap().unwrap().update;
                update.headers.retain(|(name, _)| !OF_THE_REQUEST.contains(&&**name));
                update.headers.sort();
                found.push(update);
            }
        }
        found.sort_by(|a, b| (&a.account, &a.object).cmp(&(&b.account, &b.object)));
        found
    }

    /// What a loss of power may do to everything that was not synced, and to rows on their way.
    fn lose_rows(&self) {
        for lost in ["async_pending", "tmp"] {
            let removed = std::fs::remove_dir_all(self.device().join(lost));
            assert!(removed.is_ok() || !self.device().join(lost).exists());
        }
    }

    fn auditor(&self, scan: Scan, boot: Option<Boot>, dark_data: Option<DarkData>) -> ObjectAuditor {
        let disks = Disks::new(World::real(), self.dir.path(), false);
        let recon = ReconWriter::new(World::real(), self.dir.path());
        let options = ObjectAuditorOptions {
            scan,
            boot,
            ..ObjectAuditorOptions::default()
        };
        let policies = Policies::default();
        ObjectAuditor::new(disks, Self::secrets(), policies, options, dark_data, recon)
    }

    async fn audit(&self, boot: Option<Boot>) -> (u64, u64) {
        pass(&mut self.auditor(Scan::All, boot, None)).await
    }

    /// A boot so many seconds from now.
    fn boot(&self, id: &str, from_now: i64) -> Option<Boot> {
        let at = World::real().clock.now().seconds() as i64 + from_now;
        let id = id.to_owned();
        Some(Boot { id, at })
    }
}

/// Every kind of change whose row a server sends.
async fn change_all(site: &Site) {
    let expires = (site.now + 86_400).to_string();
    let typed = ("content-type", "text/plain");
    site.send("PUT", "plain", 100, &[typed]).await;
    let listed = ("x-object-sysmeta-container-update-override-etag", "listed");
    site.send("PUT", "overridden", 100, &[typed, listed]).await;
    let queue = [
        typed,
        ("x-delete-at", &*expires),
        ("x-delete-at-partition", "7"),
        ("x-delete-at-host", "127.0.0.9:6201"),
        ("x-delete-at-device", "sdd"),
    ];
    site.send("PUT", "expiring", 100, &queue).await;
    site.send("PUT", "described", 100, &[typed]).await;
    site.send(
        "POST",
        "described",
        90,
        &[("x-object-meta-a", "b"), ("content-type", "x/y")],
    )
    .await;
    site.send("PUT", "remarked", 100, &[typed]).await;
    site.send("POST", "remarked", 90, &[("x-object-meta-a", "b")]).await;
    site.send("PUT", "deleted", 100, &[typed]).await;
    site.send("DELETE", "deleted", 90, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_boot_lost_rows_are_kept_again_as_the_server_kept_them() {
    for scan in [Scan::All, Scan::ZeroByte] {
        let site = Site::new();
        change_all(&site).await;
        let before = site.pending();
        assert_eq!(before.len(), 7, "{before:?}");
        site.lose_rows();
        let (_, failed) = pass(&mut site.auditor(scan, site.boot("one", 1), None)).await;
        assert_eq!((site.pending(), failed), (before, 0));

        let fake = Arc::new(Fake::default());
        let disks = Disks::new(World::real(), site.dir.path(), false);
        let mut updater = ObjectUpdater::new(disks, ring_client(&fake), Policies::default(), 8, 1);
        assert_eq!(pass(&mut updater).await, (7, 0));
        let lines = fake.lines();
        for line in ["PUT /sd0/5/a/c/plain", "DELETE /sd0/5/a/c/deleted"] {
            let (method, rest) = line.split_once(" /sd0/5").unwrap();
            let arrived = lines
                .iter()
                .any(|line| line.starts_with(method) && line.ends_with(rest));
            assert!(arrived, "{line}: {lines:?}");
        }
        assert!(site.pending().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_boot_is_looked_behind_once() {
    let site = Site::new();
    site.send("PUT", "o", 0, &[("content-type", "x/y")]).await;
    let kept = async |boot| {
        site.lose_rows();
        assert_eq!(site.audit(boot).await.1, 0);
        site.pending().len()
    };
    assert_eq!(kept(None).await, 0);
    // What came after the boot has its intents.
    assert_eq!(kept(site.boot("one", -3600)).await, 0);
    assert_eq!(kept(site.boot("one", 1)).await, 0);
    assert_eq!(kept(site.boot("two", 1)).await, 1);
    assert_eq!(kept(site.boot("two", 1)).await, 0);
    let record = std::fs::read_to_string(site.device().join("objects/auditor_status_boot.json")).unwrap();
    assert_eq!(record, r#"{"boot":"two"}"#);
    assert_eq!(kept(site.boot("three", 1)).await, 1);
}

/// As `chown -R` after the boot does, or the removal of a second name that a loss of power has left.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_whose_owner_changed_after_the_boot_is_from_before_it() {
    let site = Site::new();
    site.send("PUT", "o", 0, &[("content-type", "x/y")]).await;
    site.lose_rows();
    let found = files(&site.device().join("objects"));
    let data = found
        .iter()
        .find(|path| path.extension().is_some_and(|end| end == "data"));
    let data = std::fs::File::open(data.unwrap()).unwrap();
    data.set_modified(SystemTime::now() - Duration::from_secs(7200))
        .unwrap();
    assert_eq!(site.audit(site.boot("one", -3600)).await, (1, 0));
    assert_eq!(site.pending().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_that_could_not_keep_a_row_is_not_the_last() {
    let site = Site::new();
    site.send("PUT", "o", 0, &[("content-type", "x/y")]).await;
    site.lose_rows();
    let in_the_way = site.device().join("async_pending");
    std::fs::write(&in_the_way, "no directory").unwrap();
    assert_eq!(site.audit(site.boot("one", 1)).await, (0, 1));
    std::fs::remove_file(&in_the_way).unwrap();
    assert_eq!(site.audit(site.boot("one", 1)).await, (1, 0));
    assert_eq!(site.pending().len(), 1);
}

/// What was done in a pass before the boot is looked at after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_pass_that_a_boot_interrupted_begins_anew() {
    let site = Site::new();
    site.send("PUT", "o", 0, &[("content-type", "x/y")]).await;
    site.lose_rows();
    let position = site.device().join("objects/auditor_status_ALL.json");
    std::fs::write(&position, r#"{"partitions":[],"boot":"zero"}"#).unwrap();
    assert_eq!(site.audit(site.boot("one", 1)).await, (1, 0));
    assert_eq!(site.pending().len(), 1);
    std::fs::write(&position, r#"{"partitions":[],"boot":"one"}"#).unwrap();
    assert_eq!(site.audit(site.boot("one", 1)).await, (0, 0));
}

/// No container can list an object whose row is on its way.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_whose_row_is_on_its_way_is_not_dark() {
    let site = Site::new();
    site.send("PUT", "o", 100, &[("content-type", "x/y")]).await;
    let fake = Arc::new(Fake::default());
    *fake.listing_headers.lock() = vec![
        ("x-backend-timestamp", "0000000001.00000"),
        ("x-backend-storage-policy-index", "0"),
    ];
    for device in ["sd0", "sd1", "sd2"] {
        fake.listing.lock().insert(device.into(), (200, "[]".into()));
    }
    let watched = |boot| {
        let watcher = DarkData::new(
            World::real(),
            ring_client(&fake),
            DarkDataAction::Delete,
            Duration::ZERO,
        );
        site.auditor(Scan::All, boot, Some(watcher))
    };
    let there = || contains(&site.device().join("objects"), ".data");
    pass(&mut watched(site.boot("one", 1))).await;
    assert!(there());
    pass(&mut watched(site.boot("one", 1))).await;
    assert!(!there());
}

fn contains(place: &Path, ending: &str) -> bool {
    files(place).iter().any(|path| path.to_string_lossy().ends_with(ending))
}

/// All files below a place.
fn files(place: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .collect()
}
