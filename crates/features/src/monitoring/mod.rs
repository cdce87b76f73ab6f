//! What operators see: the access log, health, capabilities, recon.
//!
//! | question | file |
//! |---|---|
//! | transaction ids, panics, short bodies | `catch_errors.rs` |
//! | the access log | `proxy_logging.rs`; the line itself is `telemetry`'s |
//! | `/healthcheck` | `healthcheck.rs` |
//! | `/info` | `swift_info.rs` |
//! | `/recon/…` | `recon/` |
//! | `/endpoints/…`, for programs inside the cluster | `list_endpoints.rs` |

pub mod catch_errors;
pub mod healthcheck;
pub mod list_endpoints;
pub mod proxy_logging;
pub mod recon;
pub mod swift_info;
