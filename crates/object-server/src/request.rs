//! What a request must have before anything else happens: a policy we know, a path to an object.
//!
//! Always holds in an [`ObjectRequest`]: account, container and object are there, and reserved names stand
//! only where Swift allows them.

use crate::devices::ObjectDevice;
use crate::options::ObjectServerOptions;
use crate::refusal::refused_by;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use object_engine::ObjectKey;
use peer::Target;
use peer::message::{DeleteObject, HeaderField, PostObject, PutObject, ReadObject, RequestContext, RowTargets};
use std::sync::Arc;
use storage_shell::{Lane, Refusal, header_value};
use vocabulary::names::RESERVED;
use vocabulary::{EntityPath, Partition, PolicyIndex, PolicyKind, Timestamp};

/// What all requests for an object have.
#[derive(Debug)]
pub(crate) struct ObjectRequest {
    pub(crate) method: Method,
    pub(crate) context: RequestContext,
    pub(crate) target: Target,
    pub(crate) key: ObjectKey,
    /// The partition in which what is written is to be found, too: the object's by the next partition power.
    pub(crate) linked_in: Option<Partition>,
    pub(crate) timestamp: HeaderField<Timestamp>,
    /// The headers of the object itself.
    pub(crate) headers: Arc<HeaderMap>,
    /// Another node's upkeep makes up for a change.
    pub(crate) is_replication: bool,
    /// What has expired is to be seen as if it had not.
    pub(crate) opens_expired: bool,
    /// Where listing rows go.
    pub(crate) rows: RowTargets,
    /// What the listing is to show instead, known at the end of the body.
    pub(crate) overrides: HeaderMap,
    /// The workers that do it.
    pub(crate) lane: Lane,
    /// The write lock under which it is posted to or deleted.
    pub(crate) write_lock: Option<HeaderValue>,
    /// A GOVERNANCE retention does not hold it up.
    pub(crate) bypasses_governance: bool,
}

/// What a PUT says of its body.
#[derive(Debug)]
pub(crate) struct PutHead {
    pub(crate) etag: Option<HeaderValue>,
    pub(crate) if_none_match: Option<HeaderValue>,
    pub(crate) expect: Option<HeaderValue>,
    pub(crate) content_length: Option<HeaderValue>,
    pub(crate) transfer_encoding: Option<HeaderValue>,
    pub(crate) replication_headers: Option<HeaderValue>,
    pub(crate) has_footer: bool,
    pub(crate) has_commit: bool,
    pub(crate) mime_boundary: Option<HeaderValue>,
    pub(crate) object_length: Option<HeaderValue>,
    pub(crate) write_lock: Option<HeaderValue>,
}

/// What a POST says beside its headers.
#[derive(Debug)]
pub(crate) struct PostHead {
    pub(crate) content_type_timestamp: HeaderField<Timestamp>,
    pub(crate) replication_headers: Option<HeaderValue>,
}

/// What a GET or HEAD says beside its headers.
#[derive(Debug)]
pub(crate) struct ReadHead {
    pub(crate) head_only: bool,
    pub(crate) etag_is_at: Option<HeaderValue>,
    pub(crate) ignores_range_if: Option<HeaderValue>,
}

impl ObjectRequest {
    /// Of a PUT.
    pub(crate) fn put(
        context: RequestContext,
        message: PutObject,
        lane: Lane,
        options: &ObjectServerOptions,
    ) -> Result<(Self, PutHead), Refusal> {
        let key = object_key(&message.target, &message.policy, options)?;
        let head = PutHead {
            etag: message.etag,
            if_none_match: message.if_none_match,
            expect: message.expect,
            content_length: message.content_length,
            transfer_encoding: message.transfer_encoding,
            replication_headers: message.replication_headers,
            has_footer: message.has_footer,
            has_commit: message.has_commit,
            mime_boundary: message.mime_boundary,
            object_length: message.object_length,
            write_lock: message.write_lock,
        };
        let request = Self {
            method: Method::PUT,
            context,
            target: message.target,
            linked_in: next_partition(&key, &message.next_part_power)?,
            key,
            timestamp: message.timestamp,
            headers: message.headers,
            is_replication: message.is_replication,
            opens_expired: message.opens_expired,
            rows: message.rows,
            overrides: HeaderMap::new(),
            lane,
            write_lock: None,
            bypasses_governance: false,
        };
        Ok((request, head))
    }

