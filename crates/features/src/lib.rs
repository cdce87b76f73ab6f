//! Swift's features in front of the core verbs: one file each, their order one visible list.
//!
//! What a feature is, and how a request runs through them, is `request_pipeline`'s. [`registry::build`] makes the
//! features that `[pipeline:main]` names, for the gateway.
//! Always holds: what clients may not send has been taken off a request before any feature below `gatekeeper` sees it.
//! Deliberately absent: rings, nodes, quorums, disks; how accounts and containers are looked up
//! ([`request_pipeline::InfoSource`], which the gateway provides).
//!
//! | question | file |
//! |---|---|
//! | which features are there, and in which order do they stand | `registry.rs` |
//! | how does a request run through them | crate `request-pipeline` |
//! | who may see what features find by themselves | `authorised.rs` |
//! | transaction ids, panics, short bodies | `catch_errors.rs` |
//! | headers that clients may not send or see | `gatekeeper.rs` |
//! | `/healthcheck`, `/info` | `healthcheck.rs`, `swift_info.rs` |
//! | what monitors ask: `/recon/…` | `recon/` |
//! | the access log | `proxy_logging.rs`; the line itself is `telemetry`'s |
//! | plain, JSON and XML listings | `listing_formats.rs`, `listing_accept.rs`, `listing_rows.rs` |
//! | copies inside the cluster | `copy/` |
//! | signed addresses and forms | `tempurl/`, `signatures.rs` |
//! | links | `symlink/` |
//! | who asks, may they: TempAuth | `auth.rs`, `auth_shared.rs` |
//! | who asks, may they: Keystone | `authtoken/`, `keystoneauth.rs`, `auth_shared.rs` |
//! | signed addresses and forms | `tempurl/`, `formpost/`, `signatures.rs` |
//! | older versions of objects | `versioned_writes/` |
//! | many operations in one request | `bulk/` |
//! | names that are not wanted, ETags in quotes | `name_check.rs`, `etag_quoter.rs` |
//! | accounts and containers named by the host | `domain_remap.rs` |
//! | hosts that are aliases of the cluster's | `cname_lookup.rs`, `cname_lookup/` |
//! | what other clusters sync here | `container_sync.rs`, `sync_realms.rs` |
//! | where things lie, for programs inside the cluster | `list_endpoints.rs` |
//! | how often may be written | `ratelimit.rs` |
//! | how much may be stored | `account_quotas.rs`, `container_quotas.rs` |
//! | accounts that cannot be changed | `read_only.rs` |
//! | containers as web sites | `staticweb/` |
//! | pages from elsewhere | `crossdomain.rs` |
//! | reports on many requests at once | `bulk_reply.rs` |
//! | encryption, and its keys | `encryption/`, `keymaster.rs` |
//! | large objects by manifest and by prefix | `slo/`, `dlo.rs`; their bytes: `segments.rs` |
//! | conditions and ranges of what features make | `conditional_reply.rs` |
//!
//! Tests: beside the code; against OpenStack Swift in `tests/api`.

pub mod account_quotas;
pub mod auth;
mod auth_shared;
pub mod authorised;
pub mod authtoken;
pub mod bulk;
pub mod bulk_reply;
pub mod catch_errors;
pub mod cname_lookup;
pub mod conditional_reply;
pub mod container_quotas;
pub mod container_sync;
pub mod copy;
pub mod crossdomain;
pub mod dlo;
pub mod domain_remap;
pub mod encryption;
pub mod etag_quoter;
pub mod formpost;
pub mod gatekeeper;
pub mod healthcheck;
pub mod keymaster;
pub mod keystoneauth;
pub mod list_endpoints;
pub mod listing_accept;
pub mod listing_formats;
pub mod listing_rows;
pub mod name_check;
pub mod proxy_logging;
pub mod ratelimit;
pub mod read_only;
pub mod recon;
pub mod registry;
pub mod segments;
pub mod signatures;
pub mod slo;
pub mod staticweb;
pub mod swift_info;
pub mod symlink;
pub mod sync_realms;
pub mod tempurl;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod testing_store;
pub mod versioned_writes;
