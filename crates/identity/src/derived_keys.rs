//! Signing keys that this thread has derived lately.
//!
//! A key is good for a day, and deriving it takes four HMACs, most of what the verification of a signature costs.
//! Always holds: what is remembered of a secret is a hash of it, and a key is found only under the hash of the very
//! secret and scope that it was derived of, so that a changed secret finds nothing. Memory is bounded.

use lru::LruCache;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::num::NonZeroUsize;

/// How many keys each thread remembers; each takes about 100 bytes.
const MOST: NonZeroUsize = NonZeroUsize::new(256).unwrap();

thread_local! {
    static DERIVED: RefCell<LruCache<[u8; 32], [u8; 32]>> = RefCell::new(LruCache::new(MOST));
}

/// The key that belongs to these parts, the secret among them; `derive` makes it where it is not known.
pub(crate) fn find_or(parts: [&str; 4], derive: impl FnOnce() -> [u8; 32]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let name = hash.finalize().into();
    let known = DERIVED.with_borrow_mut(|derived| derived.get(&name).copied());
    known.unwrap_or_else(|| {
        let key = derive();
        DERIVED.with_borrow_mut(|derived| derived.put(name, key));
        key
    })
}

#[cfg(test)]
mod tests {
    use super::{MOST, find_or};

    #[test]
    fn a_key_is_derived_once_for_each_secret_and_scope() {
        let derived = std::cell::Cell::new(0_u8);
        let find = |parts| {
            find_or(parts, || {
                derived.set(derived.get() + 1);
                [derived.get(); 32]
            })[0]
        };
        assert_eq!(find(["secret", "20261126", "r", "s3"]), 1);
        assert_eq!(find(["secret", "20261126", "r", "s3"]), 1);
        assert_eq!(find(["secret", "20261127", "r", "s3"]), 2);
        assert_eq!(find(["other", "20261126", "r", "s3"]), 3);
        // Parts keep their borders.
        assert_eq!(find(["secret2", "0261126", "r", "s3"]), 4);
    }

    #[test]
    fn only_so_many_are_remembered() {
        for number in 0..=MOST.get() {
            find_or([&number.to_string(), "", "", ""], || [1; 32]);
        }
        assert_eq!(find_or(["0", "", "", ""], || [2; 32]), [2; 32]);
    }
}
