//! Devices: whether they serve, how full they are, what was put aside on them.
//!
//! Always holds: a drive that hangs is asked once, on a thread of its own, and no request waits for it for longer than
//! [`GLANCE`]; its last figures are reported until newer ones arrive.

use super::drive_work::DriveWork;
use durable_fs::{DriveService, Drives, Health};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use telemetry::metrics::catalogue::{
    DEVICE_BYTES, DEVICE_FILES, DEVICE_FREE_BYTES, DEVICE_FREE_FILES, DEVICE_IN_SERVICE, DEVICE_PENDING, QUARANTINED,
};
use telemetry::metrics::{MetricsPage, MetricsSource, Role};
use world::files::{FileSystem, Space};
use world::{Workers, World};

/// How long a page waits for drives to say how full they are.
const GLANCE: Duration = Duration::from_millis(300);
/// Where what is damaged is put aside, on each device.
const QUARANTINE: &str = "quarantined";
/// Where a device keeps partitions, by the kinds of what is in them: the server of the first that is there reports the
/// device's room, so that each device of a node is reported once.
const TREES: [&str; 3] = ["objects", "containers", "accounts"];
/// More than there are policies.
const MOST_KINDS: usize = 128;
/// Where listing updates wait, on each device: this, and this with a policy.
const PENDING: &str = "async_pending";
/// How long a count of what waits is good for.
const COUNT_EVERY: Duration = Duration::from_secs(60);
/// More of what waits is not counted.
const MOST_PENDING: u64 = 1_000_000;

/// The drives that this process works on.
pub struct Devices {
    drives: Arc<Drives>,
    known: Arc<Mutex<BTreeMap<PathBuf, Survey>>>,
    threads: Mutex<HashMap<PathBuf, Arc<Workers>>>,
    /// How the kinds begin that this process tells of; everything when empty.
    kinds: &'static str,
}

impl Devices {
    /// The same, reporting only what is of this server's kind: of what was put aside, and of the room of devices. Its
    /// neighbours report the rest.
    #[must_use]
    pub fn of_role(self, role: Role) -> Self {
        let kinds = match role {
            Role::Account => "accounts",
            Role::Container => "containers",
            Role::Object => "objects",
            Role::Proxy => "",
        };
        Self { kinds, ..self }
    }

    /// Nothing is known of their room yet.
    pub fn new(drives: &Arc<Drives>) -> Self {
        Self {
            drives: drives.clone(),
            known: Arc::default(),
            threads: Mutex::default(),
            kinds: "",
        }
    }

    /// Asks those that serve for their room and for what was put aside, for a moment.
    pub(super) async fn survey(&self, world: &World) {
        let drives = self.drives.all();
        self.forget(&drives);
        let serving = drives.into_iter().filter(|health| health.check().is_ok());
        let asked = serving.filter_map(|health| {
            let root = health.root().to_owned();
            let (thread, files, known) = (self.thread(world, &root)?, world.files.clone(), self.known.clone());
            let (now, counts) = (world.clock.elapsed(), tells(self.kinds, "objects"));
            Some(async move {
                let job = move || {
                    let last = known.lock().get(&root).and_then(|survey| survey.pending);
                    let Ok(mut survey) = Survey::of(&*files, &root) else {
                        return;
                    };
                    survey.pending = last.filter(|count| now.saturating_sub(count.at) < COUNT_EVERY);
                    if counts && survey.pending.is_none() {
                        survey.pending = pending(&*files, &root)
                            .ok()
                            .map(|waiting| Pendings { at: now, waiting });
                    }
                    known.lock().insert(root, survey);
                };
                // One that is busy hangs since it was asked before.
                let _ = thread.run(job).await;
            })
        });
        drop(world.timeout(GLANCE, futures_util::future::join_all(asked)).await);
    }

    /// Forgets drives that nothing works on any longer.
    fn forget(&self, drives: &[Arc<Health>]) {
        let roots: HashSet<&Path> = drives.iter().map(|health| health.root()).collect();
        self.known.lock().retain(|root, _| roots.contains(&**root));
        self.threads.lock().retain(|root, _| roots.contains(&**root));
    }

    fn thread(&self, world: &World, root: &Path) -> Option<Arc<Workers>> {
        let mut threads = self.threads.lock();
        if let Some(thread) = threads.get(root) {
            return Some(thread.clone());
        }
        let thread = Arc::new(world.workers(&format!("room-{}", name(root)), 1, 1).ok()?);
        threads.insert(root.to_owned(), thread.clone());
        Some(thread)
    }

