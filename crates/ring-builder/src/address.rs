//! Addresses of servers: IPv4, IPv6 and host names, in the one spelling that stands in rings.
//!
//! Always holds: what comes out is what OpenStack's program would have stored, so that the same server is never
//! in a ring under two spellings.

use std::net::{Ipv4Addr, Ipv6Addr};
use vocabulary::Fault;

/// The longest host name there is.
const LONGEST_NAME: usize = 255;
/// The longest part of it between two points.
const LONGEST_LABEL: usize = 63;

/// An IP address, IPv6 shortened; an empty text or a host name is none.
pub fn ip(text: &str) -> Result<String, Fault> {
    if text.parse::<Ipv4Addr>().is_ok() {
        return Ok(text.to_owned());
    }
    let short = text.parse::<Ipv6Addr>().map(|address| address.to_string());
    short.map_err(|_| Fault::caller(format!("Invalid ip {text}")))
}

/// An IP address, in brackets or not, or a host name, in small letters.
pub fn address(text: &str) -> Result<String, Fault> {
    let bare = text.trim_matches(['[', ']']);
    if let Ok(address) = ip(bare) {
        return Ok(address);
    }
    if is_host_name(bare) {
        return Ok(bare.to_lowercase());
    }
    Err(Fault::caller(format!("Invalid address {text}")))
}

/// How an address is shown before a port.
pub fn before_port(address: &str) -> String {
    if address.contains(':') {
        format!("[{address}]")
    } else {
        address.to_owned()
    }
}

fn is_host_name(text: &str) -> bool {
    if text.is_empty() || text.len() > LONGEST_NAME {
        return false;
    }
    let labels = text.strip_suffix('.').unwrap_or(text).split('.');
    labels.into_iter().all(|label| {
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=LONGEST_LABEL).contains(&label.len())
            && label.bytes().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_get_one_spelling() {
        assert_eq!(ip("10.0.0.1"), Ok("10.0.0.1".to_owned()));
        assert_eq!(ip("2001:0DB8:0:0::1"), Ok("2001:db8::1".to_owned()));
        assert_eq!(ip("300.0.0.1").unwrap_err().what, "Invalid ip 300.0.0.1");
        assert_eq!(ip("node1").unwrap_err().what, "Invalid ip node1");
        assert_eq!(
            address("[FE80::204:61FF:FE9D:F156]"),
            Ok("fe80::204:61ff:fe9d:f156".to_owned())
        );
        assert_eq!(address("Node1.Example.COM"), Ok("node1.example.com".to_owned()));
        for wrong in ["$blah#", "foo bar", "bad_ip", "", "-x", "x-.com"] {
            assert_eq!(address(wrong).unwrap_err().what, format!("Invalid address {wrong}"));
        }
        assert!(address(&"test.".repeat(51)).is_ok());
        assert!(address(&format!("{}00", &"test.".repeat(51)[..254])).is_err());
    }
}
