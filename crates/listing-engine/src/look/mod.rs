//! A database looked at: [`Broker::look`] answers what a broker answers and leaves every file as it is.
//!
//! OpenStack's brokers merge what waits before they answer, and put damaged databases aside; a tool that only wants to
//! know must not. So the broker works on an image in memory (`excerpt.rs`), on a file system that takes every change
//! and keeps none (`files.rs`). The image has all tables but those of rows, and of these only the rows that waiting
//! ones replace: it stays small however large the database is, and all counters come out right. What a killed
//! writer left unfinished is undone in a copy (`aside.rs`).
//!
//! Always holds: nothing on the disk changes, access times aside, and that SQLite, run by root, hands a journal to the
//! database's owner; a file that is no database, or one of the other kind, is an error that says so. What
//! waits is read before the database is: what is merged in between counts once.
//! Deliberately absent: listings; rows that did not change are not in the image.

mod aside;
mod excerpt;
mod files;

use crate::sync_points::Direction;
use crate::{Broker, DeviceRoot, Error, Kind, Location, columns};
use excerpt::Excerpt;
use files::Untouched;
use rusqlite::types::ValueRef;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use vocabulary::{Partition, PathHash};
use world::files::FileSystem;

/// What stands in `incoming_sync` or `outgoing_sync`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncNote {
    /// The other replica.
    pub remote_id: String,
    /// The ROWID up to which all is known.
    pub point: i64,
    /// When that was noted, in seconds, as it is spelled.
    pub updated_at: String,
}

/// Whether rows count that are acknowledged and not merged yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// As every server answers.
    Counts,
    /// Only what is in the tables.
    DoesNotCount,
}

/// What is wrong with a database that was looked at, by the name of its real file: inside it seems to lie elsewhere.
pub fn complaint_about(error: &Error, path: &Path) -> String {
    let text = error.to_string();
    let Some((before, rest)) = text.split_once(files::ROOT) else {
        return text;
    };
    let behind = rest.split_once(".db").map_or("", |(_, behind)| behind);
    format!("{before}{}{behind}", path.display())
}

impl Broker {
    /// Looks at the database of which `path` is a file, wherever it lies: of several files of one database the newest.
    /// Rows that wait beside it count as `waiting` says.
    pub fn look(files: Arc<dyn FileSystem>, kind: Kind, path: &Path, waiting: Waiting) -> Result<Self, Error> {
        Self::look_through(kind, Untouched::newest(files, kind, path, waiting)?)
    }

    /// Looks at exactly this file, and at nothing that waits beside it: one that is being sharded has two.
    pub fn look_at_file(files: Arc<dyn FileSystem>, kind: Kind, path: &Path) -> Result<Self, Error> {
        Self::look_through(kind, Untouched::exactly(files, kind, path)?)
    }

    fn look_through(kind: Kind, files: Untouched) -> Result<Self, Error> {
        let files: Arc<dyn FileSystem> = Arc::new(files);
        let root = DeviceRoot::new(files::ROOT, false).on(&files);
        Self::open_to_look(Location::new(root, kind, Partition(0), PathHash([0; 16])))
    }

    /// The columns of its one row about the whole, as they are spelled; what is neither text nor whole number is left
    /// out.
    pub fn spelled(&self) -> Result<HashMap<String, String>, Error> {
        let sql = match self.location().kind() {
            Kind::Account => "SELECT * FROM account_stat",
            Kind::Container => "SELECT * FROM container_stat",
        };
        self.with_merged(|database| {
            database.read("read", |connection| {
                let mut statement = connection.prepare(sql)?;
                let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
                statement.query_row([], |row| {
                    let mut found = HashMap::new();
                    for (place, name) in names.iter().enumerate() {
                        match row.get_ref(place)? {
                            ValueRef::Integer(number) => drop(found.insert(name.clone(), number.to_string())),
                            other => found.extend(other.as_str().ok().map(|text| (name.clone(), text.to_owned()))),
                        }
                    }
                    Ok(found)
                })
            })
        })
    }

    /// Of which replicas it has heard, or to which it has sent, how far, and when.
    pub fn sync_notes(&self, direction: Direction) -> Result<Vec<SyncNote>, Error> {
        let sql = format!("SELECT remote_id, sync_point, updated_at FROM {}", direction.table());
        self.with(|database| {
            database.read("read the sync points of", |connection| {
                let mut statement = connection.prepare(&sql)?;
                let text =
                    |row: &rusqlite::Row<'_>, place| Ok::<_, rusqlite::Error>(excerpt::text(row.get_ref(place)?));
                let notes = statement.query_map([], |row| {
                    Ok(SyncNote {
                        remote_id: text(row, 0)?,
                        point: columns::signed(row, 1)?.unwrap_or(-1),
                        updated_at: text(row, 2)?,
                    })
                })?;
                notes.collect()
            })
        })
    }
}
