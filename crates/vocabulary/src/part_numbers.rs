//! The numbers of the parts that an object is made of, as they stand in its metadata: `1-3,7`.
//!
//! Always holds: numbers ascend, ranges neither touch nor overlap; a text that says otherwise is refused as a whole, so
//! that no part is taken for one that is of no use.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Numbers of parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartNumbers(Vec<RangeInclusive<u32>>);

/// A text that names no numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("numbers of parts are not ascending ranges like 1-3,7")]
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
}

impl fmt::Display for PartNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            match range.start() == range.end() {
                true => write!(f, "{}", range.start())?,
                false => write!(f, "{}-{}", range.start(), range.end())?,
            }
        }
        Ok(())
    }
}

impl FromStr for PartNumbers {
    type Err = PartNumbersError;

    fn from_str(text: &str) -> Result<Self, PartNumbersError> {
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
        ] {
            assert_eq!(bad.parse::<PartNumbers>(), Err(PartNumbersError), "{bad}");
        }
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
