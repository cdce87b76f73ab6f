//! What Martlet reports to its operators: logs, transaction ids, the line about each request.
//!
//! Comes in: facts about a request that is over; events. Goes out: lines on standard error, and the
//! ids that tie the lines of one request together across servers.
//! Always holds: lines are OpenStack Swift's, so that its operators' tools read them; tokens and
//! signatures are cut short in them; writing a line allocates nothing but the line.
//! Deliberately absent: syslog, deciding what is worth logging or counting.
//!
//! | question | file |
//! |---|---|
//! | where do events go | `log.rs`, as JSON `log_json.rs`; who writes them `log_output.rs` |
//! | the proxy's line per request | `access.rs`, `access_format.rs`, `template.rs` |
//! | metrics for StatsD | `statsd.rs` |
//! | a storage server's line per request | `storage.rs` |
//! | ids of requests | `transaction.rs` |
//! | figures for Prometheus | `metrics/` |
//!
//! Tests: beside the code, and `tests/` against OpenStack's own lines.

pub mod access;
mod access_format;
mod fields;
pub mod log;
pub mod log_json;
pub mod log_output;
pub mod metrics;
mod own_name;
pub mod statsd;
pub mod storage;
pub mod template;
pub mod transaction;

pub use access::AccessLine;
pub use statsd::Statsd;
pub use storage::StorageLine;
pub use transaction::transaction_id;
