//! The part of a database that answers all questions but listings, copied into memory.
//!
//! Always holds: the file is opened for reading only, and where reading alone would change something a copy of it is
//! read (`aside.rs`); what is copied is of one moment; what a hostile file makes grow is refused at [`LARGEST`].

use super::aside::{Aside, is_in_wal_mode};
use crate::connection::guard;
use crate::error::damage;
use crate::{Error, Kind, chexor};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, params_from_iter};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// How long a server's transaction is waited for.
const PATIENCE: Duration = Duration::from_secs(25);
/// How often it is tried again while what is copied changes; between, SQLite waits for the writer.
const TRIES: usize = 20;
/// More values than this, in bytes, no database has outside its rows.
const LARGEST: usize = 256 << 20;
/// What each value costs besides its bytes.
const VALUE_COST: usize = 16;

/// A database file of a kind.
pub(super) struct Excerpt<'a> {
    pub(super) kind: Kind,
    pub(super) path: &'a Path,
    /// The rows that are wanted.
    pub(super) names: &'a BTreeSet<String>,
}

impl Excerpt<'_> {
    /// The excerpt as a database file.
    pub(super) fn take(&self) -> Result<Vec<u8>, Error> {
        for _ in 0..TRIES {
            if !is_in_wal_mode(self.path) {
                match self.copy_of(self.path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
                    Err(error) if error.sqlite_error_code() == Some(ErrorCode::ReadOnly) => (),
                    taken => return self.judge(taken),
                }
            }
            let aside = Aside::copy(self.path).map_err(|error| Error::io("read", self.path, error))?;
            if let Some(aside) = aside {
                return self.judge(self.copy_of(&aside.path(), OpenFlags::SQLITE_OPEN_READ_WRITE));
            }
        }
        Err(Error::Busy {
            path: self.path.to_owned(),
        })
    }

    fn judge(&self, taken: rusqlite::Result<(Vec<u8>, bool)>) -> Result<Vec<u8>, Error> {
        let (image, is_of_kind) = taken.map_err(|error| match damage(&error) {
            Some(reason) => Error::BadCopy {
                path: self.path.to_owned(),
                reason,
            },
            None => Error::sqlite("read", self.path, error),
        })?;
        match is_of_kind {
            true => Ok(image),
            false => Err(Error::WrongKind {
                path: self.path.to_owned(),
            }),
        }
    }

    fn copy_of(&self, path: &Path, flags: OpenFlags) -> rusqlite::Result<(Vec<u8>, bool)> {
        Connection::open_with_flags(path, flags).and_then(|from| self.copy(from))
    }

    fn copy(&self, mut from: Connection) -> rusqlite::Result<(Vec<u8>, bool)> {
        from.busy_timeout(PATIENCE)?;
        let _deadline = guard(&mut from, None)?;
        let from = from.transaction()?;
        let mut to = Connection::open_in_memory()?;
        let _deadline = guard(&mut to, None)?;
        chexor::register(&to)?;
        let schema = schema(&from)?;
        let mut room = LARGEST;
        for (_, name, sql) in schema.iter().filter(|(kind, ..)| kind == "table") {
            create(&to, sql)?;
            match name.eq_ignore_ascii_case(self.table_of_rows()) {
                true => self.copy_wanted(&from, &to, name, &mut room)?,
                false => copy_rows(&from, &to, name, "", None, &mut room)?,
            }
        }
        for (_, _, sql) in schema.iter().filter(|(kind, ..)| kind != "table") {
            create(&to, sql)?;
        }
        let has = |wanted: &str| schema.iter().any(|(kind, name, _)| kind == "table" && name == wanted);
        let about = match self.kind {
            Kind::Account => has("account_stat"),
            Kind::Container => has("container_info") || has("container_stat"),
        };
        let is_of_kind = about && has(self.table_of_rows());
        let image = if is_of_kind {
            to.serialize(MAIN_DB)?.to_vec()
        } else {
            vec![]
        };
        Ok((image, is_of_kind))
    }

    fn table_of_rows(&self) -> &'static str {
        match self.kind {
            Kind::Account => "container",
            Kind::Container => "object",
        }
    }

    fn copy_wanted(&self, from: &Connection, to: &Connection, table: &str, room: &mut usize) -> rusqlite::Result<()> {
        let wanted = " WHERE deleted IN (0, 1) AND name = ?";
        let mut names = self.names.iter();
        names.try_for_each(|name| copy_rows(from, to, table, wanted, Some(name), room))
    }
}

/// What makes the schema, SQLite's own tables and other modules' aside: kind, name, statement.
fn schema(from: &Connection) -> rusqlite::Result<Vec<(String, String, String)>> {
    let mut statement = from.prepare(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
         AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY rowid",
    )?;
    let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    found.collect()
}

/// Runs the first statement of what a foreign schema says, as SQLite itself does, and no other.
fn create(to: &Connection, sql: &str) -> rusqlite::Result<()> {
    to.prepare(sql)?.execute([]).map(|_| ())
}

fn copy_rows(
    from: &Connection,
    to: &Connection,
    table: &str,
    wanted: &str,
    name: Option<&String>,
    room: &mut usize,
) -> rusqlite::Result<()> {
    let table = table.replace('"', "\"\"");
    let mut read = from.prepare_cached(&format!("SELECT * FROM \"{table}\"{wanted}"))?;
    let places = vec!["?"; read.column_count()].join(", ");
    let mut write = to.prepare_cached(&format!("INSERT INTO \"{table}\" VALUES ({places})"))?;
    let columns = read.column_count();
    let mut rows = read.query(params_from_iter(name))?;
    while let Some(row) = rows.next()? {
        let mut values = Vec::with_capacity(columns);
        for place in 0..columns {
            let value = row.get_ref(place)?;
            let cost = VALUE_COST + length(value);
            *room = room.checked_sub(cost).ok_or_else(too_much)?;
            values.push(Value::try_from(value)?);
        }
        write.execute(params_from_iter(values))?;
    }
    Ok(())
}

fn length(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        _ => 0,
    }
}

fn too_much() -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure("it holds more than any database of an account or a container".into())
}

/// A value as text, whatever it is.
pub(super) fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}
