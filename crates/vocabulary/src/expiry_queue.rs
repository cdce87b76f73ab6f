//! The queue that says what expires when: a hidden account, whose containers are days and whose objects are named
//! `<when>-<account>/<container>/<object>`.
//!
//! A container's name is shifted by a number below 100 that depends on the object, so that all nodes agree on it and
//! one day's expirations spread over many containers.

use crate::{EntityPath, PathHash};

/// The account, unless an operator names another.
pub const ACCOUNT: &str = ".expiring_objects";
/// How many seconds of expirations share a container, unless an operator says so.
pub const DIVISOR: u64 = 86_400;
/// Beyond this a queue row's name would no longer sort by time.
const LATEST: i64 = 9_999_999_999;

/// The container for the object of this hash that expires at `at`.
pub fn container(at: i64, hash: &PathHash, divisor: u64) -> String {
    let divisor = i64::try_from(divisor).unwrap_or(i64::MAX).max(1);
    let shift = (u128::from_be_bytes(hash.0) % 100) as i64;
    let at = at.clamp(0, LATEST);
    format!("{:010}", (at / divisor * divisor - shift).clamp(0, LATEST))
}

/// The name in the container of an object that expires at `at`.
pub fn task(at: i64, path: &EntityPath) -> String {
    format!("{:010}-{}", at.clamp(0, LATEST), &path.path()[1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HashPrefix;
    use proptest::prelude::*;

    /// Recorded from OpenStack's object server.
    #[test]
    fn the_container_is_openstacks() {
        let prefix = HashPrefix::new("before", "after").unwrap();
        let hash = prefix.object("a", "c", "r1795175080");
        assert_eq!(container(1_795_175_085, &hash, 86_400), "1795132718");
        assert_eq!(container(LATEST, &hash, 86_400), "9999935918");
        let path = EntityPath::account("a").with_container("c").with_object("r1795175080");
        assert_eq!(task(1_795_175_085, &path), "1795175085-a/c/r1795175080");
    }

    proptest! {
        #[test]
        fn containers_have_ten_digits(at in i64::MIN..i64::MAX, hash: [u8; 16], divisor in 0u64..100_000) {
            prop_assert_eq!(container(at, &PathHash(hash), divisor).len(), 10);
        }
    }
}