    /// Of a POST.
    pub(crate) fn post(
        context: RequestContext,
        message: PostObject,
        lane: Lane,
        options: &ObjectServerOptions,
    ) -> Result<(Self, PostHead), Refusal> {
        let key = object_key(&message.target, &message.policy, options)?;
        let head = PostHead {
            content_type_timestamp: message.content_type_timestamp,
            replication_headers: message.replication_headers,
        };
        let request = Self {
            method: Method::POST,
            context,
            target: message.target,
            linked_in: next_partition(&key, &message.next_part_power)?,
            key,
            timestamp: message.timestamp,
            headers: message.headers,
            is_replication: message.is_replication,
            opens_expired: message.opens_expired,
            rows: message.rows,
            overrides: HeaderMap::new(),
            lane,
            write_lock: message.write_lock,
            bypasses_governance: message.bypasses_governance,
        };
        Ok((request, head))
    }

    /// Of a DELETE, and when the object must expire for it to be deleted.
    pub(crate) fn delete(
        context: RequestContext,
        message: DeleteObject,
        lane: Lane,
        options: &ObjectServerOptions,
    ) -> Result<(Self, HeaderField<Timestamp>), Refusal> {
        let key = object_key(&message.target, &message.policy, options)?;
        let request = Self {
            method: Method::DELETE,
            context,
            target: message.target,
            linked_in: next_partition(&key, &message.next_part_power)?,
            key,
            timestamp: message.timestamp,
            headers: message.headers,
            is_replication: message.is_replication,
            opens_expired: message.opens_expired,
            rows: message.rows,
            overrides: HeaderMap::new(),
            lane,
            write_lock: message.write_lock,
            bypasses_governance: message.bypasses_governance,
        };
        Ok((request, message.if_delete_at))
    }

    /// Of a GET or HEAD.
    pub(crate) fn read(
        context: RequestContext,
        message: ReadObject,
        lane: Lane,
        options: &ObjectServerOptions,
    ) -> Result<(Self, ReadHead), Refusal> {
        let head = ReadHead {
            head_only: message.head_only,
            etag_is_at: message.etag_is_at,
            ignores_range_if: message.ignores_range_if,
        };
        let request = Self {
            key: object_key(&message.target, &message.policy, options)?,
            linked_in: None,
            method: Method::GET,
            context,
            target: message.target,
            timestamp: message.timestamp,
            headers: message.headers,
            is_replication: message.is_replication,
            opens_expired: message.opens_expired,
            rows: RowTargets::default(),
            overrides: HeaderMap::new(),
            lane,
            write_lock: None,
            bypasses_governance: false,
        };
        Ok((request, head))
    }

    /// Links what was written where it is to be found, too. Blocks.
    pub(crate) fn link(&self, device: &ObjectDevice) -> Result<(), Refusal> {
        let linked = (self.linked_in).map(|partition| device.engine().link(&self.key, partition));
        linked.unwrap_or(Ok(())).map_err(refused_by(device))
    }

    /// The value of one of the object's headers, when it is there and is text.
    pub(crate) fn text(&self, name: impl http::header::AsHeaderName) -> Option<&str> {
        text(self.headers.get(name)?)
    }

    /// `X-Timestamp`, which every write must have.
    pub(crate) fn timestamp(&self) -> Result<Timestamp, Refusal> {
        let missing = || Refusal::bad_request("Missing X-Timestamp header");
        let malformed = |_: &_| Refusal::bad_request("Invalid X-Timestamp header");
        self.timestamp.required(missing, malformed).copied()
    }

    /// `X-Timestamp` of a read, which decides about expiry; `now` when it has none.
    pub(crate) fn timestamp_or(&self, now: Timestamp) -> Result<Timestamp, Refusal> {
        let sent = self.timestamp.optional(|value| {
            let text = String::from_utf8_lossy(value.as_bytes());
            Refusal::bad_request(format!(
                "X-Timestamp should be a UNIX timestamp float value; was '{text}'"
            ))
        });
        Ok(sent?.copied().unwrap_or(now))
    }

    /// Whether what has expired is to be seen as if it had not.
    pub(crate) fn opens_expired(&self) -> bool {
        self.opens_expired || self.is_replication
    }

    /// `Referer` of what follows from this request.
    pub(crate) fn referer(&self) -> Option<HeaderValue> {
        let host = self.context.host.as_ref().and_then(text).unwrap_or("localhost");
        let Target {
            device,
            partition,
            path,
        } = &self.target;
        header_value(format_args!(
            "{} http://{host}/{device}/{partition}{}",
            self.method,
            path.quoted()
        ))
    }
}

