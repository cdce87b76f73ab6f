//! What a database says about itself: [`Info`], counters per policy, whether it is deleted or empty.
//!
//! Always holds: every acknowledged row is counted; a container whose shards list objects is not deleted.

use crate::columns::{self, number, policy};
use crate::connection::Database;
use crate::error::DatabaseFailure;
use crate::shard_ranges::{self, SHARDS};
use crate::{Broker, Error, Kind};
use rusqlite::Connection;
use vocabulary::{PolicyIndex, Timestamp};

/// The row of `container_stat` or `account_stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// The account.
    pub account: String,
    /// The container, for container databases.
    pub container: Option<String>,
    /// When this replica was made.
    pub created_at: Timestamp,
    /// The last creation.
    pub put_timestamp: Timestamp,
    /// The last deletion; [`Timestamp::ZERO`] for never.
    pub delete_timestamp: Timestamp,
    /// When it last came into or out of being.
    pub status_changed_at: Timestamp,
    /// `DELETED` or empty.
    pub status: String,
    /// Containers, for accounts.
    pub container_count: u64,
    /// Objects: of the container's own policy, or of all the account's containers.
    pub object_count: u64,
    /// Their bytes.
    pub bytes_used: u64,
    /// XOR over all rows; see [`crate::chexor`].
    pub hash: String,
    /// The identity of this replica.
    pub id: String,
    /// The container's policy.
    pub policy: PolicyIndex,
    /// What was last reported to the account.
    pub reported_put_timestamp: Timestamp,
    /// What was last reported to the account.
    pub reported_delete_timestamp: Timestamp,
    /// What was last reported to the account.
    pub reported_object_count: u64,
    /// What was last reported to the account.
    pub reported_bytes_used: u64,
    /// How far container-sync has got, for objects this node is responsible for.
    pub sync_point1: i64,
    /// How far container-sync has got, for all objects.
    pub sync_point2: i64,
}

impl Info {
    /// Deleted, and not recreated or refilled since.
    pub fn is_deleted(&self) -> bool {
        let entries = match self.container {
            Some(_) => self.object_count,
            None if self.status == DELETED => return true,
            None => self.container_count,
        };
        entries == 0 && self.delete_timestamp > self.put_timestamp
    }

    /// Of an account: deleted by a client, and left to the reaper with what it has. A server that was away then learns
    /// the time by replication, and not the status.
    pub fn is_marked_deleted(&self) -> bool {
        self.status == DELETED || self.delete_timestamp > self.put_timestamp
    }
}

/// The status of an account that a client has deleted.
const DELETED: &str = "DELETED";

/// What a database holds under one policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyStat {
    /// The policy.
    pub policy: PolicyIndex,
    /// Containers, for accounts.
    pub container_count: u64,
    /// Objects.
    pub object_count: u64,
    /// Their bytes.
    pub bytes_used: u64,
}

const CONTAINER: &str =
    "SELECT account, container, created_at, put_timestamp, delete_timestamp, status_changed_at, status,
    0, object_count, bytes_used, hash, id, storage_policy_index, reported_put_timestamp, reported_delete_timestamp,
    reported_object_count, reported_bytes_used, x_container_sync_point1, x_container_sync_point2
    FROM container_stat";

const ACCOUNT: &str = "SELECT account, NULL, created_at, put_timestamp, delete_timestamp, status_changed_at, status,
    container_count, object_count, bytes_used, hash, id, 0, '0', '0', 0, 0, -1, -1
    FROM account_stat";

impl Broker {
    /// The whole.
    pub fn info(&self) -> Result<Info, Error> {
        let kind = self.location().kind();
        self.with_merged(|database| database.read("read", |c| read_info(kind, c)))
    }

    /// The same with what a container lists elsewhere: while it is being sharded what its database of before counts,
    /// then what its shards have reported, as OpenStack's brokers have it. And its [`Self::listing_state`].
    pub fn whole_info(&self) -> Result<(Info, &'static str), Error> {
        let (kind, plain) = (self.location().kind(), self.location().db_file());
        let (mut info, is_listed_here) = self.with_merged(|database| {
            let is_plain = database.path() == plain;
            database.read("read", |c| {
                Ok((read_info(kind, c)?, is_plain && !shard_ranges::are_in_use(kind, c)?))
            })
        })?;
        if is_listed_here {
            return Ok((info, "unsharded"));
        }
        let state = self.listing_state()?;
        let elsewhere = match state {
            "sharded" if is_root(&info) => Some(self.shard_usage()?),
            "sharding" => self.retiring_usage()?,
            _ => None,
        };
        if let Some((objects, bytes)) = elsewhere {
            (info.object_count, info.bytes_used) = (objects, bytes);
        }
        Ok((info, state))
    }

    /// What the database of before counts, if it is still there.
    fn retiring_usage(&self) -> Result<Option<(u64, u64)>, Error> {
        let location = self.location();
        if !location.disk().exists(&location.db_file())? {
            return Ok(None);
        }
        let retiring = Database::open_to_read(location.disk(), location.kind(), &location.db_file());
        let read = retiring.and_then(|database| database.read("read", |c| read_info(location.kind(), c)));
        match read {
            Ok(info) => Ok(Some((info.object_count, info.bytes_used))),
            Err(DatabaseFailure::Error(error)) => Err(error),
            Err(DatabaseFailure::Damaged(reason) | DatabaseFailure::Malformed(reason)) => Err(Error::BadCopy {
                path: location.db_file(),
                reason,
            }),
        }
    }

