//! Many operations in one request: deleting a list of things, unpacking an archive.
//!
//! | question | file |
//! |---|---|
//! | deleting many things, a few at a time | `delete.rs` |
//! | an answer that begins before it is known | `heartbeat.rs` |
//! | the report that such a request ends with | `../bulk_reply.rs` |
//!
//! Large objects use all three.

pub mod delete;
pub mod heartbeat;
