//! The PROXY protocol: what a load balancer says about the connection it passes on.
//!
//! ```text
//! PROXY TCP4 192.0.2.1 192.0.2.9 49152 443\r\n          version 1, at most 107 bytes
//! PROXY UNKNOWN …\r\n                                    nothing is known
//!
//!  0  \r\n\r\n\0\r\nQUIT\n      version 2
//! 12  0x20 local, 0x21 proxied      13  0x1_ IPv4, 0x2_ IPv6; else nothing is known
//! 14  length of what follows, two bytes
//! 16  source, destination address; source, destination port; more that is skipped
//! ```
//! Source: <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>.
//! Always holds: nothing is taken for a preamble before it is whole; it is bounded.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const PREFIX: &[u8] = b"PROXY ";
const LONGEST_LINE: usize = 107;
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
const FIXED: usize = 16;
/// Two addresses of 16 bytes, two ports, and room for what balancers add.
const LONGEST_REST: usize = 2048;

/// What has been said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preamble {
    /// Source and destination, when they are known.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// Bytes of it.
    pub length: usize,
}

/// What the first bytes of a connection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed {
    /// A whole preamble.
    Whole(Preamble),
    /// The beginning of one.
    Incomplete,
    /// None.
    Bad,
}

/// Reads the first bytes of a connection.
pub fn parse(bytes: &[u8]) -> Parsed {
    let begins = |with: &[u8]| bytes.iter().zip(with).all(|(a, b)| a == b);
    if begins(SIGNATURE) {
        binary(bytes)
    } else if begins(PREFIX) {
        line(bytes)
    } else {
        Parsed::Bad
    }
}

fn line(bytes: &[u8]) -> Parsed {
    let Some(end) = memchr::memchr(b'\n', bytes) else {
        return if bytes.len() < LONGEST_LINE {
            Parsed::Incomplete
        } else {
            Parsed::Bad
        };
    };
    let whole = |addresses| {
        Parsed::Whole(Preamble {
            addresses,
            length: end + 1,
        })
    };
    let text = bytes
        .get(PREFIX.len()..end)
        .and_then(|line| std::str::from_utf8(line).ok());
    let Some(text) = text.filter(|_| end < LONGEST_LINE) else {
        return Parsed::Bad;
    };
    let words: Vec<&str> = text.trim_end_matches('\r').split(' ').collect();
    let address = |ip: &str, port: &str| Some(SocketAddr::new(ip.parse().ok()?, port.parse().ok()?));
    match words.as_slice() {
        ["UNKNOWN", ..] => whole(None),
        [family @ ("TCP4" | "TCP6"), source, destination, from, to] => {
            match (address(source, from), address(destination, to)) {
                (Some(source), Some(destination))
                    if source.is_ipv4() == (*family == "TCP4") && source.is_ipv4() == destination.is_ipv4() =>
                {
                    whole(Some((source, destination)))
                }
                _ => Parsed::Bad,
            }
        }
        _ => Parsed::Bad,
    }
}

fn binary(bytes: &[u8]) -> Parsed {
    let Some([command, family, high, low]) = bytes.get(SIGNATURE.len()..FIXED) else {
        return Parsed::Incomplete;
    };
    let rest = usize::from(u16::from_be_bytes([*high, *low]));
    if command >> 4 != 2 || rest > LONGEST_REST {
        return Parsed::Bad;
    }
    let Some(rest) = bytes.get(FIXED..FIXED + rest) else {
        return Parsed::Incomplete;
    };
    let addresses = match (command & 15, family >> 4) {
        (0, _) => None,
        (1, 1) => match two::<4>(rest) {
            Some(found) => Some(found.map(|(ip, port)| SocketAddr::new(IpAddr::V4(Ipv4Addr::from(ip)), port))),
            None => return Parsed::Bad,
        },
        (1, 2) => match two::<16>(rest) {
            Some(found) => Some(found.map(|(ip, port)| SocketAddr::new(IpAddr::V6(Ipv6Addr::from(ip)), port))),
            None => return Parsed::Bad,
        },
        (1, _) => None,
        _ => return Parsed::Bad,
    };
    Parsed::Whole(Preamble {
        addresses: addresses.map(|[source, destination]| (source, destination)),
        length: FIXED + rest.len(),
    })
}

/// Two addresses of `N` bytes, then their ports.
fn two<const N: usize>(rest: &[u8]) -> Option<[([u8; N], u16); 2]> {
    let (source, rest) = rest.split_first_chunk::<N>()?;
    let (destination, rest) = rest.split_first_chunk::<N>()?;
    let (from, rest) = rest.split_first_chunk::<2>()?;
    let to = rest.first_chunk::<2>()?;
    Some([
        (*source, u16::from_be_bytes(*from)),
        (*destination, u16::from_be_bytes(*to)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn addresses(bytes: &[u8]) -> Option<(String, String)> {
        match parse(bytes) {
            Parsed::Whole(Preamble { addresses, .. }) => addresses.map(|(a, b)| (a.to_string(), b.to_string())),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_versions() {
        let found = addresses(b"PROXY TCP4 1.2.3.4 5.6.7.8 1111 443\r\nGET").unwrap();
        assert_eq!(found, ("1.2.3.4:1111".into(), "5.6.7.8:443".into()));
        let found = addresses(b"PROXY TCP6 2001:db8::1 ::1 1 2\r\n").unwrap();
        assert_eq!(found, ("[2001:db8::1]:1".into(), "[::1]:2".into()));
        assert_eq!(addresses(b"PROXY UNKNOWN\r\n"), None);
        assert_eq!(addresses(b"PROXY UNKNOWN a b c d\r\n"), None);
        let mut two = SIGNATURE.to_vec();
        two.extend([0x21, 0x11, 0, 13, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x11, 0x01, 0xbb, 99, 7]);
        assert_eq!(addresses(&two).unwrap(), ("1.2.3.4:4369".into(), "5.6.7.8:443".into()));
        let Parsed::Whole(preamble) = parse(&two) else { panic!() };
        assert_eq!(preamble.length, two.len() - 1);
        two[12] = 0x20;
        assert_eq!(addresses(&two), None);
    }

    #[test]
    fn what_is_none() {
        for bad in [
            "PROXY\r\n",
            "PROXY TCP4 1.2.3.4\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n",
            "PROXY TCP4 ::1 ::1 1 2\r\n",
            "PROXY TCP6 ::1 1.2.3.4 1 2\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 99999 1\r\n",
            "PROXY UDP4 1.2.3.4 5.6.7.8 1 2\r\n",
            "PROXY  TCP4 1.2.3.4 5.6.7.8 1 2\r\n",
            "proxy TCP4 1.2.3.4 5.6.7.8 1 2\r\n",
            "GET / HTTP/1.1\r\n",
            "\r\n\r\nGET",
        ] {
            assert_eq!(parse(bad.as_bytes()), Parsed::Bad, "{bad:?}");
        }
        assert_eq!(parse(&[b"PROXY TCP4 ".as_slice(), &[b'1'; 100]].concat()), Parsed::Bad);
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(start in 0usize..3, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let start: &[u8] = [b"", PREFIX, SIGNATURE][start];
            let all = [start, &bytes].concat();
            if let Parsed::Whole(preamble) = parse(&all) {
                prop_assert!(preamble.length <= all.len());
                for cut in 0..preamble.length {
                    prop_assert_eq!(parse(&all[..cut]), Parsed::Incomplete);
                }
            }
        }
    }
}
