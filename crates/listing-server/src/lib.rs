//! The account and container servers: the verbs of Swift's backend protocol on the listings of one node.
//!
//! Comes in: a [`peer::Call`] for an account, a container, or a row of one, by direct call or over
//! HTTP. Goes out: the answer OpenStack Swift 2.38 would give. One [`ListingServer`] serves one of the
//! two kinds; both kinds are the same server with different verbs.
//!
//! Always holds: SQLite and every other disk access run on the device's own I/O workers; a row is
//! acknowledged when it is durable, and rows that arrive together share one sync; one hung device
//! costs only its own requests.
//! Deliberately absent: rings, quorums, how rows are stored (`listing-engine`), sockets (`peer`).
//! Shard ranges are carried between replicas; requests for those of a container
//! that has some are refused, and so is its deletion.
//!
//! | question | file |
//! |---|---|
//! | which verb | `service.rs`; what the verbs share: `state.rs` |
//! | what a device opens to | `devices.rs`; how it comes and goes: `storage-shell` |
//! | what a request says | `request.rs` |
//! | containers: PUT, POST, DELETE, HEAD, GET | `container.rs` |
//! | rows of a container: PUT, DELETE, UPDATE | `object_row.rs` |
//! | accounts, and their rows | `account.rs` |
//! | replicas among themselves: REPLICATE | `replicate.rs` |
//! | the account's row of a container | `account_update.rs` |
//! | what may be asked of a listing | `listing_query.rs`, `accept.rs` |
//! | what listings look like | `render.rs` |
//! | which headers stay, and how many may | `metadata.rs`, `sync_to.rs` |
//! | which refusal an engine's error becomes | `refusal.rs`; what it looks like: `storage-shell` |
//! | how long the parts of the work take, for StatsD | `timed.rs` |
//!
//! Tests: `tests/`, of which `as_openstack.rs` asks OpenStack's own servers the same questions.

mod accept;
mod account;
mod account_update;
mod container;
mod devices;
mod listing_query;
mod metadata;
mod object_row;
mod options;
mod refusal;
mod render;
mod replicate;
mod request;
mod service;
mod state;
mod sync_to;
mod timed;

pub use durable_fs::Reserve;
pub use listing_engine::Kind;
pub use options::{AllowedSyncRealms, ListingServerOptions};
pub use service::ListingServer;
