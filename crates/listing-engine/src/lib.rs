//! Account and container databases: Swift's SQLite files behind one broker with two schemas.
//!
//! Comes in: rows ([`Row`]), timestamps, metadata, questions. Goes out: [`Info`], listings, errors
//! that name the file and say whose fault they are.
//!
//! Always holds:
//! - an acknowledged row is on stable storage, in the pending file or in the database, and every
//!   later read sees it;
//! - of two rows the newest wins, whatever the order of arrival, deletes included (`merge.rs`);
//! - files, locks and pending records are OpenStack Swift's: its services may work on the same
//!   databases, at other times or at the same time;
//! - a damaged database goes to `quarantined/` and is reported by name.
//!
//! Deliberately absent: HTTP, async, clocks, randomness (callers bring timestamps and identities),
//! rings, who talks to whom, and sharding beyond reading the newest file of a sharded one and
//! carrying shard ranges along.
//!
//! | question | file |
//! |---|---|
//! | where is it, and which are there | `location.rs`, `walk.rs` |
//! | what happens to a row that arrives | `broker.rs` → `queue.rs` → `pending.rs` → `absorb.rs` → `merge.rs` |
//! | how do two rows merge | `merge.rs`, `composite.rs`, `content_type.rs` |
//! | what does it say about itself | `info.rs`, `metadata.rs` |
//! | how is it looked at without being changed | `look/` |
//! | create, delete, recreate | `create.rs`, `lifecycle.rs` |
//! | listings | `listing.rs` (database) and `query.rs` (what is asked) |
//! | what replicas tell each other | `wire.rs`; `replication.rs`, `sync_points.rs`, `shard_ranges.rs` |
//! | whose policy is right | `policy_choice.rs` |
//! | whole databases that come or go | `copies.rs`, `remove.rs` |
//! | which containers are synced elsewhere | `sync_links.rs` |
//! | what is forgotten | `reclaim.rs` |
//! | which schemas a database may have | `known_schemas.rs`, `schema/*.sql` |
//! | older schemas | `migrate.rs` |
//! | how long a statement may take | `deadline.rs` |
//! | syncs, renames, locks, quarantine | `files.rs`, `files/removal.rs` |
//! | file systems that SQLite cannot open | `image.rs` |
//!
//! Bytes drawn in `docs/formats/listing-database.md`; tests against OpenStack's broker in `tests/`.

mod absorb;
mod audit;
mod broker;
mod brokers;
mod chexor;
mod columns;
mod composite;
mod connection;
mod content_type;
mod copies;
mod create;
mod deadline;
mod error;
mod files;
mod image;
mod info;
mod known_schemas;
mod lifecycle;
mod listing;
mod location;
mod look;
mod merge;
mod metadata;
mod migrate;
pub mod pending;
mod policy_choice;
mod query;
mod queue;
mod reclaim;
mod remove;
mod replication;
mod row;
mod shard_ranges;
mod sync_links;
mod sync_points;
mod walk;
pub mod wire;

pub use audit::Audit;
pub use broker::Broker;
pub use brokers::Brokers;
pub use chexor::chexor;
pub use content_type::listed as listed_content_type;
pub use copies::{Arriving, CopyIdentity, Snapshot, adopt};
pub use create::{NewDatabase, sweep, sweep_copies, sweep_forgotten};
pub use error::{Error, MetadataSyntaxError};
pub use files::DeviceRoot;
pub use info::{Info, PolicyStat, is_sharded};
pub use listing::{ContainerEntry, Entry, ObjectEntry};
pub use location::{Kind, Location};
pub use look::{SyncNote, Waiting, complaint_about};
pub use metadata::{Metadata, MetadataItem};
pub use policy_choice::better_policy;
pub use query::{Deleted, ListQuery};
pub use replication::ReplicationInfo;
pub use row::{ContainerRow, DELETED_CONTENT_TYPE, DELETED_ETAG, ObjectRow, Row};
pub use shard_ranges::{SHARDS, ShardRange};
pub use sync_points::{Direction, SyncPoint};
