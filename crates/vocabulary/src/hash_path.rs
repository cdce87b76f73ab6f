//! Where a path lives: MD5 over the cluster's secret prefix, the path and its secret suffix.
//!
//! On a disk: `<objects dir>/<partition>/<last three hex digits>/<32 hex digits>/`. The prefix and
//! suffix come from `swift.conf` and can never change once data exists.
//! Always holds: two parts of a cluster with the same [`HashPrefix`] find the same place.

use crate::{Partition, hex};
use md5::{Digest, Md5};
use std::fmt;

/// The secrets of `[swift-hash]` in `swift.conf` that every node of a cluster shares.
#[derive(Clone, PartialEq, Eq)]
pub struct HashPrefix {
    prefix: Vec<u8>,
    suffix: Vec<u8>,
}

impl HashPrefix {
    /// Both may not be empty at once: Swift refuses such a cluster, so that paths cannot be guessed.
    pub fn new(prefix: impl Into<Vec<u8>>, suffix: impl Into<Vec<u8>>) -> Option<Self> {
        let (prefix, suffix) = (prefix.into(), suffix.into());
        (!prefix.is_empty() || !suffix.is_empty()).then_some(Self { prefix, suffix })
    }

    /// The hash of an account.
    pub fn account(&self, account: &str) -> PathHash {
        self.hash(&[account])
    }

    /// The hash of a container.
    pub fn container(&self, account: &str, container: &str) -> PathHash {
        self.hash(&[account, container])
    }

    /// The hash of an object.
    pub fn object(&self, account: &str, container: &str, object: &str) -> PathHash {
        self.hash(&[account, container, object])
    }

    fn hash(&self, parts: &[&str]) -> PathHash {
        let mut md5 = Md5::new();
        md5.update(&self.prefix);
        for part in parts {
            md5.update(b"/");
            md5.update(part.as_bytes());
        }
        md5.update(&self.suffix);
        PathHash(md5.finalize().into())
    }
}

impl fmt::Debug for HashPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashPrefix(secret)")
    }
}

/// The 16 bytes that stand for a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathHash(pub [u8; 16]);

impl PathHash {
    /// 32 lower-case hexadecimal digits: the name of the hash directory.
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }

    /// The last three digits: the name of the suffix directory.
    pub fn suffix(&self) -> String {
        let [.., first, last] = self.0;
        let mut digits = hex::encode([first, last]);
        digits.remove(0);
        digits
    }

    /// Reads 32 hexadecimal digits, lower case as on disk.
    pub fn from_hex(text: &str) -> Option<Self> {
        hex::decode_digits(text).map(Self)
    }

    /// The first `part_power` bits: the partition in a ring of that power (1 to 32; Swift allows no other).
    pub fn partition(&self, part_power: u32) -> Partition {
        let first = u32::from_be_bytes([self.0[0], self.0[1], self.0[2], self.0[3]]);
        Partition(first.checked_shr(32 - part_power.min(32)).unwrap_or(0))
    }
}

impl fmt::Debug for PathHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

impl fmt::Display for PathHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Digits are ASCII.
        f.write_str(str::from_utf8(&hex::digits(self.0)).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected digests come from OpenStack's `hash_path` with prefix `pre` and suffix `suf`.
    #[test]
    fn hashes_as_openstack_does() {
        let cluster = HashPrefix::new("pre", "suf").unwrap();
        assert_eq!(cluster.account("a").hex(), "ab349048c4d787b8cac7454c3dc7c95b");
        assert_eq!(cluster.object("a", "c", "ö").hex(), "a9eea95c0cd8cc4a93b95cef49d53afb");
        assert!(HashPrefix::new("", "").is_none());
    }

    #[test]
    fn hex_is_inverse() {
        let hash = PathHash(*b"0123456789abcdef");
        assert_eq!(PathHash::from_hex(&hash.hex()), Some(hash));
        assert_eq!(hash.suffix(), hash.hex()[29..]);
        assert_eq!(PathHash([0xff; 16]).partition(10), Partition(1023));
        assert_eq!(PathHash::from_hex("XX"), None);
    }
}
