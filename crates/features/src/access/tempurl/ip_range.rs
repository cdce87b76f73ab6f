//! Addresses that a signed address may be used from: `10.0.0.1`, `10.0.0.0/8`, `10.0.0.0/255.0.0.0`, `2001:db8::/32`.
//!
//! Always holds: a network whose address has bits outside its mask is refused, as Python's `ip_network` does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether `from` is in the range; `false` for what is no range.
pub fn contains(range: &str, from: IpAddr) -> bool {
    let (address, mask) = range.split_once('/').map_or((range, None), |(a, m)| (a, Some(m)));
    match (address.parse(), from.to_canonical()) {
        (Ok(IpAddr::V4(network)), IpAddr::V4(from)) => contains_v4(network, mask, from),
        (Ok(IpAddr::V6(network)), IpAddr::V6(from)) => contains_v6(network, mask, from),
        _ => false,
    }
}

fn contains_v4(network: Ipv4Addr, mask: Option<&str>, from: Ipv4Addr) -> bool {
    let length = match mask {
        None => Some(32),
        Some(mask) => prefix_length(mask, 32).or_else(|| length_of_mask(mask)),
    };
    let Some(length) = length else {
        return false;
    };
    let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
    let (network, from) = (network.to_bits(), from.to_bits());
    network & !mask == 0 && from & mask == network
}

fn contains_v6(network: Ipv6Addr, mask: Option<&str>, from: Ipv6Addr) -> bool {
    let Some(length) = mask.map_or(Some(128), |mask| prefix_length(mask, 128)) else {
        return false;
    };
    let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
    let (network, from) = (network.to_bits(), from.to_bits());
    network & !mask == 0 && from & mask == network
}

fn prefix_length(text: &str, most: u32) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|length| is_number && *length <= most)
}

/// Of `255.0.0.0`, or of its opposite `0.255.255.255`.
fn length_of_mask(text: &str) -> Option<u32> {
    let bits = text.parse::<Ipv4Addr>().ok()?.to_bits();
    let of_mask = |bits: u32| (bits.leading_ones() + bits.trailing_zeros() == 32).then(|| bits.leading_ones());
    match bits {
        0 => Some(0),
        bits => of_mask(bits).or_else(|| of_mask(!bits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Each row was answered so by OpenStack Swift or by Python's `ipaddress`.
    #[test]
    fn as_openstack_reads_ranges() {
        for (range, from, expected) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("127.0.0.0/8", "127.9.9.9", true),
            ("127.0.0.1/8", "127.0.0.1", false),
            ("127.0.0.0/255.0.0.0", "127.0.0.1", true),
            ("127.0.0.0/0.255.255.255", "127.0.0.1", true),
            ("127.0.0.1/255.0.0.0", "127.0.0.1", false),
            ("127.0.0.0/255.0.255.0", "127.0.0.1", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("10.0.0.0/8", "127.0.0.1", false),
            ("127.0.0.01", "127.0.0.1", false),
            ("127.1", "127.0.0.1", false),
            ("127.0.0.0/33", "127.0.0.1", false),
            ("127.0.0.0/", "127.0.0.1", false),
            ("127.0.0.0/+8", "127.0.0.1", false),
            ("", "127.0.0.1", false),
            ("x", "127.0.0.1", false),
            ("::1", "127.0.0.1", false),
            ("127.0.0.1", "::ffff:127.0.0.1", true),
            ("2001:db8::", "2001:db8::", true),
            ("2001:db8::/127", "2001:db8::1", true),
            ("2001:db8::/127", "2001:db8::2", false),
            ("2001:db8::1/127", "2001:db8::1", false),
            ("::/0", "2001:db8::2", true),
        ] {
            assert_eq!(contains(range, from.parse().unwrap()), expected, "{range} {from}");
        }
    }

    proptest! {
        #[test]
        fn any_range_is_read(range in "[0-9a-f:./]{0,40}", text in "\\PC{0,20}", from in any::<[u8; 4]>()) {
            let _ = contains(&range, from.into());
            let _ = contains(&text, from.into());
        }
    }
}
