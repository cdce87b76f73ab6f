//! Which number comes next: COSBench's selectors.
//!
//! | written | draws |
//! |---|---|
//! | `c(7)` | 7 |
//! | `u(1,100)` | any of 1 to 100, all alike |
//! | `r(1,100)` | 1, 2, … 100 and again from 1, each worker for itself |
//! | `s(1,100)` | the same, all workers together |
//! | `h(1\|64\|10,64\|512\|20)` | any of 1 to 64 ten times while any of 64 to 512 twenty times |
//! | `z(1,100)`, `z(1,100,0.9)` | any of 1 to 100, the n-th in proportion to 1/n^0.99 (or 1/n^0.9) |
//!
//! The last one is not COSBench's.
//! Always holds: what is drawn lies in the selector's bounds; there is at least one number.

use super::mistake::WorkloadMistake;
use super::parameters::Parameters;

/// How numbers are drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Selector {
    /// One number.
    Constant(u64),
    /// All alike.
    Uniform(Span),
    /// One after the other, for each worker.
    Range(Span),
    /// One after the other, for all workers together.
    Sequential(Span),
    /// Spans by their weights.
    Histogram(Vec<WeightedSpan>),
    /// The first ones most often.
    Zipf(Span, f64),
}

impl Eq for Selector {}

/// Numbers from `first` to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The least.
    pub first: u64,
    /// The greatest.
    pub last: u64,
}

/// A span and how often it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightedSpan {
    /// Its numbers.
    pub span: Span,
    /// In proportion to the weights of all spans.
    pub weight: u64,
}

impl Span {
    /// From `first` to `last`, unless there is nothing between them.
    pub fn new(first: u64, last: u64) -> Option<Self> {
        (first <= last && last < u64::MAX).then_some(Self { first, last })
    }

    /// How many numbers there are; at least one.
    pub fn count(self) -> u64 {
        self.last - self.first + 1
    }

    /// The number at a position; after the last one it begins anew.
    pub fn at(self, position: u64) -> u64 {
        self.first + position % self.count()
    }

    fn draw(self, dice: &mut fastrand::Rng) -> u64 {
        dice.u64(self.first..=self.last)
    }

    /// The `part`th of `parts` pieces, which differ by one number at most; none where there are fewer numbers than
    /// parts.
    pub fn part(self, part: u64, parts: u64) -> Option<Self> {
        let bound = |part: u64| u128::from(self.count()) * u128::from(part) / u128::from(parts.max(1));
        // The bounds lie below the count.
        let (from, to) = (bound(part) as u64, bound(part + 1) as u64);
        (from < to).then(|| Self {
            first: self.first + from,
            last: self.first + to - 1,
        })
    }
}

impl std::fmt::Display for Selector {
    /// As it is written.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut two = |letter: char, span: &Span| write!(f, "{letter}({},{})", span.first, span.last);
        match self {
            Self::Constant(number) => write!(f, "c({number})"),
            Self::Uniform(span) => two('u', span),
            Self::Range(span) => two('r', span),
            Self::Sequential(span) => two('s', span),
            Self::Histogram(spans) => {
                let all: Vec<String> = (spans.iter())
                    .map(|one| format!("{}|{}|{}", one.span.first, one.span.last, one.weight))
                    .collect();
                write!(f, "h({})", all.join(","))
            }
            Self::Zipf(span, skew) => write!(f, "z({},{},{skew})", span.first, span.last),
        }
    }
}

impl Selector {
    /// Reads one, as in the table above.
    pub fn parse(name: &str, text: &str) -> Result<Self, WorkloadMistake> {
        const ALLOWED: &str = "c(n), u(a,b), r(a,b), s(a,b), z(a,b) or h(a|b|weight,…) with whole numbers and a <= b";
        let wrong = || WorkloadMistake::value(name, text, ALLOWED);
        let (letter, inside) = split(text).ok_or_else(wrong)?;
        let words: Vec<&str> = inside.split(',').map(str::trim).collect();
        let span = |words: &[&str]| -> Option<Span> {
            let [first, last] = words else { return None };
            Span::new(first.parse().ok()?, last.parse().ok()?)
        };
        let read = match (letter, words.as_slice()) {
            ("c", [number]) => number
                .parse()
                .ok()
                .filter(|number| *number < u64::MAX)
                .map(Self::Constant),
            ("u", words) => span(words).map(Self::Uniform),
            ("r", words) => span(words).map(Self::Range),
            ("s", words) => span(words).map(Self::Sequential),
            ("z", [first, last]) => span(&[first, last]).map(|span| Self::Zipf(span, 0.99)),
            ("z", [first, last, skew]) => {
                let skew = skew.parse().ok().filter(|skew: &f64| (0.0..=10.0).contains(skew));
                span(&[first, last])
                    .zip(skew)
                    .map(|(span, skew)| Self::Zipf(span, skew))
            }
            ("h", words) => words
                .iter()
                .map(|word| weighted(word))
                .collect::<Option<Vec<_>>>()
                .and_then(histogram),
            _ => None,
        };
        read.ok_or_else(wrong)
    }

