//! Transaction ids: `tx`, 21 random hexadecimal digits, `-`, the second in ten, and a suffix.
//!
//! The same id stands in the client's answer, in the proxy's line and in every storage server's.

use std::fmt::Write;
use vocabulary::{hex, names::quote};

/// How much of a client's `X-Trans-Id-Extra` is kept.
const LONGEST_EXTRA: usize = 32;

/// Makes an id. `suffix` is the configuration's `trans_id_suffix`, `extra` the client's
/// `X-Trans-Id-Extra`, of which 32 characters are added.
pub fn transaction_id(random: &[u8; 11], seconds: u64, suffix: &str, extra: Option<&str>) -> String {
    let mut id = String::with_capacity(64);
    id.push_str("tx");
    hex::push(&mut id, &random[..10]);
    // Writing to a String cannot fail.
    let _ = write!(id, "{:x}-{seconds:010x}", random[10] >> 4);
    if !suffix.is_empty() {
        id.push_str(&quote(suffix));
    }
    if let Some(extra) = extra.filter(|e| !e.is_empty()) {
        let kept: String = extra.chars().take(LONGEST_EXTRA).collect();
        let _ = write!(id, "-{}", quote(&kept));
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_as_openstack_makes_them() {
        let random = [0x71, 0xb5, 0x05, 0xd5, 0x07, 0x70, 0x4d, 0x35, 0x86, 0x66, 0x5f];
        let id = |suffix, extra| transaction_id(&random, 0x6b00_3bb1, suffix, extra);
        assert_eq!(id("", None), "tx71b505d507704d3586665-006b003bb1");
        assert_eq!(
            id("-my suf/ü", None),
            "tx71b505d507704d3586665-006b003bb1-my%20suf/%C3%BC"
        );
        assert_eq!(id("-s", Some("abc")), "tx71b505d507704d3586665-006b003bb1-s-abc");
        assert_eq!(id("-s", Some("")), "tx71b505d507704d3586665-006b003bb1-s");
        assert_eq!(id("", Some(&"x".repeat(50))).len(), 34 + 33);
    }
}
