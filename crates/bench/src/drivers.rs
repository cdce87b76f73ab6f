//! Several machines load one store together: a controller (`martlet bench run --drivers …`) and drivers
//! (`martlet bench driver`).
//!
//! The controller reads the workload and sends it to the drivers, which open the store and load it. Workers of each
//! work are divided among the drivers; each stage begins at one moment on all of them; their figures come back as
//! counts and become one report.
//! Always holds: both ends prove to each other that they share a secret before anything is said or done; a driver
//! serves one controller at a time.
//! Deliberately absent: starting drivers on other machines, which is the operator's (systemd, Ansible, ssh).
//!
//! | question | file |
//! |---|---|
//! | which drivers a run has | `addresses.rs` |
//! | how both ends prove themselves | `secret.rs`, `greeting.rs` |
//! | how messages travel, and when an end is gone | `channel.rs` |
//! | what is said | `message.rs`, `replay_pieces.rs` |
//! | the controller: stages, losses, figures | `fleet.rs`, `clocks.rs`, `stage_part.rs` |
//! | the driver: who is served, and what it does | `serve.rs`, `session.rs`, `shared.rs` |

pub mod addresses;
mod channel;
mod clocks;
pub mod fleet;
pub mod greeting;
pub mod message;
mod replay_pieces;
pub mod secret;
pub mod serve;
mod session;
mod shared;
mod stage_part;
