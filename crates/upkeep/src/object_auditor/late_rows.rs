//! Listing rows that may have been lost with the machine's power, made pending records again after a boot.
//!
//! An object server records a row as an intent before it publishes the change that entails it, without a sync; where
//! all servers of an object lose power before container servers have the row, nothing but the object is left. So in
//! the first pass after a boot the auditor, which looks at everything anyway, keeps a pending record
//! (`async_pending`) of each object or deletion whose files got their names, or were written, within [`WINDOW`] before
//! the machine went down; the object-updater sends it. A row that had arrived changes nothing.
//! When the machine went down stands nowhere: the power may have been off for long. It was not before the last change
//! on the device from before the boot, and the newest of those seen so far is what the window is measured from. So what
//! may be missing is always kept, and of the rest, partitions being in no order of time, few more than the window has.
//! Always holds: a device whose pass was incomplete is looked at again; the boot that a policy's objects were checked
//! after stands in `objects/auditor_status_boot.json`, which OpenStack Swift's daemons pass over.
//! Deliberately absent: clocks that were wrong before or after the boot; rows that were lost before an earlier boot
//! whose pass was not done by the last one.
//! Page: `docs/formats/object-files.md`. Tests: `tests/late_rows.rs`.

use durable_fs::write_file_atomically;
use object_engine::{AuditPlace, EngineError, FoundObject, ListedState, ListingUpdate, ObjectAudit, Presence};
use peer::message::header_names::{RECORDED_POLICY_INDEX, STORED_UPDATE_OVERRIDE_PREFIX};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use vocabulary::header_name::title;
use vocabulary::{EntityPath, HashPrefix, Timestamp, expiry_queue};
use world::World;
use world::files::{Purpose, read_bytes_at};

/// How long before the machine went down a row may have been under way, in seconds. Object servers wait a second for
/// container servers (`container_update_timeout`) before they keep a pending record; OpenStack's container servers
/// leave rows to the kernel, which writes within half a minute.
const WINDOW: i64 = 60;
const RECORD: &str = "auditor_status_boot.json";
const RECORD_LIMIT: u64 = 4096;
const ID_LIMIT: usize = 64;
/// A line for each processor, and one with all interrupts.
const STAT_LIMIT: usize = 4 << 20;
/// As in the metadata of an object.
const DELETE_AT: &str = "X-Delete-At";
/// Of nothing, which is what a task of the expirer's queue holds.
const EMPTY_ETAG: &str = "d41d8cd98f00b204e9800998ecf8427e";

/// A start of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// What names it.
    pub id: String,
    /// When it was, in seconds since 1970, by the clock as it goes now.
    pub at: i64,
}

impl Boot {
    /// The machine's last one; `None` where Linux does not tell.
    pub fn last(world: &World) -> Option<Self> {
        // Files of `/proc` do not know how long they are.
        let text = |path: &str, limit| {
            let file = world.files.open(Path::new(path), Purpose::Read).ok()?;
            String::from_utf8(read_bytes_at(&*file, limit, 0).ok()?).ok()
        };
        let id = text("/proc/sys/kernel/random/boot_id", ID_LIMIT)?;
        let stat = text("/proc/stat", STAT_LIMIT)?;
        let at = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
        Some(Self {
            id: id.trim().to_owned(),
            at: at.trim().parse().ok()?,
        })
    }

    /// Whether the objects in a policy's directory were checked after it.
    pub(super) fn is_recorded(&self, world: &World, directory: &Path) -> bool {
        let bytes = world.files.read(&directory.join(RECORD), RECORD_LIMIT);
        let record = bytes
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        record.is_some_and(|record| record["boot"] == self.id)
    }

    /// Notes that they were.
    pub(super) fn record(&self, world: &World, directory: &Path) {
        let text = json!({ "boot": self.id }).to_string();
        if let Err(error) = write_file_atomically(world, directory, RECORD, text.as_bytes()) {
            tracing::warn!("listing rows from before the boot are looked for again in the next pass: {error}");
        }
    }
}

/// The check of one policy's objects on a device.
pub(super) struct LateRows {
    pub(super) boot: Boot,
    secrets: HashPrefix,
    /// Of the times when files changed, and of those when they were written: either may have been moved.
    changed: Window,
    written: Window,
    kept: AtomicU64,
}

impl LateRows {
    pub(super) fn new(boot: Boot, secrets: HashPrefix) -> Self {
        Self {
            boot,
            secrets,
            changed: Window::new(),
            written: Window::new(),
            kept: AtomicU64::new(0),
        }
    }

    /// How many pending records were made.
    pub(super) fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Keeps the rows of the object in a place if they may be missing; whether they may. Blocks.
    pub(super) fn keep(&self, audit: &ObjectAudit, place: &AuditPlace) -> Result<bool, EngineError> {
        let times = audit.times_before(place, self.boot.at)?;
        let is_late = |window: &Window, at: Option<i64>| at.is_some_and(|at| window.holds(at));
        let (changed, written) = (
            is_late(&self.changed, times.changed),
            is_late(&self.written, times.written),
        );
        if !(changed || written) {
            return Ok(false);
        }
        let Some(state) = audit.listed_state(place)? else {
            return Ok(false);
        };
        for row in self.rows(place, &state) {
            let made = audit.keep_listing_update(&row)?;
            self.kept.fetch_add(u64::from(made), Ordering::Relaxed);
        }
        Ok(true)
    }