    /// For the page.
    pub(super) fn source(&self) -> Arc<dyn MetricsSource> {
        Arc::new(OfDevices {
            drives: self.drives.clone(),
            known: self.known.clone(),
            kinds: self.kinds,
        })
    }
}

/// What a drive said when it was asked.
struct Survey {
    space: Space,
    work: Option<DriveWork>,
    /// Of [`TREES`], the one whose server reports the space; `None` on a device without partitions, which all report.
    reporter: Option<&'static str>,
    quarantined: Vec<(String, u64)>,
    pending: Option<Pendings>,
}

/// How many listing updates waited at some time.
#[derive(Clone, Copy)]
struct Pendings {
    at: Duration,
    waiting: u64,
}

impl Survey {
    fn of(files: &dyn FileSystem, root: &Path) -> io::Result<Self> {
        let space = files.space(root)?;
        let aside = root.join(QUARANTINE);
        let mut kinds = vec![];
        if let Ok(directory) = files.open_directory(&aside) {
            directory.list(&mut |name| kinds.extend(kind(name).filter(|_| kinds.len() < MOST_KINDS)))?;
        }
        let quarantined = kinds.into_iter().map(|kind| {
            let mut count = 0;
            files.open_directory(&aside.join(&kind))?.list(&mut |_| count += 1)?;
            Ok((kind, count))
        });
        let quarantined = quarantined.collect::<io::Result<_>>()?;
        Ok(Self {
            space,
            work: DriveWork::of(files, root),
            reporter: reporter(files, root)?,
            quarantined,
            pending: None,
        })
    }

    fn report_room(&self, device: &str, page: &mut MetricsPage) {
        page.whole(&DEVICE_BYTES, &[device], self.space.total);
        page.whole(&DEVICE_FREE_BYTES, &[device], self.space.available);
        if self.space.files > 0 {
            page.whole(&DEVICE_FILES, &[device], self.space.files);
            page.whole(&DEVICE_FREE_FILES, &[device], self.space.free_files);
        }
        if let Some(work) = self.work {
            work.report(device, page);
        }
    }

    fn report(&self, device: &str, kinds: &str, page: &mut MetricsPage) {
        if self.reporter.is_none_or(|reporter| tells(kinds, reporter)) {
            self.report_room(device, page);
        }
        let reported = self.quarantined.iter().filter(|(kind, _)| tells(kinds, kind));
        for (kind, count) in reported {
            page.whole(&QUARANTINED, &[device, kind], *count);
        }
        if let Some(pending) = self.pending {
            page.whole(&DEVICE_PENDING, &[device], pending.waiting);
        }
    }
}

/// The first of [`TREES`] that has a partition on the device.
fn reporter(files: &dyn FileSystem, root: &Path) -> io::Result<Option<&'static str>> {
    let mut names = vec![];
    files
        .open_directory(root)?
        .list(&mut |name| names.extend(name.to_str().map(str::to_owned)))?;
    let is_of = |name: &str, tree: &str| {
        let rest = name.strip_prefix(tree);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let has_partitions = |tree: &str| {
        let mut trees = names.iter().filter(|name| is_of(name, tree));
        trees.any(|name| has_partition(files, &root.join(name)))
    };
    Ok(TREES.into_iter().find(|tree| has_partitions(tree)))
}

/// What cannot be listed holds none: the device's other figures say what is wrong with it.
fn has_partition(files: &dyn FileSystem, tree: &Path) -> bool {
    let mut found = false;
    let is_number = |name: &OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let listed = files
        .open_directory(tree)
        .and_then(|directory| directory.list(&mut |name| found |= is_number(name)));
    listed.is_ok() && found
}

/// Whether a server tells of what is of `kind` whose kinds begin with `kinds`.
fn tells(kinds: &str, kind: &str) -> bool {
    kind.starts_with(kinds)
}

/// How many listing updates wait on a device, of all policies.
fn pending(files: &dyn FileSystem, root: &Path) -> io::Result<u64> {
    let (mut trees, mut waiting) = (vec![], 0);
    files.open_directory(root)?.list(&mut |name| {
        let rest = name.to_str().and_then(|name| name.strip_prefix(PENDING));
        trees.extend(
            rest.filter(|rest| rest.is_empty() || rest.starts_with('-'))
                .map(|_| root.join(name)),
        );
    })?;
    for tree in trees {
        let mut suffixes = vec![];
        // Something else may have that name, and a suffix may go meanwhile.
        let Ok(directory) = files.open_directory(&tree) else {
            continue;
        };
        directory.list(&mut |name| suffixes.push(tree.join(name)))?;
        for suffix in suffixes {
            if let Ok(directory) = files.open_directory(&suffix) {
                directory.list(&mut |_| waiting += 1)?;
            }
            if waiting >= MOST_PENDING {
                return Ok(MOST_PENDING);
            }
        }
    }
    Ok(waiting)
}

