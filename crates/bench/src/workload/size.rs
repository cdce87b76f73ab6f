//! How long bodies are: a selector and a unit, `u(2,10)MB`.
//!
//! Units are COSBench's, to the base of 1000.

use super::mistake::WorkloadMistake;
use super::selector::Selector;

/// Sizes of bodies.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    numbers: Selector,
    /// Bytes.
    unit: u64,
}

const UNITS: [(&str, u64); 5] = [
    ("B", 1),
    ("KB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

impl std::fmt::Display for Sizes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unit = UNITS
            .iter()
            .find(|(_, unit)| *unit == self.unit)
            .map_or("B", |(word, _)| word);
        write!(f, "{}{unit}", self.numbers)
    }
}

impl Sizes {
    /// Reads `c(64)KB`, `u(1,2)MB` or `h(…)KB`.
    pub fn parse(name: &str, text: &str) -> Result<Self, WorkloadMistake> {
        const ALLOWED: &str =
            "a selector and a unit: c(64)KB, u(1,10)MB or h(1|64|10,64|512|20)KB, with B, KB, MB or GB";
        let wrong = || WorkloadMistake::value(name, text, ALLOWED);
        let (selector, unit) = text.split_at(text.rfind(')').ok_or_else(wrong)? + 1);
        let unit = unit.trim();
        let (_, unit) = UNITS
            .into_iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(unit))
            .ok_or_else(wrong)?;
        let numbers = Selector::parse(name, selector).map_err(|_| wrong())?;
        match numbers.span().last.checked_mul(unit) {
            Some(_) => Ok(Self { numbers, unit }),
            None => Err(wrong()),
        }
    }

    /// Always so many bytes.
    pub fn constant(bytes: u64) -> Self {
        let is_whole = |(_, unit): &&(&str, u64)| bytes > 0 && bytes.is_multiple_of(*unit);
        let unit = UNITS.iter().rfind(is_whole).map_or(1, |(_, unit)| *unit);
        Self {
            numbers: Selector::Constant(bytes / unit),
            unit,
        }
    }

    /// The next size, in bytes.
    pub fn draw(&self, dice: &mut fastrand::Rng, position: u64) -> u64 {
        self.numbers.draw(dice, position) * self.unit
    }

    /// The greatest, in bytes.
    pub fn most(&self) -> u64 {
        self.numbers.span().last * self.unit
    }

    /// The mean, in bytes.
    pub fn mean(&self) -> f64 {
        self.numbers.mean() * self.unit as f64
    }
}

/// A number of bytes from 1 on: `5MB`.
pub fn bytes(name: &str, text: &str) -> Result<u64, WorkloadMistake> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = UNITS
        .into_iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(&text[digits.len()..]));
    let number: Option<u64> = digits.trim().parse().ok().filter(|number| *number > 0);
    let size = number
        .zip(unit)
        .and_then(|(number, (_, unit))| number.checked_mul(unit));
    size.ok_or_else(|| WorkloadMistake::value(name, text, "bytes with a unit, from 1 on: 64KB or 5MB"))
}

#[cfg(test)]
mod tests {
    use super::Sizes;

    #[test]
    fn units_are_decimal() {
        let mut dice = fastrand::Rng::with_seed(1);
        assert_eq!(Sizes::parse("sizes", "c(64)KB").unwrap().draw(&mut dice, 0), 64_000);
        assert_eq!(Sizes::parse("sizes", "u(2,10)mb").unwrap().mean(), 6_000_000.0);
        assert_eq!(
            Sizes::parse("sizes", "h(1|64|10,64|512|20,512|2048|30)KB")
                .unwrap()
                .most(),
            2_048_000
        );
        for wrong in ["64KB", "c(64)", "c(64)KiB", "c(99999999999999999)GB", "c(x)KB"] {
            let refused = Sizes::parse("sizes", wrong).unwrap_err().to_string();
            assert!(
                refused.starts_with(&format!("sizes=\"{wrong}\": expected a selector and a unit")),
                "{refused}"
            );
        }
    }
}