    /// The selector of a parameter that must be there.
    pub fn of(parameters: &Parameters, name: &str) -> Result<Self, WorkloadMistake> {
        Self::parse(name, parameters.need(name)?)
    }

    /// The next number. `position` counts what was drawn: of the worker for a range, of all for a sequence.
    pub fn draw(&self, dice: &mut fastrand::Rng, position: u64) -> u64 {
        match self {
            Self::Constant(number) => *number,
            Self::Uniform(span) => span.draw(dice),
            Self::Range(span) | Self::Sequential(span) => span.at(position),
            Self::Histogram(spans) => {
                let total: u64 = spans.iter().map(|one| one.weight).sum();
                let mut mark = dice.u64(0..total.max(1));
                for one in spans {
                    if mark < one.weight {
                        return one.span.draw(dice);
                    }
                    mark -= one.weight;
                }
                spans.last().map_or(0, |one| one.span.last)
            }
            Self::Zipf(span, skew) => span.first + zipf(span.count(), *skew, dice) - 1,
        }
    }

    /// All numbers it may draw, from the least to the greatest.
    pub fn span(&self) -> Span {
        match self {
            Self::Constant(number) => Span {
                first: *number,
                last: *number,
            },
            Self::Uniform(span) | Self::Range(span) | Self::Sequential(span) | Self::Zipf(span, _) => *span,
            Self::Histogram(spans) => Span {
                first: spans.iter().map(|one| one.span.first).min().unwrap_or(0),
                last: spans.iter().map(|one| one.span.last).max().unwrap_or(0),
            },
        }
    }

    /// What a worker has of it where names are divided; none where there are more workers than numbers.
    pub fn part(&self, part: u64, parts: u64) -> Option<Self> {
        Some(match self {
            Self::Uniform(span) => Self::Uniform(span.part(part, parts)?),
            Self::Range(span) => Self::Range(span.part(part, parts)?),
            Self::Zipf(span, skew) => Self::Zipf(span.part(part, parts)?, *skew),
            shared => shared.clone(),
        })
    }

    /// Whether it goes through its numbers one after the other.
    pub fn enumerates(&self) -> bool {
        matches!(self, Self::Range(_) | Self::Sequential(_))
    }

    /// The mean of what it draws.
    pub fn mean(&self) -> f64 {
        let middle = |span: Span| (span.first as f64 + span.last as f64) / 2.0;
        match self {
            Self::Histogram(spans) => {
                let total: u64 = spans.iter().map(|one| one.weight).sum();
                spans
                    .iter()
                    .map(|one| middle(one.span) * one.weight as f64)
                    .sum::<f64>()
                    / total as f64
            }
            other => middle(other.span()),
        }
    }
}

/// `u(1,2)` as `u` and `1,2`.
fn split(text: &str) -> Option<(&str, &str)> {
    let (letter, rest) = text.trim().split_once('(')?;
    Some((letter.trim(), rest.trim_end().strip_suffix(')')?))
}

fn weighted(text: &str) -> Option<WeightedSpan> {
    let words: Vec<&str> = text.split('|').map(str::trim).collect();
    let [first, last, weight] = words.as_slice() else {
        return None;
    };
    Some(WeightedSpan {
        span: Span::new(first.parse().ok()?, last.parse().ok()?)?,
        weight: weight.parse::<u32>().ok()?.into(),
    })
}

fn histogram(spans: Vec<WeightedSpan>) -> Option<Selector> {
    spans
        .iter()
        .any(|one| one.weight > 0)
        .then_some(Selector::Histogram(spans))
}

