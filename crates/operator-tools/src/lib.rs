//! The small programs an operator calls: OpenStack's names, flags, output and exit statuses.
//!
//! Each tool is one file or folder. It has `Arguments` (its command line, which `martlet` parses) and `run`, which does
//! the work: it is given the [`world::World`] and a [`Console`] and answers with a [`ToolStatus`].
//!
//! Always holds: what is only looked at stays as it is, byte for byte; a damaged or hostile file is a line that names
//! it and an exit status, never a crash.
//! Deliberately absent: formats (they are read by `object-engine`, `listing-engine` and `placement`), the environment.
//!
//! | tool | file |
//! |---|---|
//! | `form-signature` | `form_signature.rs` |
//! | `get-nodes` | `get_nodes.rs` |
//! | `object-info` | `object_info.rs`, `crypto_details.rs` |
//! | `config` | `config.rs` |
//! | `oldies`, `orphans` | `oldies.rs`, `orphans.rs`; what runs: `processes.rs` |
//! | `account-info`, `container-info` | `database_info.rs`, `shard_info.rs` |
//! | `recon` | `recon/` |
//! | `dispersion-populate`, `dispersion-report` | `dispersion/` |
//! | `drive-audit` | `drive_audit.rs`, `drive_audit/` |
//! | `recon-cron` | `recon_cron.rs` |
//! | `reconciler-enqueue` | `reconciler_enqueue.rs` |
//! | `cluster-ca` | `cluster_ca/` |
//! | `keys` | `keys.rs` |
//!
//! | what they share | file |
//! |---|---|
//! | where output goes, exit statuses | `console.rs` |
//! | a cluster's secrets, policies and rings | `swift_dir.rs` |
//! | where a ring says something is | `locations.rs` |
//! | foreign text on a terminal | `text.rs` |
//! | one section of a configuration | `conf_file.rs` |
//! | tokens for an account | `account_access.rs` |
//! | words on a command line | `words.rs` |
//!
//! Compared with OpenStack's programs, field by field, in `tests/operator`.

pub mod account_access;
pub mod cluster_ca;
mod conf_file;
pub mod config;
pub mod console;
mod crypto_details;
pub mod database_info;
pub mod dispersion;
pub mod drive_audit;
pub mod form_signature;
pub mod get_nodes;
pub mod keys;
mod locations;
pub mod object_info;
pub mod oldies;
pub mod orphans;
mod processes;
pub mod recon;
pub mod recon_cron;
pub mod reconciler_enqueue;
mod shard_info;
mod swift_dir;
mod text;
mod words;

pub use console::{Console, ToolStatus};

/// Heads options in `--help` that OpenStack's program of the name has not.
pub const OURS: &str = "Not in OpenStack's program";
