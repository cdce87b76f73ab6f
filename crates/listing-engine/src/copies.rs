//! Whole databases that travel: snapshots on the way out, copies on the way in.
//!
//! A copy arrives in the device's `tmp` under the name its sender chose (its replica's id), by rsync or
//! by [`Arriving`]. Then it takes the place of nothing ([`adopt`]) or of a database that is far behind
//! ([`Broker::replace_with`]), whose own rows it takes along.
//! Always holds: a copy that is damaged, half, of the other kind or of something else never gets a
//! database's name; no row that was acknowledged here is lost by the exchange, for the last rows are
//! taken under the locks that writers need; a copy gets an identity of its own before its name; what is looked at is
//! what gets the name, for no other process knows its path by then.

use crate::connection::Database;
use crate::error::{DatabaseFailure, WorkError};
use crate::files::{Disk, Lock, SYNC_STEP};
use crate::replication::{max_row, rows_since};
use crate::row::spell;
use crate::sync_points::{self, Direction, SyncPoint};
use crate::wire::Numbered;
use crate::{Broker, Error, Info, Kind, Location, Metadata, absorb, info, metadata, shard_ranges};
use rusqlite::{Connection, params};
use std::path::{Path, PathBuf};
use world::files::{File, FileKind};

/// Rows per step while no request is kept waiting.
const STEP: usize = 1_000;
/// No database comes to greater ROWIDs. One without room for another row says that the disk is full.
const GREATEST_ROW: i64 = i64::MAX / 2;

/// What a copy is made known by when it takes its place here.
#[derive(Debug, Clone, Copy)]
pub struct CopyIdentity<'s> {
    /// The name it arrived under: the identity of the replica that it is a copy of.
    pub name: &'s str,
    /// A random identity; the device's name is added.
    pub unique: &'s str,
}

/// A consistent copy of a database, gone when dropped.
pub struct Snapshot {
    path: PathBuf,
    disk: Disk,
    _alive: Lock,
}

impl Snapshot {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.disk.discard(&self.path);
    }
}

/// A copy that is being written by its receiver.
pub struct Arriving {
    file: Box<dyn File>,
    disk: Disk,
    /// What it is called until it is whole.
    path: PathBuf,
    target: PathBuf,
    written: u64,
    synced: u64,
    _alive: Lock,
}

impl Arriving {
    /// Begins a file that will be called `identity.name` in the `tmp` of the device of `location`.
    pub fn begin(location: &Location, identity: CopyIdentity<'_>) -> Result<Self, Error> {
        let target = place(location, identity.name)?;
        location.disk().make_dirs(&location.tmp_dir(), location.root())?;
        let path = own_place(location, identity.unique);
        let alive = location.disk().lock(&path)?;
        let file = location.disk().writer(&path)?;
        Ok(Self {
            file,
            disk: location.disk().clone(),
            path,
            target,
            written: 0,
            synced: 0,
            _alive: alive,
        })
    }

    /// The next bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let done = self.file.write_all_at(bytes, self.written);
        self.written += bytes.len() as u64;
        done.map_err(|error| Error::io("write", &self.path, error))?;
        if self.written - self.synced < SYNC_STEP {
            return Ok(());
        }
        self.synced = self.written;
        self.disk.sync_part(&*self.file, &self.path)
    }

    /// All has come: it gets its name. Without this it is removed when dropped.
    pub fn finish(self) -> Result<(), Error> {
        self.disk.rename(&self.path, &self.target)
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.disk.discard(&self.path);
    }
}

/// Gives the copy `identity.name` the place `location`, where there must be none; `file` is the file's name when
/// it is not the usual one. `belongs` says whether it is a database of this place.
pub fn adopt(
    location: &Location,
    file: Option<&str>,
    identity: CopyIdentity<'_>,
    belongs: impl Fn(&Info) -> bool,
) -> Result<(), Error> {
    let target = target(location, file)?;
    if location.disk().exists(&target)? {
        // It came too late, and does not stay in `tmp`.
        drop(Claimed::of(location, identity));
        return Err(Error::AlreadyExists { path: target });
    }
    let claimed = Claimed::of(location, identity)?;
    Copy::open(location, &claimed.path, belongs)?.take_identity(location, identity)?;
    location.disk().write_back(&claimed.path)?;
    let _lock = location.locked_home()?;
    if location.disk().exists(&target)? {
        return Err(Error::AlreadyExists { path: target });
    }
    // Left by a database that is gone, it would be rolled back into this one.
    location.disk().discard(&journal(&target));
    location.disk().publish(&claimed.path, &target)
}

/// A copy that has arrived, under a name that no other process knows: what arrives under its own meanwhile is another.
/// Gone when dropped, unless it has got a database's name.
struct Claimed {
    path: PathBuf,
    disk: Disk,
    _alive: Lock,
}

