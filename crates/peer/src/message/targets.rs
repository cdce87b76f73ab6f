//! Which servers are to be sent a listing row, and the headers that name them.
//!
//! Always holds: lists of hosts and devices that do not belong together name no server; a request names no more than
//! [`MOST_NODES`], since each costs its server a connection. For what is left out there are the updaters.

use super::field::{FieldReader, WireField};
use super::header_names::{
    X_ACCOUNT_DEVICE, X_ACCOUNT_HOST, X_ACCOUNT_PARTITION, X_CONTAINER_DEVICE, X_CONTAINER_HOST, X_CONTAINER_PARTITION,
    X_DELETE_AT_DEVICE, X_DELETE_AT_HOST, X_DELETE_AT_PARTITION,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt::{Display, Formatter, Write as _};
use std::sync::Arc;
use vocabulary::Partition;

/// More replicas than rings have.
const MOST_NODES: usize = 64;

/// A listing server and its device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UpdateNode {
    /// The server's address.
    pub ip: Arc<str>,
    /// Its port.
    pub port: u16,
    /// The device's directory name.
    pub device: Arc<str>,
}

impl Display for UpdateNode {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}/{}", self.ip, self.port, self.device)
    }
}

/// The servers that are to be sent a row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum UpdateTargets {
    /// None are named.
    #[default]
    Absent,
    /// These.
    Nodes {
        /// The partition of the listing.
        partition: Partition,
        /// Its servers, as far as they could be read.
        nodes: Vec<UpdateNode>,
        /// More were named, of which no address can be made, or too many.
        some_unreadable: bool,
    },
    /// So many hosts, but another number of devices.
    Mismatched {
        /// Hosts named.
        hosts: usize,
        /// Devices named.
        devices: usize,
    },
}

impl UpdateTargets {
    /// These servers; none when the list is empty.
    pub fn of(partition: Partition, nodes: Vec<UpdateNode>) -> Self {
        match nodes.is_empty() {
            true => Self::Absent,
            false => Self::Nodes {
                partition,
                nodes,
                some_unreadable: false,
            },
        }
    }

    /// What comma lists say.
    pub fn parse(hosts: &str, devices: &str, partition: &str) -> Self {
        let count = |list: &str| list.split(',').count();
        if count(hosts) != count(devices) {
            return Self::Mismatched {
                hosts: count(hosts),
                devices: count(devices),
            };
        }
        let listed = || hosts.split(',').map(str::trim).zip(devices.split(',').map(str::trim));
        let partition: Option<u32> = partition.trim().parse().ok();
        let node = |(host, device): (&str, &str)| {
            let (ip, port) = host.rsplit_once(':')?;
            Some(UpdateNode {
                ip: ip.into(),
                port: port.parse().ok()?,
                device: (!device.is_empty()).then(|| device.into())?,
            })
        };
        let nodes: Vec<_> = match partition {
            Some(_) => listed().take(MOST_NODES).filter_map(node).collect(),
            None => vec![],
        };
        Self::Nodes {
            partition: Partition(partition.unwrap_or_default()),
            some_unreadable: nodes.len() < listed().count(),
            nodes,
        }
    }
}

/// The headers that name servers, and which of them must say something for any to be named.
pub(super) struct TargetNames {
    host: HeaderName,
    device: HeaderName,
    partition: HeaderName,
    is_absent: fn(host: Option<&str>, partition: &str) -> bool,
}

/// The servers of the object's container.
pub(super) const CONTAINER: TargetNames = TargetNames {
    host: X_CONTAINER_HOST,
    device: X_CONTAINER_DEVICE,
    partition: X_CONTAINER_PARTITION,
    is_absent: |_, partition| partition.is_empty(),
};

/// The servers of the expirer's queue.
pub(super) const QUEUE: TargetNames = TargetNames {
    host: X_DELETE_AT_HOST,
    device: X_DELETE_AT_DEVICE,
    partition: X_DELETE_AT_PARTITION,
    is_absent: |host, _| host.is_none(),
};

/// The servers of the container's account.
pub(super) const ACCOUNT: TargetNames = TargetNames {
    host: X_ACCOUNT_HOST,
    device: X_ACCOUNT_DEVICE,
    partition: X_ACCOUNT_PARTITION,
    is_absent: |host, partition| host.is_none_or(str::is_empty) || partition.is_empty(),
};

impl WireField for UpdateTargets {
    type Name = TargetNames;

    fn take(headers: &mut FieldReader, names: &TargetNames) -> Self {
        let [host, device, partition] = [&names.host, &names.device, &names.partition].map(|name| headers.take(name));
        let text = |value: &Option<HeaderValue>| Some(std::str::from_utf8(value.as_ref()?.as_bytes()).ok()?.to_owned());
        if host.is_none() && partition.is_none() {
            return Self::Absent;
        }
        let (host, device, partition) = (text(&host), text(&device), text(&partition).unwrap_or_default());
        match (names.is_absent)(host.as_deref(), &partition) {
            true => Self::Absent,
            false => Self::parse(
                host.as_deref().unwrap_or_default(),
                device.as_deref().unwrap_or_default(),
                &partition,
            ),
        }
    }

    fn put(self, headers: &mut HeaderMap, names: TargetNames) {
        let (partition, nodes) = match self {
            Self::Nodes { partition, nodes, .. } => (partition, nodes),
            Self::Absent | Self::Mismatched { .. } => return,
        };
        let (mut hosts, mut devices) = (String::new(), String::new());
        for (number, node) in nodes.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(hosts, "{comma}{}:{}", node.ip, node.port);
            devices.push_str(comma);
            devices.push_str(&node.device);
        }
        for (name, text) in [(names.host, hosts), (names.device, devices)] {
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(name, value);
            }
        }
        headers.insert(names.partition, HeaderValue::from(partition.0));
    }
}
