//! Which headers stay with an object, how they are spelled on disk, and how many may be.
//!
//! Always holds: what the engine keeps under names of its own (`X-Timestamp`, `Content-Length`, …) is
//! never taken from a header of the same name.

use http::{HeaderMap, HeaderValue};
use object_engine::ObjectMetadata;
use storage_shell::Refusal;
use vocabulary::Limits;
use vocabulary::header_name::{decode, decoded_len, title};
use vocabulary::metadata::{Entity, is_transient_system_meta};

/// Names that the server itself decides about.
const OWN: [&str; 7] = [
    "x-timestamp",
    "content-type",
    "content-length",
    "content-type-timestamp",
    "etag",
    "name",
    "deleted",
];

/// Adds the headers of a PUT that stay: user and system metadata, allowed headers, and those that a replicator names.
pub(crate) fn keep_for_put(
    metadata: &mut ObjectMetadata,
    headers: &HeaderMap,
    replicated: Option<&HeaderValue>,
    allowed: &[String],
) {
    keep(metadata, headers, |name| {
        Entity::Object.is_user_or_system_meta(name) || is_transient_system_meta(name)
    });
    keep_named(metadata, headers, replicated, allowed);
}

/// Adds the headers of a POST that stay; system metadata stays that of the PUT.
pub(crate) fn keep_for_post(
    metadata: &mut ObjectMetadata,
    headers: &HeaderMap,
    replicated: Option<&HeaderValue>,
    allowed: &[String],
) {
    keep(metadata, headers, |name| {
        Entity::Object.is_user_meta(name) || is_transient_system_meta(name)
    });
    keep_named(metadata, headers, replicated, allowed);
}

fn keep(metadata: &mut ObjectMetadata, headers: &HeaderMap, stays: impl Fn(&str) -> bool) {
    for (name, value) in headers {
        if stays(name.as_str()) {
            metadata.set(title(name.as_str()), value.as_bytes());
        }
    }
}

fn keep_named(
    metadata: &mut ObjectMetadata,
    headers: &HeaderMap,
    replicated: Option<&HeaderValue>,
    allowed: &[String],
) {
    let replicated = replicated.and_then(|value| value.to_str().ok()).unwrap_or_default();
    for name in replicated.split_whitespace().chain(allowed.iter().map(String::as_str)) {
        if OWN.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            continue;
        }
        if let Some(value) = headers.get(name) {
            metadata.set(title(name), value.as_bytes());
        }
    }
}

/// Whether an item of an object's metadata is shown to readers of the object.
pub(crate) fn is_shown(name: &str, allowed: &[String]) -> bool {
    Entity::Object.is_user_or_system_meta(name)
        || is_transient_system_meta(name)
        || allowed.iter().any(|allowed| allowed == name)
}

/// `[swift-constraints]` on the client's metadata.
pub(crate) fn check_limits(headers: &HeaderMap, limits: &Limits) -> Result<(), Refusal> {
    let (mut count, mut size) = (0, 0);
    for (name, value) in headers {
        let Some(short) = name.as_str().strip_prefix(Entity::Object.user_prefix()) else {
            continue;
        };
        count += 1;
        let length = decoded_len(short);
        size += length + value.len();
        let spelled = || format!("x-object-meta-{}", String::from_utf8_lossy(&decode(&title(short))));
        let refusal = if short.is_empty() {
            "Metadata name cannot be empty".to_owned()
        } else if length > limits.max_meta_name_length {
            format!("Metadata name too long: {}", spelled())
        } else if value.len() > limits.max_meta_value_length {
            format!(
                "Metadata value longer than {}: {}",
                limits.max_meta_value_length,
                spelled()
            )
        } else if count > limits.max_meta_count {
            format!("Too many metadata items; max {}", limits.max_meta_count)
        } else if size > limits.max_meta_overall_size {
            format!("Total metadata too large; max {}", limits.max_meta_overall_size)
        } else {
            continue;
        };
        return Err(Refusal::bad_request(refusal));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays() {
        let allowed = ["content-encoding".to_owned(), "etag".to_owned()];
        let headers: HeaderMap = [
            ("x-object-meta-a", "1"),
            ("x-object-sysmeta-b", "2"),
            ("x-object-transient-sysmeta-c", "3"),
            ("content-encoding", "gzip"),
            ("etag", "no"),
            ("x-foo", "4"),
            ("x-bar", "5"),
        ]
        .into_iter()
        .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
        .collect();
        let names = |metadata: &ObjectMetadata| metadata.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
        let mut put = ObjectMetadata::new();
        let replicated = HeaderValue::from_static("X-Foo etag");
        keep_for_put(&mut put, &headers, Some(&replicated), &allowed);
        let expected = [
            "X-Object-Meta-A",
            "X-Object-Sysmeta-B",
            "X-Object-Transient-Sysmeta-C",
            "X-Foo",
            "Content-Encoding",
        ];
        assert_eq!(names(&put), expected);
        let mut post = ObjectMetadata::new();
        keep_for_post(&mut post, &headers, Some(&replicated), &allowed);
        assert!(post.get("X-Object-Sysmeta-B").is_none() && post.len() == 4);
    }
}
