//! The numbers of the parts that an object is made of, as they stand in its metadata.
//!
//! ```text
//! 1-3,7        ranges
//! bits:jg      a bitmap, where that is shorter: base64url without padding; number N is bit N, the first of a byte its
//!              lowest; here 1, 2, 3 and 7
//! ```
//! Ten thousand numbers take 1,673 bytes at most. Always holds: numbers ascend, ranges neither touch nor overlap, the
//! last byte of a bitmap is not zero; a text that says otherwise is refused as a whole, so that no part is taken for
//! one that is of no use.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Numbers of parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartNumbers(Vec<RangeInclusive<u32>>);

/// What a bitmap begins with.
const BITS: &str = "bits:";

/// A text that names no numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("numbers of parts are neither ascending ranges like 1-3,7 nor a bitmap like bits:jg")]
pub struct PartNumbersError;

impl PartNumbers {
    /// Of numbers that ascend.
    pub fn of_ascending(numbers: impl IntoIterator<Item = u32>) -> Self {
        let mut ranges: Vec<RangeInclusive<u32>> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some(last) if last.end().checked_add(1) == Some(number) => *last = *last.start()..=number,
                _ => ranges.push(number..=number),
            }
        }
        Self(ranges)
    }

    /// Whether a number is among them.
    pub fn contain(&self, number: u32) -> bool {
        let behind = self.0.partition_point(|range| *range.end() < number);
        self.0.get(behind).is_some_and(|range| range.contains(&number))
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().cloned().flatten()
    }

    /// `1-3,7`.
    fn ranges(&self) -> String {
        let range = |range: &RangeInclusive<u32>| match range.start() == range.end() {
            true => range.start().to_string(),
            false => format!("{}-{}", range.start(), range.end()),
        };
        self.0.iter().map(range).collect::<Vec<_>>().join(",")
    }

    /// The bitmap, if it has fewer than so many bytes.
    fn bitmap_below(&self, length: usize) -> Option<String> {
        let last = usize::try_from(*self.0.last()?.end()).ok()?;
        let bytes = last / 8 + 1;
        (BITS.len() + (bytes * 4).div_ceil(3) < length).then(|| {
            let mut bitmap = vec![0_u8; bytes];
            for number in self.iter() {
                if let Some(byte) = bitmap.get_mut(number as usize / 8) {
                    *byte |= 1 << (number % 8);
                }
            }
            format!("{BITS}{}", URL_SAFE_NO_PAD.encode(bitmap))
        })
    }

    fn of_bitmap(text: &str) -> Result<Self, PartNumbersError> {
        let bitmap = URL_SAFE_NO_PAD.decode(text).map_err(|_| PartNumbersError)?;
        if bitmap.last().is_none_or(|byte| *byte == 0) {
            return Err(PartNumbersError);
        }
        let bits = (0_u32..).zip(bitmap.iter()).flat_map(|(at, byte)| {
            let is_set = move |bit: &u32| byte >> bit & 1 == 1;
            (0..8).filter(is_set).map(move |bit| at * 8 + bit)
        });
        Ok(Self::of_ascending(bits))
    }

    fn of_ranges(text: &str) -> Result<Self, PartNumbersError> {
        let mut ranges: Vec<RangeInclusive<u32>> = Vec::new();
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
                true => text.parse::<u32>().map_err(|_| PartNumbersError),
                false => Err(PartNumbersError),
            };
            let (first, last) = (number(first)?, number(last)?);
            let is_behind = ranges
                .last()
                .is_none_or(|before| u64::from(*before.end()) + 1 < first.into());
            if first > last || !is_behind {
                return Err(PartNumbersError);
            }
            ranges.push(first..=last);
        }
        Ok(Self(ranges))
    }
}

impl fmt::Display for PartNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.ranges();
        f.write_str(&self.bitmap_below(ranges.len()).unwrap_or(ranges))
    }
}

impl FromStr for PartNumbers {
    type Err = PartNumbersError;

    fn from_str(text: &str) -> Result<Self, PartNumbersError> {
        match text.strip_prefix(BITS) {
            Some(bitmap) => Self::of_bitmap(bitmap),
            None => Self::of_ranges(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn ranges_are_read_whole_or_not_at_all() {
        for (text, inside, outside) in [
            ("1-3,7", &[1, 2, 3, 7][..], &[0, 4, 6, 8][..]),
            ("5", &[5], &[4, 6]),
            ("4294967295", &[u32::MAX], &[1]),
        ] {
            let numbers: PartNumbers = text.parse().unwrap();
            assert_eq!(numbers.to_string(), text);
            assert!(inside.iter().all(|number| numbers.contain(*number)), "{text}");
            assert!(!outside.iter().any(|number| numbers.contain(*number)), "{text}");
        }
        for bad in [
            "",
            ",",
            "1,",
            "3-1",
            "1-3,3",
            "1-3,4",
            "2,1",
            "+1",
            "1-",
            "-1",
            "4294967296",
            "1 ",
            "x",
            "bits:",
            "bits:jgA",
            "bits:jg==",
            "bits:j",
            "bits:j!",
            "bits:1-3",
            "jg",
        ] {
            assert_eq!(bad.parse::<PartNumbers>(), Err(PartNumbersError), "{bad}");
        }
    }

    #[test]
    fn scattered_numbers_are_bits() {
        assert_eq!("bits:jg".parse(), Ok(PartNumbers::of_ascending([1, 2, 3, 7])));
        let thirds = PartNumbers::of_ascending((1..=10_000).step_by(3));
        assert_eq!(thirds.to_string().len(), 1673);
        assert_eq!(thirds.to_string().parse(), Ok(thirds.clone()));
        assert!(thirds.contain(10_000) && !thirds.contain(9_999));
        // What was stored before there were bitmaps is read as ever.
        assert_eq!(thirds.ranges().parse(), Ok(thirds));
        // Far apart they would be mostly zeros.
        let two = PartNumbers::of_ascending([1, u32::MAX]);
        assert_eq!(two.to_string(), "1,4294967295");
    }

    proptest! {
        #[test]
        fn printing_and_reading_are_inverse(numbers in proptest::collection::btree_set(0_u32..200, 1..60)) {
            let found = PartNumbers::of_ascending(numbers.iter().copied());
            prop_assert_eq!(found.to_string().parse(), Ok(found.clone()));
            let contained: BTreeSet<u32> = (0..250).filter(|number| found.contain(*number)).collect();
            prop_assert_eq!(contained, numbers);
        }
    }
}
