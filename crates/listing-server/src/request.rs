//! What a request says: its path, timestamps, policy and switches.

use crate::options::ListingServerOptions;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use peer::Target;
use peer::message::{HeaderField, RequestContext};
use std::sync::Arc;
use storage_shell::Refusal;
use vocabulary::names::RESERVED;
use vocabulary::{PolicyIndex, Timestamp};

/// What all requests for an account, a container or a row have.
pub(crate) struct ListingRequest {
    pub(crate) method: Method,
    pub(crate) context: RequestContext,
    pub(crate) target: Target,
    pub(crate) timestamp: HeaderField<Timestamp>,
    /// The headers of the account or container itself.
    pub(crate) headers: Arc<HeaderMap>,
    /// A missing container is to be made.
    pub(crate) creates: bool,
}

impl ListingRequest {
    pub(crate) fn new(
        method: Method,
        context: RequestContext,
        target: &Target,
        timestamp: &HeaderField<Timestamp>,
        headers: &Arc<HeaderMap>,
    ) -> Self {
        Self {
            method,
            context,
            target: target.clone(),
            timestamp: timestamp.clone(),
            headers: headers.clone(),
            creates: false,
        }
    }

    pub(crate) fn account(&self) -> &str {
        &self.target.path.account
    }

    pub(crate) fn container(&self) -> &str {
        self.target.path.container.as_deref().unwrap_or_default()
    }

    pub(crate) fn object(&self) -> Option<&str> {
        self.target.path.object.as_deref()
    }

    /// The path as the wire has it, device and partition included.
    pub(crate) fn url_path(&self) -> String {
        let Target {
            device,
            partition,
            path,
        } = &self.target;
        format!("/{}/{partition}{}", vocabulary::names::quote(device), path.quoted())
    }

    /// The value of one of the entity's own headers, when it is there and is text.
    pub(crate) fn text(&self, name: impl http::header::AsHeaderName) -> Option<&str> {
        text(self.headers.get(name)?)
    }

    /// A switch: `true`, `1`, `yes`, `on`, `t` or `y`.
    pub(crate) fn is_on(&self, name: impl http::header::AsHeaderName) -> bool {
        self.text(name).is_some_and(is_true)
    }

    /// `X-Timestamp`, which every change must have.
    pub(crate) fn timestamp(&self) -> Result<Timestamp, Refusal> {
        let missing = || Refusal::bad_request("Missing X-Timestamp header");
        let malformed = |_: &_| Refusal::bad_request("Invalid X-Timestamp header");
        self.timestamp.required(missing, malformed).copied()
    }

    /// Whether a missing account may be made for this request: one that belongs to Swift itself.
    pub(crate) fn may_create_account(&self, options: &ListingServerOptions) -> bool {
        let prefix = &options.auto_create_account_prefix;
        !prefix.is_empty() && self.account().starts_with(prefix)
    }

    /// Whether a missing container may be made for this request.
    pub(crate) fn may_create_container(&self, options: &ListingServerOptions) -> bool {
        self.creates || self.may_create_account(options)
    }

    /// Names that belong to Swift itself begin with NUL and stand only in what belongs to Swift itself; in its own
    /// accounts they are part of other names (`1:/a/\0c/\0o` in a queue).
    pub(crate) fn check_reserved(&self, options: &ListingServerOptions) -> Result<(), Refusal> {
        let reserved = |name: &str| name.starts_with(RESERVED);
        let misplaced = |name: &str| !reserved(name) && name.contains(RESERVED);
        let (container, object) = (self.container(), self.object().unwrap_or_default());
        let free = object.is_empty() || self.may_create_account(options);
        let why = if misplaced(self.account()) {
            "Invalid reserved-namespace account"
        } else if misplaced(container) {
            "Invalid reserved-namespace container"
        } else if !free && misplaced(object) {
            "Invalid reserved-namespace object"
        } else if !free && reserved(container) && !reserved(object) {
            "Invalid user-namespace object in reserved-namespace container"
        } else if !free && !reserved(container) && reserved(object) {
            "Invalid reserved-namespace object in user-namespace container"
        } else {
            return Ok(());
        };
        Err(Refusal::labelled_bad_request(why))
    }
}

/// The value of a header as text.
pub(crate) fn text(value: &HeaderValue) -> Option<&str> {
    std::str::from_utf8(value.as_bytes()).ok()
}

/// A field that must be there.
pub(crate) fn required<T: Copy>(field: &HeaderField<T>, name: &HeaderName) -> Result<T, Refusal> {
    let malformed = |_: &_| bad_header(name);
    field.required(|| missing_header(name), malformed).copied()
}

/// A field that may be absent.
pub(crate) fn optional<T: Copy>(field: &HeaderField<T>, name: &HeaderName) -> Result<Option<T>, Refusal> {
    field.optional(|_| bad_header(name)).map(Option::<&T>::copied)
}

/// A text that must be there.
pub(crate) fn required_text<'v>(value: &'v Option<HeaderValue>, name: &HeaderName) -> Result<&'v str, Refusal> {
    value.as_ref().and_then(text).ok_or_else(|| missing_header(name))
}

/// The policy that is asked for, which must be one of this cluster.
pub(crate) fn known_policy(
    policy: &HeaderField<PolicyIndex>,
    options: &ListingServerOptions,
) -> Result<Option<PolicyIndex>, Refusal> {
    let policy = any_policy(policy)?;
    match policy {
        Some(index) if options.policies.get(index).is_none() => Err(Refusal::bad_request(format!(
            "Invalid X-Backend-Storage-Policy-Index {index}"
        ))),
        known => Ok(known),
    }
}

/// The policy that is named, whether this cluster has it or not.
pub(crate) fn any_policy(policy: &HeaderField<PolicyIndex>) -> Result<Option<PolicyIndex>, Refusal> {
    let malformed = |value: &HeaderValue| {
        let text = String::from_utf8_lossy(value.as_bytes());
        Refusal::bad_request(format!("Invalid X-Backend-Storage-Policy-Index '{text}'"))
    };
    policy.optional(malformed).map(Option::<&PolicyIndex>::copied)
}

/// Whether a message is about a container's shards rather than its objects.
pub(crate) fn is_about_shards(record_type: &Option<HeaderValue>) -> bool {
    let record_type = record_type.as_ref().and_then(text);
    record_type.is_some_and(|kind| kind.eq_ignore_ascii_case("shard"))
}

/// The same, or about shards where there are some.
pub(crate) fn wants_shards(record_type: &Option<HeaderValue>) -> bool {
    let record_type = record_type.as_ref().and_then(text);
    record_type.is_some_and(|kind| kind.eq_ignore_ascii_case("shard") || kind.eq_ignore_ascii_case("auto"))
}

/// Whether a deleted account takes the row, too.
pub(crate) fn is_overriding(value: &Option<HeaderValue>) -> bool {
    let value = value.as_ref().and_then(text);
    value.is_some_and(|value| value.eq_ignore_ascii_case("yes"))
}

fn missing_header(name: &HeaderName) -> Refusal {
    Refusal::bad_request(format!("Missing {name} header"))
}

fn bad_header(name: &HeaderName) -> Refusal {
    Refusal::bad_request(format!("Invalid {name} header"))
}

/// What Swift takes for yes.
pub(crate) fn is_true(text: &str) -> bool {
    ["true", "1", "yes", "on", "t", "y"]
        .iter()
        .any(|yes| text.eq_ignore_ascii_case(yes))
}
