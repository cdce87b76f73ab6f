//! The gateway (Swift's proxy server): accept → recognise → features → verb (authorise → fan out) → reply.
//!
//! Comes in: clients' HTTP requests. Goes out: answers made of storage servers' replies.
//! Always holds: bodies stream in bounded buffers and are never spooled; a write is acknowledged
//! when a quorum of replicas has it on stable storage; a read fails over to the next replica even in
//! the middle of its body, and never delivers bytes known to be wrong.
//! Deliberately absent: data files and databases (it only speaks to storage services), XML, tokens
//! and the like (features and identity), reading configuration files (the binary converts).
//!
//! | question | file |
//! |---|---|
//! | how does a request travel | `gateway.rs`, `recognise.rs` |
//! | who may | `authorise.rs` |
//! | which nodes, in which order | `rings.rs`, `route.rs`, `routing.rs`, `candidates.rs` |
//! | which nodes are left alone | `suppression.rs`, `silence.rs` |
//! | what do all requests share | `shared.rs` |
//! | which time does a write get, and what if storage has a newer one | `write_clock.rs`, `write_order.rs` |
//! | what if this machine's clock is wrong | `server_clocks.rs`, `clock_question.rs` |
//! | how is an object locked for a conditional write | `write_lock.rs` |
//! | how is one node asked | `backend.rs` |
//! | writes to all replicas | `fan_out.rs`, `put_object.rs`, `opening.rs`, `fan.rs` |
//! | reads from one of them | `read.rs`, `read_attempts.rs`, `resume.rs`, `multi_range.rs` |
//! | listings that are held whole | `listing.rs` |
//! | the verbs | `account.rs`, `container.rs`, `object.rs`; where an object lives: `located.rs` |
//! | what is known of accounts and containers | `info.rs`, `info_cache.rs`, `info_json.rs` |
//! | what clients must not send | `constraints.rs`, `content_type.rs`, `expiry.rs` |

mod account;
mod authorise;
mod backend;
mod candidates;
mod clock_question;
mod constraints;
mod container;
mod content_type;
mod expiring_delete;
mod expiry;
mod fan;
mod fan_out;
pub mod gateway;
mod info;
mod info_cache;
mod info_json;
mod listing;
mod located;
mod multi_range;
pub mod nodes;
mod object;
mod opening;
pub mod options;
mod put_object;
mod read;
mod read_attempts;
mod recognise;
mod resume;
pub mod rings;
mod route;
mod routing;
mod server_clocks;
mod shared;
mod silence;
mod suppression;
mod timings;
mod upload_body;
mod write_clock;
mod write_lock;
mod write_order;

pub use gateway::{CoreVerbs, Gateway};
pub use options::GatewayOptions;
pub use rings::{LiveRing, Rings};
pub use shared::Shared;
pub use write_clock::ClockSkewMetrics;
