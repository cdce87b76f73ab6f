//! Where things belong: ring files, lookups, handoffs and the ring builder. Pure.
//!
//! Comes in: the bytes of a `*.ring.gz` or `*.builder` file. Goes out: [`Ring`], which answers
//! which devices hold a partition and who stands in for them, in exactly OpenStack Swift's order.
//!
//! What always holds: a [`RingData`] that exists names only devices it has; a lookup never fails
//! and never panics; no input makes it reserve memory that the input does not pay for.
//!
//! Deliberately absent: files, clocks, randomness (the builder takes a seed and the time), and how
//! names are hashed (`vocabulary`).
//!
//! | question | file |
//! |---|---|
//! | who holds a partition | `ring.rs` |
//! | who stands in | `handoffs.rs` |
//! | what a ring file holds, and its two formats | `ring_data.rs`; `ring_file.rs`, `format_v1.rs`, `format_v2.rs` |
//! | one ring of several | `composite.rs` |
//! | how a new ring is made | `builder/` |
//!
//! Bytes drawn in `docs/formats/ring.md`; golden files by OpenStack Swift in `tests/golden`.

pub mod builder;
mod composite;
mod device;
mod error;
mod format_v1;
mod format_v2;
mod gzip;
mod handoffs;
mod ring;
mod ring_data;
mod ring_file;
mod table;

pub use builder::{Change, DispersionReport, Rebalanced, RingBuilder, TierRow};
pub use device::Device;
pub use error::{BuilderError, InvalidTable, RingError};
pub use handoffs::Handoffs;
pub use ring::Ring;
pub use ring_data::RingData;
