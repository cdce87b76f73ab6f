//! Networks: addresses that share their first bits.
//!
//! Always holds: an address that IPv6 only wraps (`::ffff:10.0.0.7`) is the IPv4 address.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

/// Bits of an IPv6 address before the IPv4 address that it wraps.
const WRAPPING: u8 = 96;

/// An address, or all addresses that begin with the same bits (`10.0.0.0/8`, `fd00::/8`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpNetwork {
    address: IpAddr,
    bits: u8,
}

/// A text that is neither an address nor a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an address nor a network such as 10.0.0.0/8")]
pub struct IpNetworkError(pub String);

impl FromStr for IpNetwork {
    type Err = IpNetworkError;

    fn from_str(text: &str) -> Result<Self, IpNetworkError> {
        Self::read(text).ok_or_else(|| IpNetworkError(text.to_owned()))
    }
}

impl IpNetwork {
    fn read(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(all);
        match address.to_canonical() {
            wrapped if wrapped != address && (WRAPPING..=all).contains(&bits) => Some(Self {
                address: wrapped,
                bits: bits - WRAPPING,
            }),
            _ => (bits <= all).then_some(Self { address, bits }),
        }
    }

    /// Whether `address` is in it.
    pub fn has(&self, address: IpAddr) -> bool {
        let (network, address, width) = match (self.address, address.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
            _ => return false,
        };
        let rest = width - u32::from(self.bits);
        // A shift by all bits does not exist.
        network.checked_shr(rest).unwrap_or(0) == address.checked_shr(rest).unwrap_or(0)
    }
}

/// Any number of networks; clones share them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IpNetworks(Arc<[IpNetwork]>);

impl IpNetworks {
    /// Whether `address` is in one of them.
    pub fn has(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.has(address))
    }
}

impl FromStr for IpNetworks {
    type Err = IpNetworkError;

    /// Separated by white space or commas.
    fn from_str(text: &str) -> Result<Self, IpNetworkError> {
        let entries = text.split(|c: char| c.is_whitespace() || c == ',');
        let entries = entries.filter(|entry| !entry.is_empty());
        Ok(Self(entries.map(str::parse).collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn which_addresses_are_in_which_networks() {
        for (networks, address, expected) in [
            ("", "10.0.0.1", false),
            ("10.0.0.7", "10.0.0.7", true),
            ("10.0.0.7", "10.0.0.8", false),
            ("10.0.0.7", "::ffff:10.0.0.7", true),
            ("::ffff:10.0.0.7", "10.0.0.7", true),
            ("::ffff:10.0.0.0/104", "10.1.2.3", true),
            ("10.0.0.0/8 127.0.0.1", "10.255.0.1", true),
            ("10.0.0.0/8, 127.0.0.1", "127.0.0.1", true),
            ("10.0.0.0/8,127.0.0.1", "11.0.0.1", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("0.0.0.0/0", "fd00::1", false),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe00::1", false),
            ("::/0", "::1", true),
        ] {
            let known: IpNetworks = networks.parse().unwrap();
            assert_eq!(known.has(address.parse().unwrap()), expected, "{networks} {address}");
        }
    }

    #[test]
    fn what_is_no_network_is_named() {
        for bad in ["10.0.0.0/33", "::/129", "a/8", "name", "10.0.0.0/", "10.0.0.7:80"] {
            assert_eq!(
                format!("::1 {bad}").parse::<IpNetworks>(),
                Err(IpNetworkError(bad.into()))
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_judged(text in "\\PC*", address in any::<u128>()) {
            if let Ok(networks) = text.parse::<IpNetworks>() {
                networks.has(std::net::Ipv6Addr::from_bits(address).into());
            }
        }
    }
}
