//! Swift's features in front of the core verbs, in folders by subject, their order one visible list.
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
//! | what features are made of, besides their options | `context.rs` |
//! | who asks, may they, and what may they send | `access/` |
//! | accounts and containers named by the host | `addresses/` |
//! | many operations in one request | `bulk/` |
//! | encryption, and its keys | `encryption/` |
//! | large objects by manifest and by prefix | `large_objects/` |
//! | quotas, rate limits, refused names | `limits/` |
//! | copies inside the cluster, symbolic links | `links/` |
//! | plain, JSON and XML listings | `listings/` |
//! | the access log, `/healthcheck`, `/info`, `/recon` | `monitoring/` |
//! | events of buckets, for webhooks | `notification/` |
//! | older versions of objects | `versioning/` |
//! | containers as web sites, policies for browsers | `web/` |
//!
//! Tests: beside the code; against OpenStack Swift in `tests/api`.

pub mod access;
pub mod addresses;
pub mod bulk;
pub mod context;
pub mod encryption;
pub mod large_objects;
pub mod limits;
pub mod links;
pub mod listings;
pub mod monitoring;
pub mod notification;
pub mod registry;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod testing_store;
pub mod versioning;
pub mod web;