impl Claimed {
    fn of(location: &Location, identity: CopyIdentity<'_>) -> Result<Self, Error> {
        let arrived = place(location, identity.name)?;
        if !location.disk().is(&arrived, FileKind::File)? {
            return Err(Error::NotFound { path: arrived });
        }
        let path = own_place(location, identity.unique);
        location.disk().rename(&arrived, &path)?;
        Ok(Self {
            disk: location.disk().clone(),
            _alive: location.disk().lock(&path)?,
            path,
        })
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        self.disk.discard(&self.path);
    }
}

impl Broker {
    /// A copy of everything as of now, in the device's `tmp`; `unique` makes its name.
    pub fn snapshot(&self, unique: &str) -> Result<Snapshot, Error> {
        let location = self.location();
        location.disk().make_dirs(&location.tmp_dir(), location.root())?;
        let path = own_place(location, unique);
        let snapshot = Snapshot {
            disk: location.disk().clone(),
            _alive: location.disk().lock(&path)?,
            path,
        };
        self.with_merged(|database| database.copy_to(&snapshot.path))?;
        Ok(snapshot)
    }

    /// Lets the copy `identity.name` take this database's place, with all that is here merged into it.
    pub fn replace_with(&self, identity: CopyIdentity<'_>, belongs: impl Fn(&Info) -> bool) -> Result<(), Error> {
        let location = self.location();
        let claimed = Claimed::of(location, identity)?;
        let id = self.info()?.id;
        let mut copy = Copy::open(location, &claimed.path, belongs)?;
        let mut point = -1;
        loop {
            let rows = self.rows_since(point, STEP)?;
            let Some(last) = rows.last() else { break };
            point = last.id;
            copy.absorb(rows)?;
        }
        // Before the locks: what is left to sync under them is what changes from now on.
        location.disk().write_back(&claimed.path)?;
        let plain = location.db_file();
        self.alone(|database| {
            if database.path() != plain {
                return Err(DatabaseFailure::Error(Error::Busy { path: plain.clone() }));
            }
            database.write_long("replace", |transaction| -> Result<_, WorkError> {
                // The rows of one that has taken its place meanwhile have other numbers.
                if !sync_points::has_id(location.kind(), transaction, &id)? {
                    return Err(Error::Busy { path: plain.clone() }.into());
                }
                copy.take_rest(transaction, point)?;
                copy.take_identity(location, identity)?;
                Ok(location.disk().publish(&claimed.path, &plain)?)
            })
        })
    }
}

/// Where a copy lies that is this process's own.
fn own_place(location: &Location, unique: &str) -> PathBuf {
    let name = format!(".martlet-{}-{unique}.copy.db", location.kind().word());
    location.tmp_dir().join(name)
}

/// Where the copy `name` lies. A name is a name, not a path.
fn place(location: &Location, name: &str) -> Result<PathBuf, Error> {
    let plain = !name.is_empty() && name.len() < 200 && !name.starts_with('.') && !name.contains(['/', '\0']);
    match plain {
        true => Ok(location.tmp_dir().join(name)),
        false => Err(Error::NotFound {
            path: location.tmp_dir(),
        }),
    }
}

/// The database's file, or the one that OpenStack's sharder calls `<hash>_<epoch>.db`.
fn target(location: &Location, file: Option<&str>) -> Result<PathBuf, Error> {
    let usual = location.db_file();
    let Some(name) = file else { return Ok(usual) };
    let hash = location.hash_hex();
    let rest = name.strip_prefix(&hash).and_then(|rest| rest.strip_suffix(".db"));
    let epoch = |rest: &str| {
        let digits = rest.strip_prefix('_').unwrap_or("/");
        digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_'))
    };
    match rest {
        Some("") => Ok(usual),
        Some(rest) if epoch(rest) => Ok(location.hash_dir().join(name)),
        _ => Err(Error::NotFound { path: usual }),
    }
}

/// Where SQLite keeps what it must undo after a crash.
fn journal(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-journal");
    name.into()
}

/// A copy that no other process knows yet: synced when it gets its name, so not before.
struct Copy {
    database: Database,
    kind: Kind,
    /// The greatest ROWID it came with. Rows that are added here get greater ones, which its original will give to
    /// others.
    came_with: i64,
}

