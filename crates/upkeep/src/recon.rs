//! Recon figures: what upkeep reports for monitoring.
//!
//! OpenStack's daemons keep their figures as JSON in `recon_cache_path`: `object.recon`,
//! `container.recon` and `account.recon`; `swift-recon` and the recon filter read them. [`ReconWriter::note`]
//! merges figures into one of them as they do: a dictionary is merged one level deep, `{}` removes what
//! has that name, anything else takes the place of what was there.
//! Always holds: a reader sees a whole file, the old or the new one; OpenStack's daemons may write the
//! same file at the same time (their lock is taken); whatever goes wrong costs one line in the log until
//! it works again, never the work that the figures are about.
//! Deliberately absent: reading for answers.

use crate::faults::{ToFault, run_on};
use durable_fs::write_file_atomically;
use listing_engine::Kind;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Fault;
use world::files::{File, Purpose};
use world::{Workers, World};

/// As long as OpenStack's daemons wait for each other.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// Notes that may wait to be written.
const QUEUE: usize = 64;
/// A larger file holds no figures.
const LIMIT: u64 = 16 << 20;
/// How often the file may be replaced between opening it and having its lock.
const REPLACED: usize = 100;

/// Below this name a daemon of ours with figures says when its last pass ended; OpenStack's say it of some daemons.
pub const PASSES: &str = "martlet_passes";

/// A file of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReconFile {
    /// `object.recon`
    Object,
    /// `container.recon`
    Container,
    /// `account.recon`
    Account,
    /// `drive.recon`
    Drive,
    /// `martlet-account.passes`: no file of OpenStack's, whose daemons of that kind keep no figures.
    AccountPasses,
    /// `martlet-container.passes`
    ContainerPasses,
    /// `martlet-object.passes`
    ObjectPasses,
}

impl ReconFile {
    /// The figures of the databases of a kind.
    pub(crate) fn of(kind: Kind) -> Self {
        match kind {
            Kind::Account => Self::Account,
            Kind::Container => Self::Container,
        }
    }

    /// Where a daemon without figures notes when its last pass ended.
    pub(crate) fn passes_of(daemon: &str) -> Self {
        match daemon.split('-').next() {
            Some("account") => Self::AccountPasses,
            Some("container") => Self::ContainerPasses,
            _ => Self::ObjectPasses,
        }
    }

    /// The files that the daemons beside the server of this one write.
    pub fn of_kind(self) -> Vec<&'static str> {
        let passes = match self {
            Self::Account => Self::AccountPasses,
            Self::Container => Self::ContainerPasses,
            _ => Self::ObjectPasses,
        };
        vec![self.file(), passes.file()]
    }

    /// The name of its file.
    pub fn file(self) -> &'static str {
        match self {
            ReconFile::Object => "object.recon",
            ReconFile::Container => "container.recon",
            ReconFile::Account => "account.recon",
            ReconFile::Drive => "drive.recon",
            ReconFile::AccountPasses => "martlet-account.passes",
            ReconFile::ContainerPasses => "martlet-container.passes",
            ReconFile::ObjectPasses => "martlet-object.passes",
        }
    }
}

/// The directory of figures; cheap to clone.
#[derive(Clone)]
pub struct ReconWriter(Arc<Shared>);

struct Shared {
    world: World,
    directory: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    thread: Option<Arc<Workers>>,
    /// The log has a line that figures cannot be written.
    troubled: bool,
}

