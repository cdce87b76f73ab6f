//! Where a call goes within a storage service.
//!
//! On the wire the address is the URL path: `/device/partition/account[/container[/object]]` for
//! things, `/device/partition[/rest]` for REPLICATE, SSYNC and DELETES, and plain paths such as
//! `/healthcheck`. Source: Swift's `doc/source/overview_architecture.rst` and observed requests.
//! Always holds: device names have no slash and are not `.` or `..`; a partition is a number.

use crate::deletes::DELETES;
use http::Method;
use std::sync::Arc;
use vocabulary::names::{quote, unquote};
use vocabulary::{EntityPath, Partition};

/// A thing on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The device's directory name.
    pub device: Arc<str>,
    /// The partition in the ring of the thing's kind and policy.
    pub partition: Partition,
    /// The account, container or object.
    pub path: Arc<EntityPath>,
}

/// A partition of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionTarget {
    /// The device's directory name.
    pub device: Arc<str>,
    /// The partition.
    pub partition: Partition,
    /// What follows it: suffixes or a database's hash; may be empty.
    pub rest: String,
}

/// Where a call goes within a storage service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An account, container or object.
    Entity(Target),
    /// A whole partition, for REPLICATE and SSYNC; a whole device, for DELETES.
    Partition(PartitionTarget),
    /// Anything else: `/healthcheck`, `/recon/…`, and OPTIONS.
    Plain(String),
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
        let partition = parts.next().and_then(|text| text.parse().ok()).ok_or_else(refuse)?;
        let rest = parts.next().unwrap_or_default();
        let whole_partition = matches!(method.as_str(), "REPLICATE" | "SSYNC" | DELETES);
        if device.contains('\0') {
            return Err(refuse());
        }
        let device = device.into();
        if whole_partition {
            return Ok(Self::Partition(PartitionTarget {
                device,
                partition,
                rest: rest.to_owned(),
            }));
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
            Self::Partition(PartitionTarget {
                device,
                partition,
                rest,
            }) if rest.is_empty() => format!("/{}/{partition}", quote(device)),
            Self::Partition(PartitionTarget {
                device,
                partition,
                rest,
            }) => format!("/{}/{partition}/{}", quote(device), quote(rest)),
            Self::Plain(path) => path.clone(),
        }
    }
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
