//! Listings: one seek into the index per range of names, one more past each shared prefix.
//!
//! The walk steps an ordered, prepared statement and hands every entry to the caller while its
//! bytes are still SQLite's, so a listing costs no allocation per row here. Inside a shared prefix
//! it steps over a few rows and then seeks behind it: a prefix of a million names costs one seek.
//! Always holds: entries come in the byte order of names; results equal OpenStack's for every
//! combination of parameters (`tests/listing.rs`, `tests/oracle.rs`).

use crate::composite::Times;
use crate::query::{QueryPlan, Range, SeenName, end_of_prefix};
use crate::{Broker, Deleted, Error, Kind, ListQuery, columns};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, Row, ToSql};
use vocabulary::{PolicyIndex, Timestamp};

/// Rows to step over before seeking behind a shared prefix.
const STEPS_BEFORE_SEEK: u32 = 24;

/// One line of a listing, borrowed for the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry<'r, T> {
    /// Names that share this prefix, delimiter included.
    Shared(&'r str),
    /// One thing.
    Item(T),
}

/// An object in a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectEntry<'r> {
    /// Its name.
    pub name: &'r str,
    /// The newest of its data, content type and metadata, as last reported.
    pub timestamp: Timestamp,
    /// Its size in bytes.
    pub size: u64,
    /// Its content type, `swift_bytes` included.
    pub content_type: &'r str,
    /// Its entity tag as reported, parameters included.
    pub etag: &'r str,
    /// Whether it is gone; only when deleted rows were asked for.
    pub deleted: bool,
    /// The policy that keeps it.
    pub policy: PolicyIndex,
}

/// A container in a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContainerEntry<'r> {
    /// Its name.
    pub name: &'r str,
    /// How many objects it has.
    pub object_count: u64,
    /// Their bytes.
    pub bytes_used: u64,
    /// When it was last created.
    pub put_timestamp: Timestamp,
    /// Its policy.
    pub policy: PolicyIndex,
}

impl Broker {
    /// Lists a container's objects.
    pub fn list_objects(
        &self,
        query: &ListQuery,
        mut each: impl FnMut(Entry<'_, ObjectEntry<'_>>),
    ) -> Result<(), Error> {
        self.container_only()?;
        let what = "SELECT name, created_at, size, content_type, etag, deleted, storage_policy_index FROM object";
        let sql = statement(what, query, query.policy);
        self.with_merged(|database| {
            database.read("list", |connection| {
                walk(connection, &sql, query, &mut |entry| {
                    match entry {
                        Entry::Shared(prefix) => each(Entry::Shared(prefix)),
                        Entry::Item((name, row)) => each(Entry::Item(object(name, row)?)),
                    }
                    Ok(())
                })
            })
        })
    }

    /// Lists an account's containers. The policy of the query is ignored.
    pub fn list_containers(
        &self,
        query: &ListQuery,
        mut each: impl FnMut(Entry<'_, ContainerEntry<'_>>),
    ) -> Result<(), Error> {
        if self.location().kind() != Kind::Account {
            return Err(Error::WrongKind {
                path: self.location().db_file(),
            });
        }
        let what = "SELECT name, object_count, bytes_used, put_timestamp, storage_policy_index FROM container";
        let sql = statement(what, query, None);
        self.with_merged(|database| {
            database.read("list", |connection| {
                walk(connection, &sql, query, &mut |entry| {
                    match entry {
                        Entry::Shared(prefix) => each(Entry::Shared(prefix)),
                        Entry::Item((name, row)) => each(Entry::Item(container(name, row)?)),
                    }
                    Ok(())
                })
            })
        })
    }
}

fn statement(what: &str, query: &ListQuery, policy: Option<PolicyIndex>) -> String {
    let deleted = match query.deleted {
        Deleted::Hide => "deleted = 0",
        Deleted::Show => "deleted IN (0, 1)",
    };
    let policy = policy.map_or(String::new(), |p| format!(" AND storage_policy_index = {p}"));
    let order = if query.reverse { " DESC" } else { "" };
    format!("{what} WHERE {deleted} AND name >= ?1 AND name < ?2{policy} ORDER BY name{order}")
}

/// The bytes of a bound, which need not be whole characters.
struct Bound<'b>(&'b [u8]);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

type Each<'e> = dyn FnMut(Entry<'_, (&str, &Row<'_>)>) -> rusqlite::Result<()> + 'e;

fn walk(connection: &Connection, sql: &str, query: &ListQuery, each: &mut Each<'_>) -> rusqlite::Result<()> {
    let plan = query.plan();
    let mut statement = connection.prepare_cached(sql)?;
    let mut range = plan.range.clone();
    let mut left = query.limit;
    while left > 0 && range.low < range.high {
        match stretch(&mut statement, &plan, &range, &mut left, each)? {
            Some(behind) if query.reverse => range.high = behind.into_bytes(),
            Some(behind) => range.low = end_of_prefix(behind.as_bytes()),
            None => break,
        }
    }
    Ok(())
}

/// Lists from the beginning of `range` until the limit, its end, or a shared prefix too long to step over.
fn stretch(
    statement: &mut CachedStatement<'_>,
    plan: &QueryPlan,
    range: &Range,
    left: &mut usize,
    each: &mut Each<'_>,
) -> rusqlite::Result<Option<String>> {
    let mut rows = statement.query([Bound(&range.low), Bound(&range.high)])?;
    let mut inside: Option<String> = None;
    let mut steps = 0;
    while *left > 0
        && let Some(row) = rows.next()?
    {
        let name = row.get_ref(0)?.as_str().unwrap_or_default();
        if let Some(prefix) = inside.as_ref().filter(|prefix| name.starts_with(prefix.as_str())) {
            steps += 1;
            if steps > STEPS_BEFORE_SEEK {
                return Ok(Some(prefix.clone()));
            }
            continue;
        }
        match plan.see(name) {
            SeenName::Itself => {}
            SeenName::Name => {
                each(Entry::Item((name, row)))?;
                *left -= 1;
            }
            SeenName::Shared { prefix, listed } => {
                if listed {
                    each(Entry::Shared(prefix))?;
                    *left -= 1;
                }
                steps = 0;
                inside = Some(prefix.to_owned());
            }
        }
    }
    Ok(None)
}

fn object<'r>(name: &'r str, row: &'r Row<'_>) -> rusqlite::Result<ObjectEntry<'r>> {
    let text = |i| row.get_ref(i).map(|column| column.as_str().unwrap_or_default());
    Ok(ObjectEntry {
        name,
        timestamp: Times::decode(text(1)?).meta,
        size: columns::number(row, 2)?,
        content_type: text(3)?,
        etag: text(4)?,
        deleted: columns::flag(row, 5)?,
        policy: columns::policy(row, 6)?.unwrap_or_default(),
    })
}

fn container<'r>(name: &'r str, row: &'r Row<'_>) -> rusqlite::Result<ContainerEntry<'r>> {
    Ok(ContainerEntry {
        name,
        object_count: columns::number(row, 1)?,
        bytes_used: columns::number(row, 2)?,
        put_timestamp: columns::timestamp(row, 3)?,
        policy: columns::policy(row, 4)?.unwrap_or_default(),
    })
}
