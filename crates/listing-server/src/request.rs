//! What a request says: its path, timestamps, policy and switches.

use crate::options::ListingServerOptions;
use http::{HeaderMap, Method, StatusCode};
use peer::Target;
use std::sync::Arc;
use storage_shell::Refusal;
use vocabulary::names::RESERVED;
use vocabulary::{EntityPath, Partition, PolicyIndex, Timestamp};

/// A request for an account, a container or a row, its body aside.
pub(crate) struct ListingRequest {
    pub(crate) method: Method,
    pub(crate) device: Arc<str>,
    pub(crate) partition: Partition,
    pub(crate) path: Arc<EntityPath>,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
}

impl ListingRequest {
    pub(crate) fn new(method: Method, target: Target, query: String, headers: HeaderMap) -> Self {
        Self {
            method,
            device: target.device,
            partition: target.partition,
            path: target.path,
            query,
            headers,
        }
    }

    /// Whether it is about the container's shards rather than its objects.
    pub(crate) fn is_about_shards(&self) -> bool {
        let record_type = self.text("x-backend-record-type");
        record_type.is_some_and(|kind| kind.eq_ignore_ascii_case("shard"))
    }

    pub(crate) fn account(&self) -> &str {
        &self.path.account
    }

    pub(crate) fn container(&self) -> &str {
        self.path.container.as_deref().unwrap_or_default()
    }

    pub(crate) fn object(&self) -> Option<&str> {
        self.path.object.as_deref()
    }

    /// The path as the wire has it, device and partition included.
    pub(crate) fn url_path(&self) -> String {
        let device = vocabulary::names::quote(&self.device);
        format!("/{device}/{}{}", self.partition, self.path.quoted())
    }

    /// A header's value, when it is there and is text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.headers.get(name)?.as_bytes()).ok()
    }

    /// A switch: `true`, `1`, `yes`, `on`, `t` or `y`.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.text(name).is_some_and(is_true)
    }

    /// `X-Timestamp`, which every change must have.
    pub(crate) fn timestamp(&self) -> Result<Timestamp, Refusal> {
        let text = self
            .text("x-timestamp")
            .ok_or_else(|| Refusal::bad_request("Missing X-Timestamp header"))?;
        text.parse()
            .map_err(|_| Refusal::bad_request("Invalid X-Timestamp header"))
    }

    /// A timestamp that may be absent.
    pub(crate) fn optional_time(&self, name: &str) -> Result<Option<Timestamp>, Refusal> {
        let parse = |text: &str| text.parse().map_err(|_| bad_header(name));
        self.text(name).map(parse).transpose()
    }

    /// A timestamp that must be there.
    pub(crate) fn time(&self, name: &str) -> Result<Timestamp, Refusal> {
        self.optional_time(name)?.ok_or_else(|| missing_header(name))
    }

    /// A count that must be there; OpenStack's containers can come to one below zero, which counts as nothing.
    pub(crate) fn number(&self, name: &str) -> Result<u64, Refusal> {
        let text = self.text(name).ok_or_else(|| missing_header(name))?;
        let number: i128 = text.trim().parse().map_err(|_| bad_header(name))?;
        u64::try_from(number.max(0)).map_err(|_| bad_header(name))
    }

    /// A text that must be there.
    pub(crate) fn required(&self, name: &str) -> Result<&str, Refusal> {
        self.text(name).ok_or_else(|| missing_header(name))
    }

    /// `X-Backend-Storage-Policy-Index`: a policy of this cluster, when given.
    pub(crate) fn policy(&self, options: &ListingServerOptions) -> Result<Option<PolicyIndex>, Refusal> {
        let Some(text) = self.text("x-backend-storage-policy-index") else {
            return Ok(None);
        };
        match text.trim().parse().map(PolicyIndex) {
            Ok(index) if options.policies.get(index).is_some() => Ok(Some(index)),
            Ok(index) => Err(Refusal::bad_request(format!(
                "Invalid X-Backend-Storage-Policy-Index {index}"
            ))),
            Err(_) => Err(Refusal::bad_request(format!(
                "Invalid X-Backend-Storage-Policy-Index '{text}'"
            ))),
        }
    }

    /// Whether a missing account may be made for this request: one that belongs to Swift itself.
    pub(crate) fn may_create_account(&self, options: &ListingServerOptions) -> bool {
        let prefix = &options.auto_create_account_prefix;
        !prefix.is_empty() && self.account().starts_with(prefix)
    }

    /// Whether a missing container may be made for this request.
    pub(crate) fn may_create_container(&self, options: &ListingServerOptions) -> bool {
        self.may_create_account(options) || self.is_on("x-backend-auto-create")
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

    /// 400 for a path that this verb does not take.
    pub(crate) fn invalid_path(&self) -> Refusal {
        Refusal::bad_request(format!("Invalid path: {}", self.url_path()))
    }
}

fn missing_header(name: &str) -> Refusal {
    Refusal::Text(StatusCode::BAD_REQUEST, format!("Missing {name} header"))
}

fn bad_header(name: &str) -> Refusal {
    Refusal::Text(StatusCode::BAD_REQUEST, format!("Invalid {name} header"))
}

/// What Swift takes for yes.
pub(crate) fn is_true(text: &str) -> bool {
    ["true", "1", "yes", "on", "t", "y"]
        .iter()
        .any(|yes| text.eq_ignore_ascii_case(yes))
}
