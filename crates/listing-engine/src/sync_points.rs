//! Sync points: up to which row of which other replica a database has everything, and they have ours.
//!
//! `incoming_sync`: rows of theirs that are here. `outgoing_sync`: rows of ours that are there.
//! Always holds: points only grow.

use crate::{Broker, Error, Kind, columns};
use rusqlite::{Connection, OptionalExtension, params};

/// Whose rows a sync point counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Another replica's, which are here.
    Incoming,
    /// Ours, which are there.
    Outgoing,
}

impl Direction {
    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::Incoming => "incoming_sync",
            Self::Outgoing => "outgoing_sync",
        }
    }
}

/// How far one pair of replicas has got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncPoint {
    /// The other replica.
    pub remote_id: String,
    /// The ROWID up to which all is known.
    pub point: i64,
}

impl Broker {
    /// How far it has got with the replica `remote_id`; -1 for not at all.
    pub fn sync_point(&self, remote_id: &str, direction: Direction) -> Result<i64, Error> {
        let sql = format!("SELECT sync_point FROM {} WHERE remote_id = ?", direction.table());
        self.with(|database| {
            database.read("read the sync points of", |c| {
                let found = c
                    .prepare_cached(&sql)?
                    .query_row([remote_id], |row| columns::signed(row, 0))
                    .optional()?;
                Ok(found.flatten().unwrap_or(-1))
            })
        })
    }

    /// How far it has got with everybody.
    pub fn sync_points(&self, direction: Direction) -> Result<Vec<SyncPoint>, Error> {
        self.with(|database| database.read("read the sync points of", |c| read(c, direction)))
    }

    /// Notes progress; points that are behind what is known change nothing.
    pub fn merge_sync_points(&self, points: &[SyncPoint], direction: Direction) -> Result<(), Error> {
        self.change(|c| {
            points.iter().try_for_each(|point| note(c, point, direction))?;
            Ok(points.len())
        })
    }

    /// Refuses as busy when another database has taken the place of the replica `id`: its rows have other numbers.
    pub fn check_is_still(&self, id: &str) -> Result<(), Error> {
        let kind = self.location().kind();
        let is_still = self.with(|database| database.read("read the id of", |c| has_id(kind, c, id)))?;
        match is_still {
            true => Ok(()),
            false => Err(Error::Busy {
                path: self.location().db_file(),
            }),
        }
    }

    /// Notes up to where the rows of the replica `id` were sent to another; nothing when another database has taken
    /// its place.
    pub fn note_sent(&self, id: &str, point: &SyncPoint) -> Result<(), Error> {
        let kind = self.location().kind();
        self.change(|c| match has_id(kind, c, id)? {
            true => note(c, point, Direction::Outgoing).map(|()| 1),
            false => Ok(0),
        })
    }
}

pub(crate) fn has_id(kind: Kind, connection: &Connection, id: &str) -> rusqlite::Result<bool> {
    let sql = format!("SELECT id = ? FROM {}", kind.stat_table());
    connection
        .prepare_cached(&sql)?
        .query_row([id], |row| Ok(columns::signed(row, 0)?.unwrap_or(0) != 0))
}

pub(crate) fn read(connection: &Connection, direction: Direction) -> rusqlite::Result<Vec<SyncPoint>> {
    let sql = format!("SELECT remote_id, sync_point FROM {}", direction.table());
    let mut statement = connection.prepare_cached(&sql)?;
    let points = statement.query_map([], |row| {
        Ok(SyncPoint {
            remote_id: columns::text(row, 0)?,
            point: columns::signed(row, 1)?.unwrap_or(-1),
        })
    })?;
    points.collect()
}

pub(crate) fn note(connection: &Connection, point: &SyncPoint, direction: Direction) -> rusqlite::Result<()> {
    let sql = format!(
        "INSERT INTO {} (remote_id, sync_point) VALUES (?1, ?2)
         ON CONFLICT (remote_id) DO UPDATE SET sync_point = max(sync_point, excluded.sync_point)",
        direction.table()
    );
    connection
        .prepare_cached(&sql)?
        .execute(params![point.remote_id, point.point])?;
    Ok(())
}