/// Checks what every verb needs: a known policy, and names that may be.
pub(crate) fn object_key(
    target: &Target,
    policy: &HeaderField<PolicyIndex>,
    options: &ObjectServerOptions,
) -> Result<ObjectKey, Refusal> {
    let (policy, path) = (known_policy(policy, options)?, &target.path);
    check_reserved(path)?;
    Ok(ObjectKey {
        policy,
        partition: target.partition,
        hash: options.hash_prefix.object(&path.account, container(path), object(path)),
        name: path.path(),
    })
}

/// The partition of an object by the next partition power, if that is another one than it has.
fn next_partition(key: &ObjectKey, power: &HeaderField<u64>) -> Result<Option<Partition>, Refusal> {
    let refusal = || Refusal::bad_request("Invalid X-Backend-Next-Part-Power header");
    let Some(&power) = power.optional(|_| refusal())? else {
        return Ok(None);
    };
    let [a, b, c, d, ..] = key.hash.0;
    let unused_bits = 32_u32
        .checked_sub(u32::try_from(power).map_err(|_| refusal())?)
        .ok_or_else(refusal)?;
    let partition = u32::from_be_bytes([a, b, c, d]).checked_shr(unused_bits).unwrap_or(0);
    Ok(Some(Partition(partition)).filter(|next| *next != key.partition))
}

/// The value of a header as text.
pub(crate) fn text(value: &HeaderValue) -> Option<&str> {
    std::str::from_utf8(value.as_bytes()).ok()
}

fn container(path: &EntityPath) -> &str {
    path.container.as_deref().unwrap_or_default()
}

fn object(path: &EntityPath) -> &str {
    path.object.as_deref().unwrap_or_default()
}

/// Swift's idea of yes.
pub(crate) fn is_true(text: &str) -> bool {
    ["true", "1", "yes", "on", "t", "y"]
        .iter()
        .any(|yes| text.eq_ignore_ascii_case(yes))
}

/// The policy that a request is about.
pub(crate) fn known_policy(
    policy: &HeaderField<PolicyIndex>,
    options: &ObjectServerOptions,
) -> Result<PolicyIndex, Refusal> {
    let unknown = |text: &dyn std::fmt::Display| {
        let why = format!("No policy with index {text}");
        Refusal::Text(StatusCode::SERVICE_UNAVAILABLE, why)
    };
    let malformed = |value: &HeaderValue| unknown(&String::from_utf8_lossy(value.as_bytes()));
    let Some(index) = policy.optional(malformed)? else {
        return Ok(PolicyIndex::LEGACY);
    };
    match options.policies.get(*index) {
        None => Err(unknown(index)),
        Some(policy) if policy.kind != PolicyKind::Replication => Err(Refusal::Text(
            StatusCode::NOT_IMPLEMENTED,
            format!(
                "storage policy {:?} is erasure-coded, which this server does not serve yet",
                policy.name
            ),
        )),
        Some(policy) => Ok(policy.index),
    }
}

/// Reserved names begin with NUL: an account or container may, and an object must exactly where its
/// container does. NUL has no other place in a name.
fn check_reserved(path: &EntityPath) -> Result<(), Refusal> {
    let reserved = |name: &str| name.starts_with(RESERVED);
    let misplaced = |name: &str| !reserved(name) && name.contains(RESERVED);
    let (container, object) = (container(path), object(path));
    let why = if misplaced(&path.account) {
        "Invalid reserved-namespace account"
    } else if misplaced(container) {
        "Invalid reserved-namespace container"
    } else if misplaced(object) {
        "Invalid reserved-namespace object"
    } else if reserved(container) && !reserved(object) {
        "Invalid user-namespace object in reserved-namespace container"
    } else if !reserved(container) && reserved(object) {
        "Invalid reserved-namespace object in user-namespace container"
    } else {
        return Ok(());
    };
    Err(Refusal::labelled_bad_request(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_names_stand_only_where_swift_allows_them() {
        let allowed = |path: &str| check_reserved(&EntityPath::split(path).unwrap()).is_ok();
        for good in [
            "a/c/o",
            "\0a/c/o",
            "\0a/\0c/\0o\0",
            "a/\0c/\0",
            "\0a/\0c\0/\0o",
            "\0/c/o",
        ] {
            assert!(allowed(good), "{good:?}");
        }
        for bad in ["a\0/c/o", "a/c\0/o", "a/c/o\0x", "a/\0c/o", "a/c/\0o", "\0a/c/\0o"] {
            assert!(!allowed(bad), "{bad:?}");
        }
    }
}
