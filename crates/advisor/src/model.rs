//! What a cluster of given hardware bears, and how long requests take in it.
//!
//! Comes in: hardware ([`cluster`]), what is asked ([`workload`]), what the software costs for a request ([`rates`]).
//! Goes out: the most that each resource bears, the bottleneck, mean and 99th percentile, each with a band, and which
//! parameters lie outside of what was measured. docs/advise.md has the equations; names here are those of the page.
//! Always holds: nothing here knows prices, files or catalogues.
//!
//! | question | file |
//! |---|---|
//! | figures with bands | `model/estimate.rs` |
//! | requests, sizes, replicas and erasure codes | `model/workload.rs` |
//! | hardware | `model/cluster.rs` |
//! | costs of the software, their sources, extrapolation | `model/rates.rs`, `model/rates.toml` |
//! | bottleneck analysis | `model/limits.rs` |
//! | queues and order statistics | `model/queue.rs` |
//! | mean and p99 | `model/latency.rs` |

pub mod cluster;
pub mod estimate;
pub mod latency;
pub mod limits;
pub mod queue;
pub mod rates;
pub mod workload;

#[cfg(test)]
pub(crate) mod tests;
