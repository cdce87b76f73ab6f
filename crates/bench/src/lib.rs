//! Loads an object store as a workload says, and says how the store bore it.
//!
//! Comes in: a [`Workload`](workload::Workload), read from COSBench's XML or this program's own format, and the
//! addresses of a store that speaks Swift or S3. Goes out: figures, in a terminal, as JSON and in COSBench's files.
//! Always holds: what is reported was measured, with what went wrong beside it; a request counts in the interval in
//! which it ended, and in a work only when that lies between ramp-up and ramp-down; in an open loop a request's time
//! begins when it was due, so that a store that stalls cannot hide it by being asked less; containers that no run of
//! this program has made are neither written to nor deleted.
//! Deliberately absent: anything of Martlet's servers. Any store is asked over its public API.
//!
//! | question | file |
//! |---|---|
//! | what is to be done | `workload.rs`, `workload/` |
//! | which requests that makes, for which store | `store.rs`, `store/` |
//! | who sends them, and when | `load.rs`, `load/` |
//! | what is counted | `figures.rs` |
//! | how far it is, while it runs | `progress.rs` |
//! | a record of every operation | `record.rs`, `record/` |
//! | replay of an access log | `replay.rs`, `replay/` |
//! | how it is reported | `report.rs`, `report/` |
//! | the command line | `arguments.rs`, `command.rs` |
//! | one run, from workload to report | `benchmark.rs`, `stage_runner.rs` |
//! | a load by several machines | `drivers.rs`, `drivers/` |
//! | commands at set times, figures of servers | `observe.rs`, `observe/` |
//! | the highest rate that a store bears | `rate_search.rs` |
//! | one workload with several sizes and numbers of workers | `sweep.rs` |
//! | swift-bench's command line and output | `swift_bench.rs`, `swift_bench/` |

pub mod arguments;
pub mod benchmark;
pub mod command;
pub mod content;
pub mod drivers;
pub mod figures;
pub mod load;
pub mod observe;
pub mod progress;
pub mod rate_search;
pub mod record;
pub mod replay;
pub mod report;
pub mod stage_runner;
pub mod store;
pub mod sweep;
pub mod swift_bench;
pub mod workload;
