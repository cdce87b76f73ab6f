//! The nodes that are spoken to without TLS, in a cluster that uses it: those of OpenStack.

use std::net::IpAddr;

/// Addresses, networks and host names, each perhaps with a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlainNodes(Vec<PlainNode>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct PlainNode {
    host: PlainHost,
    /// Of any port when there is none.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PlainHost {
    /// Those that share so many first bits.
    Network(IpAddr, u8),
    /// As rings spell it.
    Name(String),
}

/// An entry that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no node: expected an address, a network or a host name, perhaps with a port, such as 10.0.0.7:6200, \
         10.0.1.0/24 or [fd00::1]:6200"
)]
pub struct PlainNodeError(pub String);

impl PlainNodes {
    /// From the entries of the option `cluster_tls_plain`.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, PlainNodeError> {
        let read = |entry: &str| PlainNode::parse(entry).ok_or_else(|| PlainNodeError(entry.to_owned()));
        Ok(Self(entries.into_iter().map(read).collect::<Result<_, _>>()?))
    }

    /// Whether what the rings know as `host:port` is one of them.
    pub fn has(&self, host: &str, port: u16) -> bool {
        let address: Option<IpAddr> = unbracketed(host).parse().ok();
        self.0
            .iter()
            .filter(|node| node.port.is_none_or(|own| own == port))
            .any(|node| match &node.host {
                PlainHost::Network(network, bits) => address.is_some_and(|address| shares(*network, address, *bits)),
                PlainHost::Name(name) => name.eq_ignore_ascii_case(host),
            })
    }
}

impl PlainNode {
    fn parse(entry: &str) -> Option<Self> {
        // An IPv6 address has colons, too.
        let whole = entry.parse::<IpAddr>().is_ok() || entry.contains('/') || entry.ends_with(']');
        let (host, port) = match entry.rsplit_once(':').filter(|_| !whole) {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (entry, None),
        };
        let host = unbracketed(host);
        let (address, bits) = match host.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
            None => (host, None),
        };
        let host = match address.parse::<IpAddr>() {
            Ok(address) => {
                let all = if address.is_ipv4() { 32 } else { 128 };
                PlainHost::Network(address, bits.unwrap_or(all)).some_if(bits.is_none_or(|bits| bits <= all))?
            }
            Err(_) if bits.is_some() || !is_name(address) => return None,
            Err(_) => PlainHost::Name(address.to_owned()),
        };
        Some(Self { host, port })
    }
}

impl PlainHost {
    fn some_if(self, condition: bool) -> Option<Self> {
        condition.then_some(self)
    }
}

fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    !text.is_empty() && text.chars().all(is_part)
}

fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

fn shares(network: IpAddr, address: IpAddr, bits: u8) -> bool {
    let (network, address, width) = match (network, address) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    let rest = width - u32::from(bits);
    // Shifting by all bits is no shift that there is.
    network.checked_shr(rest).unwrap_or(0) == address.checked_shr(rest).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn entries_and_whom_they_name() {
        let nodes = |text: &str| PlainNodes::parse(text.split_whitespace()).unwrap();
        let some = nodes("10.0.0.7:6200 10.0.1.0/24 fd00::/8 [fe80::1]:6201 old.example:6200");
        for (host, port) in [("10.0.0.7", 6200), ("10.0.1.255", 1), ("fd12::1", 9), ("fe80::1", 6201)] {
            assert!(some.has(host, port), "{host} {port}");
        }
        for (host, port) in [
            ("10.0.0.7", 6201),
            ("10.0.2.0", 1),
            ("fe00::1", 9),
            ("fe80::1", 6200),
            ("x", 6200),
        ] {
            assert!(!some.has(host, port), "{host} {port}");
        }
        assert!(nodes("node1 node2:6200").has("NODE1", 5));
        assert!(!nodes("node1 node2:6200").has("node2", 6201));
        assert!(nodes("0.0.0.0/0").has("1.2.3.4", 1) && !nodes("0.0.0.0/0").has("::1", 1));
        assert!(nodes("::/0").has("::1", 1) && nodes("::1").has("[::1]", 1) && nodes("[::1]").has("::1", 1));
        assert!(!PlainNodes::default().has("10.0.0.7", 6200));
    }

    #[test]
    fn what_is_no_node_is_named() {
        for bad in ["10.0.0.0/33", "10.0.0.7:99999", "a/8", "", "::/129", "a b", "host:"] {
            let error = PlainNodes::parse([bad]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{bad:?} is no node")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_judged(entry in "\\PC*", host in "\\PC*") {
            if let Ok(nodes) = PlainNodes::parse([entry.as_str()]) {
                nodes.has(&host, 1);
            }
        }
    }
}
