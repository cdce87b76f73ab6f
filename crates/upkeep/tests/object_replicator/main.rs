//! The object-replicator, among real devices and an object server in this process.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod bad_peers;
#[path = "../common/mod.rs"]
mod common;
mod growing_rings;
mod handoffs;
mod hung_drives;
mod lone_posts;
mod primaries;
mod site;
