//! The object server: the verbs of Swift's backend protocol on the objects of one node.
//!
//! Comes in: a [`peer::Call`] for an object on a device, by direct call or over HTTP. Goes out: the
//! answer OpenStack Swift 2.38 would give. Listing rows go to container servers, or into the device's
//! pending records when those do not answer in time.
//! Always holds: what may wait for a disk runs on the device's own I/O workers, never on an async thread; a request
//! body is not touched before the request is accepted; nothing is acknowledged that is not durable;
//! a body that was cut short leaves nothing behind. A small PUT or GET costs one hop to the workers, a GET
//! or HEAD of what was read lately none.
//! Deliberately absent: rings, quorums, other nodes' objects, the layout on disk (`object-engine`),
//! sockets (`peer`). Erasure-coded policies answer 501.
//!
//! | question | file |
//! |---|---|
//! | which verb | `service.rs`, `verbs.rs`; what they share: `state.rs`, `answering.rs` |
//! | what a request must have before anything else happens | `request.rs` |
//! | what a device opens to | `devices.rs`; how it comes and goes: `storage-shell` |
//! | GET and HEAD: what to send | `read.rs`; how it streams: `outgoing.rs`, `pump.rs` |
//! | PUT | `put.rs`, `put_plan.rs`, `upload.rs`; the body: `incoming.rs`; footers, commits: `wrapped.rs`, `mime.rs` |
//! | POST and DELETE | `post.rs`, `delete.rs`; many DELETEs at once: `deletes.rs` |
//! | LOCK: who may write an object for the moment | `write_locks.rs` |
//! | S3's object lock: what may not go | `object_lock.rs` |
//! | which headers stay with an object | `kept.rs` |
//! | when an object expires, and the rows of the expirer's queue | `expiry.rs` |
//! | listing rows | `updates.rs`, `updates/row.rs`; what a crash leaves of them: `updates/recorded.rs` |
//! | REPLICATE and SSYNC, for other nodes' upkeep | `replicate.rs`, `ssync/`, `exchange_slots.rs` |
//! | which refusal an engine's error becomes | `refusal.rs`; what it looks like: `storage-shell` |
//!
//! Pages: `docs/journeys/put-object.md`, `docs/journeys/get-object.md`. Tests: `tests/`, of which
//! `as_openstack.rs` asks OpenStack's own object server the same questions.

mod answering;
mod batch;
mod delete;
mod deletes;
mod devices;
mod exchange_slots;
mod expiry;
mod incoming;
mod kept;
mod lock;
pub mod mime;
mod object_lock;
mod options;
mod outgoing;
mod post;
mod pump;
mod put;
mod put_plan;
mod read;
mod refusal;
mod replicate;
mod request;
mod service;
mod sink;
mod ssync;
mod state;
mod updates;
mod upload;
mod verbs;
mod wrapped;
mod write_locks;

pub use devices::DeviceSource;
pub use options::{ObjectServerOptions, ReplicationOptions};
pub use service::ObjectServer;