/// A number from 1 to `count`, the n-th in proportion to 1/n^skew.
///
/// Rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM Transactions on Modeling and Computer Simulation 6 (1996). It takes the same time for any count.
fn zipf(count: u64, skew: f64, dice: &mut fastrand::Rng) -> u64 {
    // The integral of x^-skew, from 1 on, and its inverse; by logarithms, so that a skew of 1 is no exception.
    let integral = |x: f64| {
        let log = x.ln();
        relative_power((1.0 - skew) * log) * log
    };
    let inverse = |y: f64| {
        let scaled = (y * (1.0 - skew)).max(-1.0);
        (relative_logarithm(scaled) * y).exp()
    };
    let density = |x: f64| (-skew * x.ln()).exp();
    let (low, high) = (integral(1.5) - 1.0, integral(count as f64 + 0.5));
    let shortcut = 2.0 - inverse(integral(2.5) - density(2.0));
    loop {
        let mark = high + dice.f64() * (low - high);
        let x = inverse(mark);
        let number = x.round().clamp(1.0, count as f64);
        if number - x <= shortcut || mark >= integral(number + 0.5) - density(number) {
            return number as u64;
        }
    }
}

/// (e^x - 1) / x, and 1 at 0.
fn relative_power(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// ln(1 + x) / x, and 1 at 0.
fn relative_logarithm(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::{Selector, Span};
    use proptest::prelude::*;

    fn selector(text: &str) -> Selector {
        Selector::parse("objects", text).unwrap()
    }

    #[test]
    fn selectors_are_read() {
        assert_eq!(selector("c(5)"), Selector::Constant(5));
        assert_eq!(
            selector(" u( 1, 100 ) "),
            Selector::Uniform(Span { first: 1, last: 100 })
        );
        assert_eq!(
            selector("h(1|64|10,64|512|20)").mean(),
            (32.5 * 10.0 + 288.0 * 20.0) / 30.0
        );
        for wrong in [
            "",
            "u",
            "u(1)",
            "u(2,1)",
            "x(1,2)",
            "c(-1)",
            "h()",
            "h(1|2)",
            "h(1|2|0)",
            "u(1,2)KB",
            "z(1,2,99)",
        ] {
            let refused = Selector::parse("objects", wrong).unwrap_err().to_string();
            assert!(
                refused.starts_with(&format!("objects=\"{wrong}\": expected c(n), u(a,b)")),
                "{refused}"
            );
        }
    }

    #[test]
    fn ranges_begin_anew() {
        let (mut dice, range) = (fastrand::Rng::with_seed(1), selector("r(3,5)"));
        let drawn: Vec<u64> = (0..5).map(|position| range.draw(&mut dice, position)).collect();
        assert_eq!(drawn, [3, 4, 5, 3, 4]);
    }

    #[test]
    fn weights_and_popularity_are_kept() {
        let mut dice = fastrand::Rng::with_seed(7);
        let mut low = 0;
        for _ in 0..100_000 {
            low += u64::from(selector("h(1|64|10,65|512|30)").draw(&mut dice, 0) <= 64);
        }
        assert!((24_000..26_000).contains(&low), "{low}");
        for skew in [0.5, 0.99, 1.0, 1.5] {
            let zipf = Selector::Zipf(Span { first: 1, last: 1000 }, skew);
            let mut counts = [0_u32; 1001];
            (0..200_000).for_each(|_| counts[zipf.draw(&mut dice, 0) as usize] += 1);
            let total: f64 = (1..=1000).map(|n| f64::from(n).powf(-skew)).sum();
            for n in [1_u32, 2, 10, 100] {
                let expected = f64::from(n).powf(-skew) / total * 200_000.0;
                let found = f64::from(counts[n as usize]);
                assert!(
                    (found - expected).abs() < 5.0 * expected.sqrt() + 1.0,
                    "{skew}: {n} came {found} times, not {expected}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn parts_are_all_of_it_once(first in 0_u64..1000, count in 1_u64..500, parts in 1_u64..60) {
            let span = Span { first, last: first + count - 1 };
            let all: Vec<u64> = (0..parts)
                .filter_map(|part| span.part(part, parts))
                .flat_map(|part| part.first..=part.last)
                .collect();
            prop_assert_eq!(all, (span.first..=span.last).collect::<Vec<_>>());
        }
    }
}
