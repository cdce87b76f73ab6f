//! Swift's features in front of the core verbs: one file each, their order one visible list.
//!
//! A [`Feature`] sees a [`ClientRequest`] on its way in and the response on its way out, may answer
//! by itself, change either, or send further requests down the rest of the pipeline. The gateway
//! builds the [`Pipeline`] from `[pipeline:main]` and ends it with its core.
//! Always holds: a request runs through the features in the order of the pipeline; what clients may
//! not say has been taken off it before any feature below `gatekeeper` sees it.
//! Deliberately absent: rings, nodes, quorums, disks; how accounts and containers are looked up
//! (that is [`InfoSource`], which the gateway provides).

pub mod catch_errors;
pub mod cors;
pub mod gatekeeper;
pub mod healthcheck;
pub mod info;
pub mod listing_accept;
pub mod listing_formats;
pub mod listing_rows;
pub mod notes;
pub mod pipeline;
pub mod python_json;
pub mod reply;
pub mod request;
pub mod swift_info;
pub mod tempauth;
#[cfg(test)]
mod testing;
pub mod watched;

pub use info::{AccountInfo, ContainerInfo, InfoSource};
pub use notes::Notes;
pub use pipeline::{Core, Feature, Next, Pipeline};
pub use request::{Authorizer, ClientRequest};

/// What clients get.
pub type Response = peer::Response;
