//! What is asked of a storage service, the same whether it travels or not.
//!
//! On the wire the address is the URL path: `/device/partition/account[/container[/object]]` for
//! things, `/device/partition[/rest]` for REPLICATE, SSYNC and DELETES, and plain paths such as
//! `/healthcheck`. Source: Swift's `doc/source/overview_architecture.rst` and observed requests.
//! Always holds: device names have no slash and are not `.` or `..`; a partition is a number.

use crate::deletes::DELETES;
use crate::{Body, Interim};
use http::{HeaderMap, Method};
use std::sync::Arc;
use vocabulary::EntityPath;
use vocabulary::names::{quote, unquote};

/// On answers to REPLICATE `sync`: the server takes databases over HTTP ([`OFFER_VALUE`]), so that no
/// rsync is needed. Only our servers say so, and only our replicators look.
pub const OFFER_HEADER: &str = "x-martlet-takes";
/// See [`OFFER_HEADER`].
pub const OFFER_VALUE: &str = "database";
/// On REPLICATE: the body is a database, to be called so until a second request says what becomes of it.
pub const DATABASE_HEADER: &str = "x-martlet-database";

/// What every service answers with.
pub type Response = http::Response<Body>;

/// A storage service: object, container or account server.
#[async_trait::async_trait]
pub trait Service: Send + Sync {
    /// Answers one call. Errors are answers too (`507`, `503`, …).
    async fn call(&self, call: Call) -> Response;
}

/// A thing on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The device's directory name.
    pub device: String,
    /// The partition in the ring of the thing's kind and policy.
    pub partition: u32,
    /// The account, container or object.
    pub path: Arc<EntityPath>,
}

/// Where a call goes within a storage service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An account, container or object.
    Entity(Target),
    /// A whole partition, for REPLICATE and SSYNC; a whole device, for DELETES.
    Partition {
        /// The device's directory name.
        device: String,
        /// The partition.
        partition: u32,
        /// What follows it: suffixes or a database's hash; may be empty.
        rest: String,
    },
    /// Anything else: `/healthcheck`, `/recon/…`, and OPTIONS.
    Plain(String),
}

/// One request to a storage service.
#[derive(Debug)]
pub struct Call {
    /// The verb; Swift's own are REPLICATE, SSYNC and UPDATE, ours is DELETES.
    pub method: Method,
    /// Where it goes.
    pub address: Address,
    /// The query string, encoded; empty when there is none.
    pub query: String,
    /// Headers, Swift's backend headers among them.
    pub headers: HeaderMap,
    /// The body. Not touching it before the request is accepted is what "Expect" means.
    pub body: Body,
    /// For informational answers with headers; only on calls that came over a connection.
    pub interim: Option<Interim>,
}

impl Call {
    /// A call without a body.
    pub fn new(method: Method, target: Target, headers: HeaderMap) -> Self {
        let (address, query) = (Address::Entity(target), String::new());
        Self {
            method,
            address,
            query,
            headers,
            body: Body::empty(),
            interim: None,
        }
    }

    /// With this body.
    pub fn with_body(self, body: Body) -> Self {
        Self { body, ..self }
    }

    /// With this query string (encoded already).
    pub fn with_query(self, query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            ..self
        }
    }
}

/// Why a URL path is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Invalid path: {0}")]
pub struct AddressError(pub String);

impl Address {
    /// Reads a URL path (still encoded) as `method` means it.
    pub fn parse(method: &Method, path: &str) -> Result<Self, AddressError> {
        let refuse = || AddressError(path.chars().take(256).collect());
        if method == Method::OPTIONS || path == "/healthcheck" || path.starts_with("/recon/") {
            return Ok(Self::Plain(path.to_owned()));
        }
        let decoded = unquote(path).map_err(|_| refuse())?;
        let mut parts = decoded.strip_prefix('/').ok_or_else(refuse)?.splitn(3, '/');
        let device = parts
            .next()
            .filter(|d| !matches!(*d, "" | "." | ".."))
            .ok_or_else(refuse)?;
        let partition = parts.next().and_then(parse_partition).ok_or_else(refuse)?;
        let rest = parts.next().unwrap_or_default();
        let whole_partition = matches!(method.as_str(), "REPLICATE" | "SSYNC" | DELETES);
        if device.contains('\0') {
            return Err(refuse());
        }
        let device = device.to_owned();
        if whole_partition {
            return Ok(Self::Partition {
                device,
                partition,
                rest: rest.to_owned(),
            });
        }
        let path = Arc::new(EntityPath::split(rest).map_err(|_| refuse())?);
        Ok(Self::Entity(Target {
            device,
            partition,
            path,
        }))
    }

    /// The URL path, encoded.
    pub fn url_path(&self) -> String {
        match self {
            Self::Entity(target) => format!(
                "/{}/{}{}",
                quote(&target.device),
                target.partition,
                target.path.quoted()
            ),
            Self::Partition {
                device,
                partition,
                rest,
            } if rest.is_empty() => format!("/{}/{partition}", quote(device)),
            Self::Partition {
                device,
                partition,
                rest,
            } => format!("/{}/{partition}/{}", quote(device), quote(rest)),
            Self::Plain(path) => path.clone(),
        }
    }
}

fn parse_partition(text: &str) -> Option<u32> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_read_as_written() {
        for path in [
            "/sda1/12/AUTH_test",
            "/sda1/0/a/c",
            "/sda1/7/a/c/o%20/%C3%B6",
            "/d/1/.expiring_objects/1",
        ] {
            assert_eq!(Address::parse(&Method::GET, path).unwrap().url_path(), path);
        }
        let replicate = Method::from_bytes(b"REPLICATE").unwrap();
        for path in ["/sda1/12", "/sda1/12/abc-def"] {
            assert_eq!(Address::parse(&replicate, path).unwrap().url_path(), path);
        }
        for bad in [
            "",
            "/",
            "/sda1",
            "/sda1/x/a",
            "/../1/a",
            "/sda1/1",
            "/sda1/1/",
            "/sda1/-1/a",
            "/s%00/1/a",
            "/%ff/1/a",
        ] {
            assert!(Address::parse(&Method::GET, bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_path_is_read_or_refused(path in "/[a-z0-9/%.\\x00]{0,40}") {
            if let Ok(address) = Address::parse(&Method::PUT, &path) {
                prop_assert_eq!(Address::parse(&Method::PUT, &address.url_path()), Ok(address));
            }
        }
    }
}
