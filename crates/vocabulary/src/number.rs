//! Numbers that must not be mistaken for one another: [`Partition`], [`DeviceId`], [`ByteCount`].
//!
//! Always holds: printing and parsing are inverse; a sign, a space or an empty text is no number.
//! Deliberately absent: which partition a name falls into (`hash_path.rs`), policy numbers (`policy.rs`).

use std::fmt;
use std::str::FromStr;

/// Why a text is not one of these numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a number in decimal digits")]
pub struct NumberError(String);

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl From<$inner> for $name {
            fn from(number: $inner) -> Self {
                Self(number)
            }
        }

        impl FromStr for $name {
            type Err = NumberError;

            fn from_str(text: &str) -> Result<Self, NumberError> {
                let digits = text.bytes().all(|byte| byte.is_ascii_digit());
                let number = digits.then(|| text.parse().ok()).flatten();
                number.map(Self).ok_or_else(|| NumberError(text.chars().take(64).collect()))
            }
        }
    };
}

number! {
    /// A partition of a ring: the first bits of a path's hash, as the ring's power says.
    Partition(u32)
}

number! {
    /// The number of a device in its ring, unique in that ring.
    DeviceId(u32)
}

number! {
    /// A number of bytes.
    ByteCount(u64)
}

impl Partition {
    /// The position of this partition in a ring's table.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The partition whose directory is called `name`: a number in decimal digits without leading zeros.
    pub fn from_directory(name: &str) -> Option<Self> {
        let partition: Self = name.parse().ok()?;
        (partition.to_string() == name).then_some(partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "-1", "+1", " 1", "1 ", "0x1", "4294967296", "٣"] {
            assert!(text.parse::<Partition>().is_err(), "{text:?}");
        }
        assert_eq!(Partition::from_directory("7"), Some(Partition(7)));
        assert_eq!(Partition::from_directory("07"), None);
    }

    proptest! {
        #[test]
        fn parsing_is_the_inverse_of_printing(number: u64) {
            prop_assert_eq!(ByteCount(number).to_string().parse(), Ok(ByteCount(number)));
        }
    }
}