impl ReconWriter {
    /// Figures in `directory` (`recon_cache_path`), made when only it is missing.
    pub fn new(world: World, directory: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Shared {
            world,
            directory: directory.into(),
            state: Mutex::default(),
        }))
    }

    /// Merges `figures`, a dictionary, into a file.
    pub async fn note(&self, cache: ReconFile, figures: Value) {
        let Value::Object(figures) = figures else {
            return tracing::error!("figures for {} that are no dictionary: dropped", cache.file());
        };
        self.0.judge(self.try_note(cache, figures).await);
    }

    /// [`ReconWriter::note`] for a program that reports a failure itself: the fault names the file, nothing is logged.
    pub async fn try_note(&self, cache: ReconFile, figures: Map<String, Value>) -> Result<(), Fault> {
        self.write(cache, figures).await.map_err(|error| {
            let path = self.0.directory.join(cache.file());
            error.within(format_args!("cannot write figures to {}", path.display()))
        })
    }

    async fn write(&self, cache: ReconFile, figures: Map<String, Value>) -> Result<(), Fault> {
        let thread = self.thread().map_err(|error| error.to_fault())?;
        let shared = self.0.clone();
        run_on(&thread, move || shared.write(cache, figures)).await
    }

    fn thread(&self) -> io::Result<Arc<Workers>> {
        let mut state = self.0.state.lock();
        if let Some(thread) = &state.thread {
            return Ok(thread.clone());
        }
        let thread = Arc::new(self.0.world.workers("recon", 1, QUEUE)?);
        state.thread = Some(thread.clone());
        Ok(thread)
    }
}

impl Shared {
    fn judge(&self, written: Result<(), Fault>) {
        let troubled = written.is_err();
        let before = std::mem::replace(&mut self.state.lock().troubled, troubled);
        if let (Err(error), false) = (written, before) {
            tracing::warn!("{error}");
        }
    }

    fn write(&self, cache: ReconFile, figures: Map<String, Value>) -> Result<(), Fault> {
        let path = self.directory.join(cache.file());
        let _lock = self.lock(&path).map_err(|error| error.to_fault())?;
        let read = self.world.files.read(&path, LIMIT);
        let mut content = content_of(&path, read).map_err(|error| error.to_fault())?;
        merge(&mut content, figures);
        let mut text = Value::Object(content).to_string();
        text.push('\n');
        write_file_atomically(&self.world, &self.directory, cache.file(), text.as_bytes()).map_err(Fault::from)
    }

