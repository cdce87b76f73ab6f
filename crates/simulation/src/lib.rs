//! A cluster on one thread from one seed.
//!
//! Gateways, object servers, their engines and upkeep run as they are; clock, chance, the way between nodes,
//! disks and their workers are simulated, so that a seed decides everything and a run can be repeated to the
//! last step. A [`plan::Plan`] drawn from the seed has clients write to few names through different gateways
//! while nodes lose their power at any step of a write, drives fail, fill up, hang, lie, are pulled and
//! replaced, ways are cut, answers get lost, clocks are off. Then all is well again and everything is looked
//! at ([`run::run`]).
//! Always holds: no thread, no real clock, file or socket. A broken promise comes with its seed.
//! Deliberately absent: HTTP between nodes (calls travel as calls, see `net.rs`), SQLite (accounts and
//! containers are played), jobs that meet on one drive in the middle of each other.
//!
//! | question | file |
//! |---|---|
//! | what happens in a run, and when | `plan.rs` |
//! | how a run goes, from seed to outcome | `run.rs` |
//! | what may be seen of what was written | `history.rs` |
//! | what is looked at in the end | `inspect.rs` |
//! | who asks, and what a client was told | `client.rs` |
//! | what a node is made of | `cluster.rs`, `containers.rs` |
//! | tasks, time, clocks | `executor.rs`, `clock.rs` |
//! | what a loss of power leaves of a drive | `disk/drive.rs` |
//! | what becomes of a message | `net.rs` |
//! | work that blocks | `pool.rs` |
//! | does it find anything? | `bugs.rs` |
//!
//! Tests: beside the code; `tests/seeds.rs` runs thousands of seeds and the planted bugs. One run in words:
//! `make simulate SEED=17`.

pub mod bugs;
mod client;
pub mod clock;
pub mod cluster;
pub mod containers;
pub mod dice;
pub mod disk;
pub mod executor;
pub mod history;
mod inspect;
pub mod net;
pub mod plan;
pub mod pool;
pub mod run;
pub mod trace;
