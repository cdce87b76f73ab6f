//! What containers, objects and items of metadata are called in runs with databases.

use http::header::HeaderName;
use listing_engine::ObjectRow;
use std::collections::BTreeMap;

/// How many containers there are, names in each, and names of metadata.
pub(super) const CONTAINERS: usize = 2;
pub(super) const NAMES: usize = 7;
pub(super) const KEYS: usize = 2;
pub(super) const ACCOUNT: &str = "AUTH_a";

pub(super) fn container(number: usize) -> String {
    format!("c{number}")
}

pub(super) fn object(number: usize) -> String {
    format!("o{number}")
}

/// As servers write it.
pub(super) fn header(key: usize) -> String {
    format!("X-Container-Meta-K{key}")
}

/// As clients send it.
pub(super) fn header_name(key: usize) -> HeaderName {
    match key {
        0 => HeaderName::from_static("x-container-meta-k0"),
        _ => HeaderName::from_static("x-container-meta-k1"),
    }
}

pub(super) fn etag(number: usize) -> String {
    format!("{number:032x}")
}

/// Newest rows by name.
pub(super) type NewestRows = BTreeMap<String, ObjectRow>;
