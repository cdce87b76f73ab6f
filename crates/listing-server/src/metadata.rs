//! Which headers stay with an account or a container, and how many may.
//!
//! Names are stored as OpenStack's servers store them, in Title-Case, and as what they are: those that
//! HTTP libraries refuse travel encoded (`vocabulary::header_name`) and are text in the database.

use crate::request::ListingRequest;
use listing_engine::{Kind, Metadata, MetadataItem};
use peer::Response;
use peer::message::header_names::X_BACKEND_TIMESTAMP;
use storage_shell::{Refusal, put_named, put_time};
use vocabulary::header_name;
use vocabulary::metadata::Entity;
use vocabulary::{Limits, Timestamp};

/// Headers of containers that are kept besides metadata.
const KEPT: [&str; 4] = [
    "x-container-read",
    "x-container-write",
    "x-container-sync-key",
    "x-container-sync-to",
];

/// The name under which the sync target is stored.
pub(crate) const SYNC_TO: &str = "X-Container-Sync-To";
/// The name under which its key is stored.
pub(crate) const SYNC_KEY: &str = "X-Container-Sync-Key";

fn entity(kind: Kind) -> Entity {
    match kind {
        Kind::Account => Entity::Account,
        Kind::Container => Entity::Container,
    }
}

fn is_kept(kind: Kind, name: &str) -> bool {
    entity(kind).is_user_or_system_meta(name) || (kind == Kind::Container && KEPT.contains(&name))
}

/// What the request sets, or removes with empty values.
pub(crate) fn from_request(kind: Kind, request: &ListingRequest, timestamp: Timestamp) -> Result<Metadata, Refusal> {
    let mut metadata = Metadata::default();
    for (name, value) in &*request.headers {
        if is_kept(kind, name.as_str()) {
            let not_text = |_| Refusal::bad_request("Metadata must be valid UTF-8");
            let value = std::str::from_utf8(value.as_bytes()).map_err(not_text)?;
            let name = title(name.as_str());
            let name = header_name::decode(&name);
            metadata.set(std::str::from_utf8(&name).map_err(not_text)?, value, timestamp);
        }
    }
    Ok(metadata)
}

/// Whether what clients set is within the limits. System metadata is not counted.
pub(crate) fn check(kind: Kind, metadata: &Metadata, limits: &Limits) -> Result<(), Refusal> {
    let prefix = entity(kind).user_prefix();
    let (mut count, mut size) = (0, 0);
    for (name, item) in metadata.iter() {
        let is_user = name
            .get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix));
        if is_user && !item.value.is_empty() {
            count += 1;
            size += name.len() - prefix.len() + item.value.len();
        }
    }
    if count > limits.max_meta_count {
        let text = format!("Too many metadata items; max {}", limits.max_meta_count);
        return Err(Refusal::bad_request(text));
    }
    if size > limits.max_meta_overall_size {
        let text = format!("Total metadata too large; max {}", limits.max_meta_overall_size);
        return Err(Refusal::bad_request(text));
    }
    Ok(())
}

/// When something of what the request sets was set to something else that stays, because that was later. Gateways of
/// ours send such a request again, with a later time; OpenStack's servers drop it without a word.
pub(crate) fn newer_than(updates: &Metadata, stored: &Metadata) -> Option<Timestamp> {
    let newer = |(name, item): (&str, &MetadataItem)| {
        let stored = stored.get(name)?;
        (stored.timestamp > item.timestamp).then_some(stored.timestamp)
    };
    updates.iter().filter_map(newer).max()
}

/// The answer, saying that something newer stays.
pub(crate) fn say_newer(newer: Option<Timestamp>, mut response: Response) -> Response {
    if let Some(newer) = newer {
        put_time(&mut response, X_BACKEND_TIMESTAMP, newer);
    }
    response
}

/// Sets the stored metadata as headers of the answer, removed items left out.
pub(crate) fn to_response(kind: Kind, metadata: &Metadata, response: &mut Response) {
    for (name, item) in metadata.iter() {
        let name = header_name::encode_text(name).to_ascii_lowercase();
        if !item.value.is_empty() && is_kept(kind, &name) {
            put_named(response, &name, &item.value);
        }
    }
}

/// `x-container-meta-foo_bar2baz` → `X-Container-Meta-Foo-Bar2Baz`, as headers come out of WSGI.
fn title(name: &str) -> String {
    header_name::title(&name.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_titled_as_python_does() {
        assert_eq!(title("x-container-meta-foo_bar2baz"), "X-Container-Meta-Foo-Bar2Baz");
        assert_eq!(title("x-container-meta-q's"), "X-Container-Meta-Q'S");
    }

    #[test]
    fn only_the_clients_items_count_and_only_what_is_behind_the_prefix() {
        let limits = Limits::default();
        let time = Timestamp::from_seconds(1);
        let mut metadata = Metadata::default();
        metadata.set("X-Container-Sysmeta-Big", "v".repeat(10_000), time);
        metadata.set("X-Container-Meta-K", "v".repeat(4_095), time);
        assert!(check(Kind::Container, &metadata, &limits).is_ok());
        metadata.set("X-Container-Meta-L", "", time);
        assert!(check(Kind::Container, &metadata, &limits).is_ok());
        metadata.set("X-Container-Meta-M", "v", time);
        assert!(check(Kind::Container, &metadata, &limits).is_err());
    }
}