    /// The row of the object's container, and of the expirer's queue where it expires.
    fn rows(&self, place: &AuditPlace, state: &ListedState) -> Vec<ListingUpdate> {
        let row = |path: &EntityPath, timestamp, op: &str, headers| ListingUpdate {
            policy: place.policy,
            hash: self.hash_of(path),
            timestamp,
            op: op.to_owned(),
            account: path.account.clone(),
            container: path.container.clone().unwrap_or_default(),
            object: path.object.clone().unwrap_or_default(),
            headers,
            db_state: None,
            container_path: None,
        };
        let policy = place.policy.0.to_string();
        match &state.presence {
            Presence::Deleted(at) => {
                let headers = headers([("X-Timestamp", at.internal()), (RECORDED_POLICY_INDEX, policy)]);
                vec![row(&state.path, *at, "DELETE", headers)]
            }
            Presence::Stored(found) => {
                let newest = found.timestamps.newest();
                let task = self.task(&state.path, found, newest);
                let task = task.map(|(path, headers)| row(&path, newest, "PUT", headers));
                let own = row(&state.path, newest, "PUT", object_headers(found, policy));
                std::iter::once(own).chain(task).collect()
            }
        }
    }

    /// Where the expirer's queue names an object that expires, and what is sent there.
    fn task(&self, path: &EntityPath, found: &FoundObject, newest: Timestamp) -> Option<(EntityPath, RowHeaders)> {
        let at = found.metadata.text(DELETE_AT)?.trim().parse().ok()?;
        let container = expiry_queue::container(at, &self.hash_of(path), expiry_queue::DIVISOR);
        let queued = EntityPath::account(expiry_queue::ACCOUNT)
            .with_container(container)
            .with_object(expiry_queue::task(at, path));
        let headers = headers([
            ("X-Timestamp", newest.internal()),
            (RECORDED_POLICY_INDEX, "0".to_owned()),
            ("X-Size", "0".to_owned()),
            ("X-Etag", EMPTY_ETAG.to_owned()),
            (
                "X-Content-Type",
                format!("text/plain;swift_expirer_bytes={}", found.size),
            ),
            ("X-Content-Type-Timestamp", found.timestamps.content_type.internal()),
        ]);
        Some((queued, headers))
    }

    fn hash_of(&self, path: &EntityPath) -> vocabulary::PathHash {
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        self.secrets
            .object(&path.account, &part(&path.container), &part(&path.object))
    }
}

/// The last of the time before a boot, as far as is known: [`WINDOW`] until the newest change seen.
struct Window(AtomicI64);

impl Window {
    fn new() -> Self {
        Self(AtomicI64::new(i64::MIN))
    }

    /// Whether a change of this second is in it.
    fn holds(&self, changed: i64) -> bool {
        let newest = self.0.fetch_max(changed, Ordering::Relaxed).max(changed);
        newest.saturating_sub(changed) <= WINDOW
    }
}

/// As a pending record holds them.
type RowHeaders = Vec<(String, Vec<u8>)>;

fn headers<const N: usize>(fields: [(&str, String); N]) -> RowHeaders {
    fields.map(|(name, value)| (name.to_owned(), value.into_bytes())).into()
}

/// The row of an object that is there, as its PUT sent it or its newest POST.
fn object_headers(found: &FoundObject, policy: String) -> RowHeaders {
    let stored = |name: &str| found.metadata.get(name).unwrap_or_default().to_vec();
    let timestamps = &found.timestamps;
    let mut fields = headers([
        ("X-Timestamp", timestamps.data.internal()),
        (RECORDED_POLICY_INDEX, policy),
        ("X-Size", found.size.to_string()),
    ]);
    fields.push(("X-Etag".to_owned(), stored("ETag")));
    fields.push(("X-Content-Type".to_owned(), stored("Content-Type")));
    if let Some(meta) = timestamps.meta {
        fields.extend(headers([
            ("X-Content-Type-Timestamp", timestamps.content_type.internal()),
            ("X-Meta-Timestamp", meta.internal()),
        ]));
    }
    for (name, value) in found.data_metadata.iter() {
        let lower = name.to_ascii_lowercase();
        let Some(rest) = lower
            .strip_prefix(STORED_UPDATE_OVERRIDE_PREFIX)
            .filter(|rest| !rest.is_empty())
        else {
            continue;
        };
        let shown = title(&format!("x-{rest}"));
        fields.retain(|(name, _)| *name != shown);
        fields.push((shown, value.to_vec()));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_moves_with_the_newest_change() {
        let window = Window::new();
        let held = [5000, 4000, 4940, 4939, 9000, 5000, 8940].map(|changed| window.holds(changed));
        assert_eq!(held, [true, false, true, false, true, false, true]);
    }

    #[test]
    fn the_machine_names_its_boot() {
        let world = World::real();
        let boot = Boot::last(&world).unwrap();
        assert_eq!(boot.id.len(), 36, "{boot:?}");
        let now = world.clock.now().seconds() as i64;
        assert!((1_000_000_000..=now).contains(&boot.at), "{boot:?}");
    }
}