    /// The counters of every policy that was ever used here, by index.
    pub fn policy_stats(&self) -> Result<Vec<PolicyStat>, Error> {
        let sql = match self.location().kind() {
            Kind::Account => {
                "SELECT storage_policy_index, container_count, object_count, bytes_used FROM policy_stat
                 ORDER BY storage_policy_index"
            }
            Kind::Container => {
                "SELECT storage_policy_index, 0, object_count, bytes_used FROM policy_stat
                 ORDER BY storage_policy_index"
            }
        };
        self.with_merged(|database| {
            database.read("read", |c| {
                let mut statement = c.prepare_cached(sql)?;
                let stats = statement.query_map([], |row| {
                    let Some(policy) = policy(row, 0)? else { return Ok(None) };
                    Ok(Some(PolicyStat {
                        policy,
                        container_count: number(row, 1)?,
                        object_count: number(row, 2)?,
                        bytes_used: number(row, 3)?,
                    }))
                })?;
                stats.filter_map(Result::transpose).collect()
            })
        })
    }

    /// Nothing is listed here, under any policy.
    pub fn is_empty(&self) -> Result<bool, Error> {
        if self.location().kind() == Kind::Account {
            return Ok(self.info()?.container_count == 0);
        }
        Ok(self.policy_stats()?.iter().all(|stat| stat.object_count == 0))
    }

    /// Deleted, or not there at all.
    pub fn is_deleted(&self) -> Result<bool, Error> {
        let kind = self.location().kind();
        let judge = || {
            let before = self.with(|database| database.read("read", |c| read_info(kind, c)))?;
            // Pending rows change counters only: they matter when a later deletion leaves it to them.
            match before.delete_timestamp > before.put_timestamp {
                true => Ok(self.whole_info()?.0.is_deleted()),
                false => Ok(before.is_deleted()),
            }
        };
        match judge() {
            Err(Error::NotFound { .. }) => Ok(true),
            other => other,
        }
    }

    /// The name of the file that is in use.
    pub fn file_name(&self) -> Result<String, Error> {
        self.with(|database| {
            let name = database.path().file_name();
            Ok(name.unwrap_or_default().to_string_lossy().into_owned())
        })
    }

    /// How far OpenStack's sharder has got with this container: `unsharded`, `sharding`, `sharded`, or `collapsed` when
    /// all its objects are its own again.
    pub fn sharding_state(&self) -> Result<&'static str, Error> {
        let plain = self.location().db_file();
        let open = self.with(|database| Ok(database.path().to_owned()))?;
        Ok(match open == plain {
            true => "unsharded",
            false if self.location().disk().exists(&plain)? => "sharding",
            false if self.has_shards()? => "sharded",
            false => "collapsed",
        })
    }

    /// The same for who lists the container: `sharded` also where its sharder has not seen to this replica yet, which
    /// knows from others that shards are in use. Its own rows are not what the container lists.
    pub fn listing_state(&self) -> Result<&'static str, Error> {
        let state = self.sharding_state()?;
        Ok(match state == "unsharded" && self.has_shards_in_use()? {
            true => "sharded",
            false => state,
        })
    }
}

/// Whether shards of the container list objects, and not it itself for another one.
fn is_root(info: &Info) -> bool {
    info.container.is_some() && !info.account.starts_with(SHARDS)
}

/// Whether the objects of a container in this [state](Broker::listing_state) are listed by other containers.
pub fn is_sharded(state: &str) -> bool {
    matches!(state, "sharding" | "sharded")
}

pub(crate) fn read_info(kind: Kind, connection: &Connection) -> rusqlite::Result<Info> {
    let sql = match kind {
        Kind::Account => ACCOUNT,
        Kind::Container => CONTAINER,
    };
    connection.prepare_cached(sql)?.query_row([], |row| {
        // A database without the text of its names is damaged.
        let whose = |i| row.get::<_, String>(i);
        let text = |i| columns::text(row, i);
        let time = |i| columns::timestamp(row, i);
        Ok(Info {
            account: whose(0)?,
            container: (kind == Kind::Container).then(|| whose(1)).transpose()?,
            created_at: time(2)?,
            put_timestamp: time(3)?,
            delete_timestamp: time(4)?,
            status_changed_at: time(5)?,
            status: text(6)?,
            container_count: number(row, 7)?,
            object_count: number(row, 8)?,
            bytes_used: number(row, 9)?,
            hash: text(10)?,
            id: whose(11)?,
            policy: policy(row, 12)?.ok_or(rusqlite::Error::IntegralValueOutOfRange(12, -1))?,
            reported_put_timestamp: time(13)?,
            reported_delete_timestamp: time(14)?,
            reported_object_count: number(row, 15)?,
            reported_bytes_used: number(row, 16)?,
            sync_point1: columns::signed(row, 17)?.unwrap_or(-1),
            sync_point2: columns::signed(row, 18)?.unwrap_or(-1),
        })
    })
}