/// A directory's name below `quarantined`, if it is one of Swift's.
fn kind(name: &OsStr) -> Option<String> {
    let name = name.to_str()?;
    let policy = name.strip_prefix("objects").map(|rest| rest.strip_prefix('-'));
    let is_known = match policy {
        Some(Some(index)) => index.parse::<u32>().is_ok_and(|number| number.to_string() == index),
        Some(None) => name == "objects",
        None => name == "accounts" || name == "containers",
    };
    is_known.then(|| name.to_owned())
}

struct OfDevices {
    drives: Arc<Drives>,
    known: Arc<Mutex<BTreeMap<PathBuf, Survey>>>,
    kinds: &'static str,
}

impl MetricsSource for OfDevices {
    fn report(&self, page: &mut MetricsPage) {
        let known = self.known.lock();
        let mut reported = HashMap::new();
        for health in self.drives.all() {
            let device = name(health.root());
            if reported.insert(device.clone(), ()).is_some() {
                continue;
            }
            let service = match health.service().0 {
                DriveService::Full => 1.0,
                DriveService::ReadOnly => 0.5,
                DriveService::Out => 0.0,
            };
            page.real(&DEVICE_IN_SERVICE, &[&device], service);
            if let Some(survey) = known.get(health.root()) {
                survey.report(&device, self.kinds, page);
            }
        }
    }
}

fn name(root: &Path) -> String {
    root.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_drive_says_what_was_put_aside() {
        let root = tempfile::tempdir().unwrap();
        for aside in [
            "objects/a",
            "objects/b",
            "objects-12/c",
            "accounts/d",
            "containers",
            "rubbish/e",
            "objects-x/f",
        ] {
            std::fs::create_dir_all(root.path().join(QUARANTINE).join(aside)).unwrap();
        }
        let survey = Survey::of(&*World::real().files, root.path()).unwrap();
        let mut page = MetricsPage::default();
        survey.report("sdb1", "", &mut page);
        let text = page.write();
        for (kind, count) in [("objects", 2), ("objects-12", 1), ("accounts", 1), ("containers", 0)] {
            let line = format!("martlet_quarantined{{device=\"sdb1\",kind=\"{kind}\"}} {count}");
            assert!(text.lines().any(|there| there == line), "{line}\n{text}");
        }
        assert_eq!(text.matches("martlet_quarantined{").count(), 4, "{text}");
        assert!(text.contains("martlet_device_free_bytes{device=\"sdb1\"} "), "{text}");
        assert!(Survey::of(&*World::real().files, &root.path().join("gone")).is_err());
    }

    #[test]
    fn room_is_reported_by_one_server() {
        let root = tempfile::tempdir().unwrap();
        let reporters = || {
            let survey = Survey::of(&*World::real().files, root.path()).unwrap();
            let is_reporter = |kinds: &&str| {
                let mut page = MetricsPage::default();
                survey.report("sdb1", kinds, &mut page);
                page.write().contains("martlet_device_free_bytes")
            };
            TREES.into_iter().filter(is_reporter).collect::<Vec<_>>()
        };
        assert_eq!(reporters(), TREES, "nobody has it yet");
        for (made, reporter) in [
            ("accounts/12/abc", "accounts"),
            ("containers/auditor", "accounts"),
            ("containers/7", "containers"),
            ("objects", "containers"),
            ("objects-1/250", "objects"),
        ] {
            std::fs::create_dir_all(root.path().join(made)).unwrap();
            assert_eq!(reporters(), [reporter], "{made}");
        }
    }

    #[test]
    fn updates_that_wait_are_counted_by_the_server_whose_they_are() {
        let root = tempfile::tempdir().unwrap();
        for waiting in [
            "async_pending/a83/1",
            "async_pending/a83/2",
            "async_pending-12/b00/3",
            "async_pendings/a83/4",
        ] {
            std::fs::create_dir_all(root.path().join(waiting)).unwrap();
        }
        // What else may lie there.
        std::fs::write(root.path().join("async_pending/strange"), "").unwrap();
        std::fs::write(root.path().join("async_pending-3"), "").unwrap();
        assert_eq!(pending(&*World::real().files, root.path()).unwrap(), 3);
        assert!(pending(&*World::real().files, &root.path().join("gone")).is_err());
        assert!(tells("", "objects") && tells("objects", "objects") && !tells("accounts", "objects"));
    }

    proptest! {
        #[test]
        fn any_name_is_looked_at(name in "(objects)?-?\\PC{0,12}") {
            kind(OsStr::new(&name));
        }
    }
}
