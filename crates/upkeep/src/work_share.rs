//! Which part of the work is this process's, where several divide it by a hash.

use md5::{Digest, Md5};

/// Part `number` of `of`; of one part or none, everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkShare {
    /// Counted from 0.
    pub(crate) number: u64,
    /// How many divide the work.
    pub(crate) of: u64,
}

impl WorkShare {
    /// Whether what has this hash is in the part.
    pub(crate) fn has(self, hash: u128) -> bool {
        self.of <= 1 || hash % u128::from(self.of) == u128::from(self.number)
    }

    /// Whether what has this name is in the part, as OpenStack's daemons divide names.
    pub(crate) fn has_name(self, name: &str) -> bool {
        let hash: [u8; 16] = Md5::digest(name.as_bytes()).into();
        self.has(u128::from_be_bytes(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The containers that OpenStack Swift 2.38.3's reaper took on the first, second and third primary.
    #[test]
    fn shares_are_openstacks() {
        for (number, expected) in [(0, vec!["c3"]), (1, vec!["c1", "c5"]), (2, vec!["c0", "c2", "c4"])] {
            let share = WorkShare { number, of: 3 };
            let names = (0..6).map(|number| format!("c{number}"));
            assert_eq!(names.filter(|name| share.has_name(name)).collect::<Vec<_>>(), expected);
        }
    }
}
