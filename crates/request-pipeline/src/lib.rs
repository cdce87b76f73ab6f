//! What the gateway and Swift's features share: a client's request, its reply, and the pipeline between them.
//!
//! A [`Feature`] sees a [`ClientRequest`] on its way in and the response on its way out, may answer by itself,
//! change either, or send further requests down the rest of the pipeline. The gateway builds the [`Pipeline`] and
//! ends it with its [`Core`].
//! Always holds: a request runs through the features in the order of the pipeline.
//! Deliberately absent: the features themselves (crate `features`); how accounts and containers are looked up, which
//! the gateway provides as [`InfoSource`]; rings, nodes, disks.
//!
//! | question | file |
//! |---|---|
//! | what is known of a request | `request.rs`; for its line in the access log: `access_notes.rs` |
//! | how does a request run through the features | `pipeline.rs` |
//! | what features request by themselves | `subrequest.rs` |
//! | status pages and short answers | `reply.rs` |
//! | what is known of accounts and containers | `info.rs`; the cache that gateways share: `shared_cache.rs` |
//! | writing on a condition | `write_lock.rs` |
//! | what operation writes an object, and when it was written | `write_origin.rs` |
//! | S3's object lock | `object_lock.rs` |
//! | keys of clients (S3's SSE-C) | `customer_key.rs` |
//! | forms of browsers | `multipart.rs` |
//! | counting and ending bodies | `watched.rs` |
//! | memory for bodies that are read as a whole | `memory_room.rs` |
//! | limits on user metadata | `constraints.rs` |
//! | requests from pages of other origins | `cors.rs` |
//!
//! Tests: beside the code.

mod access_notes;
pub mod constraints;
pub mod cors;
mod customer_key;
mod info;
mod memory_room;
pub mod multipart;
mod object_lock;
mod pipeline;
pub mod reply;
mod request;
mod shared_cache;
mod subrequest;
pub mod watched;
mod write_lock;
mod write_origin;

pub use access_notes::{AccessFacts, AccessNotes};
pub use customer_key::{
    CUSTOMER_KEY_BYTES, CopySourceKey, CustomerKey, CustomerKeyRefusal, KeepsSealed, customer_key_proof,
};
pub use info::{AccountInfo, ContainerInfo, EntityLocation, InfoSource, PolicyUse};
pub use memory_room::{MemoryRoom, MemorySeat, NoRoom};
pub use object_lock::{BypassesGovernance, object_lock_in, set_object_lock};
pub use peer::Response;
pub use pipeline::{Core, Feature, Next, Pipeline};
pub use request::{Authorizer, ClientRequest, Footers, Request, is_true};
pub use shared_cache::SharedCache;
pub use subrequest::set_header;
pub use write_lock::{LockName, LockRefusal, ObjectStanding, WriteLock, WriteLocks};
pub use write_origin::{FillsVacancy, StoredAgain, WriteOrigin, WriteTimeSlot};