    /// The file's own lock: that of OpenStack's daemons. It counts only while the file has its name.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let files = &self.world.files;
        for _ in 0..REPLACED {
            let mut opened = files.open(path, Purpose::Lock);
            if matches!(&opened, Err(error) if error.kind() == io::ErrorKind::NotFound) {
                files.make_directory(&self.directory)?;
                opened = files.open(path, Purpose::Lock);
            }
            let file = opened?;
            file.lock(LOCK_PATIENCE)?;
            match files.info(path) {
                Ok(named) if named.inode == file.info()?.inode => return Ok(file),
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

/// What the file says; nothing when it cannot be understood. One that cannot be read now may be later: the figures of
/// other daemons are in it, so that it stays as it is.
fn content_of(path: &Path, read: io::Result<Vec<u8>>) -> io::Result<Map<String, Value>> {
    let bytes = match read {
        Ok(bytes) if bytes.is_empty() => return Ok(Map::new()),
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => return Ok(anew(path, &error.to_string())),
        Err(error) => return Err(error),
    };
    Ok(match serde_json::from_slice(&bytes) {
        Ok(Value::Object(content)) => content,
        Ok(_) => anew(path, "not a dictionary"),
        Err(error) => anew(path, &error.to_string()),
    })
}

fn anew(path: &Path, why: &str) -> Map<String, Value> {
    tracing::warn!("{} cannot be read ({why}): begun anew", path.display());
    Map::new()
}

fn merge(content: &mut Map<String, Value>, figures: Map<String, Value>) {
    for (name, figure) in figures {
        match figure {
            Value::Object(parts) if parts.is_empty() => drop(content.shift_remove(&name)),
            Value::Object(parts) => {
                let entry = content.entry(name).or_insert_with(|| Value::Object(Map::new()));
                if !entry.is_object() {
                    *entry = Value::Object(Map::new());
                }
                if let Value::Object(entry) = entry {
                    merge_parts(entry, parts);
                }
            }
            other => drop(content.insert(name, other)),
        }
    }
}

fn merge_parts(entry: &mut Map<String, Value>, parts: Map<String, Value>) {
    for (name, part) in parts {
        match part {
            Value::Object(part) if part.is_empty() => drop(entry.shift_remove(&name)),
            part => drop(entry.insert(name, part)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    async fn noted(before: &str, figures: Value) -> Value {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("object.recon");
        std::fs::write(&path, before).unwrap();
        ReconWriter::new(World::real(), dir.path())
            .note(ReconFile::Object, figures)
            .await;
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    /// What OpenStack Swift 2.38.3's `dump_recon_cache` made of the same.
    #[tokio::test]
    async fn merges_as_openstack_does() {
        for (before, figures, after) in [
            (json!({"a": 1}), json!({"b": 2}), json!({"a": 1, "b": 2})),
            (json!({"a": 1}), json!({"a": null}), json!({"a": null})),
            (json!({"a": 1}), json!({"a": {}}), json!({})),
            (json!({"a": 1}), json!({"a": {"b": 1}}), json!({"a": {"b": 1}})),
            (
                json!({"a": {"b": 1}}),
                json!({"a": {"c": 1}}),
                json!({"a": {"b": 1, "c": 1}}),
            ),
            (json!({"a": {"b": 1}}), json!({"a": {"b": {}}}), json!({"a": {}})),
            (
                json!({"a": {"b": 1}}),
                json!({"a": {"b": null}}),
                json!({"a": {"b": null}}),
            ),
            (
                json!({"a": {"b": {"c": 1, "d": 2}}}),
                json!({"a": {"b": {"c": {}}}}),
                json!({"a": {"b": {"c": {}}}}),
            ),
            (json!({"a": {"b": {"c": 1}}}), json!({"a": 3}), json!({"a": 3})),
            (json!({}), json!({"a": {"b": {}}}), json!({"a": {}})),
        ] {
            assert_eq!(
                noted(&before.to_string(), figures.clone()).await,
                after,
                "{before} {figures}"
            );
        }
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_begun_anew() {
        for rubbish in ["", "garbage", "[1, 2]", "{\"a\": "] {
            assert_eq!(noted(rubbish, json!({"a": 1})).await, json!({"a": 1}));
        }
    }

    #[test]
    fn what_cannot_be_read_now_stays() {
        let content = |read| content_of(Path::new("object.recon"), read);
        // EMFILE, EIO, EACCES.
        for number in [24, 5, 13] {
            content(Err(io::Error::from_raw_os_error(number))).unwrap_err();
        }
        for gone in [io::ErrorKind::NotFound, io::ErrorKind::FileTooLarge] {
            assert!(content(Err(gone.into())).unwrap().is_empty());
        }
    }

    #[tokio::test]
    async fn a_missing_directory_is_made_and_one_without_place_harms_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let recon = ReconWriter::new(World::real(), dir.path().join("recon"));
        recon.note(ReconFile::Account, json!({"a": 1})).await;
        assert_eq!(
            std::fs::read(dir.path().join("recon/account.recon")).unwrap(),
            b"{\"a\":1}\n"
        );
        let recon = ReconWriter::new(World::real(), dir.path().join("not/there"));
        recon.note(ReconFile::Account, json!({"a": 1})).await;
        recon.note(ReconFile::Account, json!(1)).await;
        let fault = recon.try_note(ReconFile::Account, Map::new()).await.unwrap_err();
        assert!(fault.what.contains("not/there/account.recon: "), "{fault}");
        assert!(!dir.path().join("not").exists());
    }

    #[tokio::test]
    async fn writers_wait_for_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let one = ReconWriter::new(World::real(), dir.path());
        let other = ReconWriter::new(World::real(), dir.path());
        let notes = (0..20).map(|n| {
            let recon = if n % 2 == 0 { &one } else { &other };
            recon.note(ReconFile::Container, json!({ n.to_string(): n }))
        });
        futures_util::future::join_all(notes).await;
        let bytes = std::fs::read(dir.path().join("container.recon")).unwrap();
        let content: Map<String, Value> = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(content.len(), 20);
    }
}