impl Copy {
    fn open(location: &Location, staged: &Path, belongs: impl Fn(&Info) -> bool) -> Result<Self, Error> {
        let kind = location.kind();
        let unfit = |reason: String| {
            bad(
                staged,
                format!("{reason}; it was sent as {}", location.db_file().display()),
            )
        };
        let refuse = |failure| match failure {
            DatabaseFailure::Error(error) => error,
            DatabaseFailure::Damaged(reason) | DatabaseFailure::Malformed(reason) => unfit(reason),
        };
        let database = Database::open_unshared(location.disk(), kind, staged).map_err(refuse)?;
        let mut copy = Self {
            database,
            kind,
            came_with: -1,
        };
        let looked = copy.database.read_long("read", |c| {
            let checked: String = c.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            let used: Option<i64> = c.query_row("SELECT max(seq) FROM sqlite_sequence", [], |row| row.get(0))?;
            let metadata = metadata::readable(kind, c)?.unwrap_or_default();
            Ok((
                checked,
                info::read_info(kind, c)?,
                max_row(c, rows_table(kind))?,
                used,
                metadata,
            ))
        });
        let (checked, info, greatest, used, metadata) = looked.map_err(refuse)?;
        copy.came_with = greatest;
        if checked != "ok" {
            return Err(unfit(checked));
        }
        if used.unwrap_or(0).max(greatest) > GREATEST_ROW {
            return Err(unfit("it leaves no number for another row".into()));
        }
        if let Some(excess) = metadata.excess() {
            return Err(unfit(excess));
        }
        match belongs(&info) {
            true => Ok(copy),
            false => Err(unfit("it is a database of another place".into())),
        }
    }

    fn change(&mut self, work: impl FnOnce(&Connection) -> rusqlite::Result<()>) -> Result<(), Error> {
        let path = self.database.path().to_owned();
        let done = self.database.write_long("write", |transaction| work(transaction));
        done.map_err(|failure| refused(&path, failure))
    }

    fn absorb(&mut self, rows: Vec<Numbered>) -> Result<(), Error> {
        let rows = rows.into_iter().map(|numbered| numbered.row).collect();
        self.change(|c| absorb::rows(c, rows))
    }

    /// What has changed here behind `point`, and all that is no row. `here` is locked.
    fn take_rest(&mut self, here: &Connection, mut point: i64) -> Result<(), Error> {
        let kind = self.kind;
        let path = self.database.path().to_owned();
        let fail = |error| Error::sqlite("read for", &path, error);
        loop {
            let rows = rows_since(kind, here, point, STEP).map_err(fail)?;
            let Some(last) = rows.last() else { break };
            point = last.id;
            self.absorb(rows)?;
        }
        let points = sync_points::read(here, Direction::Incoming).map_err(fail)?;
        let stated = info::read_info(kind, here).map_err(fail)?;
        let stored = metadata::read(kind, here).map_err(fail)?;
        let ranges = match kind {
            Kind::Container => shard_ranges::read(here).map_err(fail)?,
            Kind::Account => Vec::new(),
        };
        self.change(|c| {
            for point in &points {
                sync_points::note(c, point, Direction::Incoming)?;
            }
            if !ranges.is_empty() {
                shard_ranges::write(c, &ranges)?;
            }
            merge_times(kind, c, &stated)?;
            merge_metadata(kind, c, &stored)
        })
    }

    /// A new identity, to which the old one's rows are known; nothing reported yet.
    fn take_identity(&mut self, location: &Location, identity: CopyIdentity<'_>) -> Result<(), Error> {
        let (kind, came_with) = (self.kind, self.came_with);
        let id = format!("{}-{}", identity.unique, location.device_name());
        self.change(|c| {
            c.execute(&format!("UPDATE {} SET id = ?", kind.stat_table()), [&id])?;
            let point = SyncPoint {
                remote_id: identity.name.to_owned(),
                point: came_with,
            };
            sync_points::note(c, &point, Direction::Incoming)?;
            if kind == Kind::Container {
                let forget = "UPDATE container_info SET reported_put_timestamp = '0', reported_delete_timestamp = '0',
                              reported_object_count = 0, reported_bytes_used = 0";
                c.execute(forget, [])?;
            }
            Ok(())
        })
    }
}

fn rows_table(kind: Kind) -> &'static str {
    match kind {
        Kind::Account => "container",
        Kind::Container => "object",
    }
}

fn merge_times(kind: Kind, connection: &Connection, stated: &Info) -> rusqlite::Result<()> {
    let sql = format!(
        "UPDATE {} SET put_timestamp = max(?1, put_timestamp), delete_timestamp = max(?2, delete_timestamp)",
        kind.stat_table()
    );
    connection.execute(
        &sql,
        params![spell(stated.put_timestamp), spell(stated.delete_timestamp)],
    )?;
    Ok(())
}

fn merge_metadata(kind: Kind, connection: &Connection, stored: &str) -> rusqlite::Result<()> {
    // What cannot be read says nothing.
    let mine = Metadata::from_json(stored).unwrap_or_default();
    let theirs = metadata::readable(kind, connection)?.unwrap_or_default();
    metadata::write(kind, connection, &theirs.merged_with(&mine))
}

fn refused(path: &Path, failure: DatabaseFailure) -> Error {
    match failure {
        DatabaseFailure::Error(error) => error,
        DatabaseFailure::Damaged(reason) | DatabaseFailure::Malformed(reason) => bad(path, reason),
    }
}

fn bad(path: &Path, reason: String) -> Error {
    Error::BadCopy {
        path: path.to_owned(),
        reason,
    }
}
