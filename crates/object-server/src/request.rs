//! What a request must have before anything else happens: a policy we know, a path to an object.
//!
//! Always holds in a [`ObjectRequest`]: account, container and object are there, and reserved names stand
//! only where Swift allows them.

use crate::options::ObjectServerOptions;
use http::{HeaderMap, Method, StatusCode};
use object_engine::ObjectKey;
use peer::{Address, Target};
use std::sync::Arc;
use storage_shell::{Lane, Refusal};
use vocabulary::names::RESERVED;
use vocabulary::{EntityPath, Partition, PolicyIndex, PolicyKind, Timestamp};

const X_TIMESTAMP: &str = "x-timestamp";
pub(crate) const X_POLICY_INDEX: &str = "x-backend-storage-policy-index";

/// A request for an object, its body aside.
#[derive(Debug)]
pub(crate) struct ObjectRequest {
    pub(crate) method: Method,
    pub(crate) device: Arc<str>,
    pub(crate) partition: Partition,
    pub(crate) path: Arc<EntityPath>,
    pub(crate) key: ObjectKey,
    pub(crate) headers: HeaderMap,
    /// The workers that do it.
    pub(crate) lane: Lane,
}

impl ObjectRequest {
    /// Checks what every verb needs.
    pub(crate) fn new(
        method: Method,
        address: Address,
        headers: HeaderMap,
        lane: Lane,
        options: &ObjectServerOptions,
    ) -> Result<Self, Refusal> {
        let policy = policy(&headers, options)?;
        let target = match address {
            Address::Entity(target) if target.path.object.is_some() => target,
            other => return Err(Refusal::bad_request(format!("Invalid path: {}", other.url_path()))),
        };
        check_reserved(&target.path)?;
        let Target {
            device,
            partition,
            path,
        } = target;
        let key = ObjectKey {
            policy,
            partition: partition.0,
            hash: options
                .hash_prefix
                .object(&path.account, container(&path), object(&path)),
            name: path.path(),
        };
        Ok(Self {
            method,
            device,
            partition,
            path,
            key,
            headers,
            lane,
        })
    }

    pub(crate) fn account(&self) -> &str {
        &self.path.account
    }

    pub(crate) fn container(&self) -> &str {
        container(&self.path)
    }

    pub(crate) fn object(&self) -> &str {
        object(&self.path)
    }

    /// A header's value, when it is there and is text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.headers.get(name)?.as_bytes()).ok()
    }

    /// Whether a header says yes, in any of Swift's spellings.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.text(name).is_some_and(is_true)
    }

    /// `X-Timestamp`, which every write must have.
    pub(crate) fn timestamp(&self) -> Result<Timestamp, Refusal> {
        let value = self.headers.get(X_TIMESTAMP);
        let value = value.ok_or_else(|| Refusal::bad_request("Missing X-Timestamp header"))?;
        let parsed = value.to_str().ok().and_then(|text| text.parse().ok());
        parsed.ok_or_else(|| Refusal::bad_request("Invalid X-Timestamp header"))
    }

    /// `X-Timestamp` of a read, which decides about expiry; `now` when it has none.
    pub(crate) fn timestamp_or(&self, now: Timestamp) -> Result<Timestamp, Refusal> {
        let Some(value) = self.headers.get(X_TIMESTAMP) else {
            return Ok(now);
        };
        let text = String::from_utf8_lossy(value.as_bytes());
        text.parse().map_err(|_| {
            Refusal::bad_request(format!(
                "X-Timestamp should be a UNIX timestamp float value; was '{text}'"
            ))
        })
    }

    /// Whether what has expired is to be seen as if it had not.
    pub(crate) fn opens_expired(&self) -> bool {
        self.is_true("x-backend-open-expired") || self.is_replication()
    }

    /// Whether it comes from another node's upkeep.
    pub(crate) fn is_replication(&self) -> bool {
        self.is_true("x-backend-replication")
    }

    /// The transaction id, `-` without one.
    pub(crate) fn trans_id(&self) -> &str {
        self.text("x-trans-id").unwrap_or("-")
    }
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
pub(crate) fn policy(headers: &HeaderMap, options: &ObjectServerOptions) -> Result<PolicyIndex, Refusal> {
    let Some(value) = headers.get(X_POLICY_INDEX) else {
        return Ok(PolicyIndex::LEGACY);
    };
    let text = String::from_utf8_lossy(value.as_bytes());
    let known = text
        .parse()
        .ok()
        .and_then(|index| options.policies.get(PolicyIndex(index)));
    match known {
        None => Err(Refusal::Text(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("No policy with index {text}"),
        )),
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
