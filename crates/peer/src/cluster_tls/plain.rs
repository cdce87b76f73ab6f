//! The nodes that are spoken to without TLS, in a cluster that uses it: those of OpenStack.

use std::net::IpAddr;
use vocabulary::IpNetwork;

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
    Network(IpNetwork),
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
                PlainHost::Network(network) => address.is_some_and(|address| network.has(address)),
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
        let host = match host.parse() {
            Ok(network) => PlainHost::Network(network),
            Err(_) if !is_name(host) => return None,
            Err(_) => PlainHost::Name(host.to_owned()),
        };
        Some(Self { host, port })
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
