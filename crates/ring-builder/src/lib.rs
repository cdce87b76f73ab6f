//! The operator's ring commands: the ring builder, OpenStack's commands and advice beyond them.
//!
//! Comes in: the words of a command line, a [`world::World`], the standard streams. Goes out: builder and ring
//! files, text in OpenStack's form, an exit status ([`CommandStatus`]).
//!
//! What always holds: OpenStack's program and this one read each other's files and can take turns; a command that
//! fails leaves the files as they were; nothing an operator types or a file holds makes it panic.
//!
//! Deliberately absent: how partitions are placed (`placement`), how files become durable (`durable-fs`), the
//! environment.
//!
//! | question | file |
//! |---|---|
//! | the commands, and how one is run | `command/` |
//! | one ring of several | `composer/` |
//! | how a command is written | `usage.rs`, `options.rs`, `device_options.rs` |
//! | options as Python's optparse reads them, for every OpenStack-style command | `optparse.rs` |
//! | the values that name devices | `add_value.rs`, `search_value.rs`, `change_value.rs`, `address.rs`, `number.rs` |
//! | how devices are shown | `tables.rs`, `describe.rs` |
//! | which files, locks, backups | `files.rs` |
//! | whether there is memory for it | `memory.rs` |
//! | advice: plan, ramp, simulate, pictures | `advice/` |

mod add_value;
mod address;
mod advice;
mod change_value;
mod command;
mod composer;
mod describe;
mod device_options;
mod files;
mod memory;
mod number;
mod options;
pub mod optparse;
mod search_value;
mod tables;
mod terminal;
mod usage;

pub use advice::size;
pub use command::Invocation;
pub use composer::{Composing, rewritten_composite};
pub use terminal::{CommandStatus, Terminal};
