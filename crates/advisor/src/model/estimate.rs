//! A figure with the band that it lies in.

use serde::Serialize;

/// A figure, and its band of 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The likeliest.
    pub value: f64,
    /// The lower end of the band.
    pub low: f64,
    /// The upper end of the band.
    pub high: f64,
}

impl Estimate {
    /// A figure that is known.
    pub fn exact(value: f64) -> Self {
        Self {
            value,
            low: value,
            high: value,
        }
    }

    /// A figure that may be wrong by a factor of `1 + error` in either direction.
    pub fn with_error(value: f64, error: f64) -> Self {
        Self {
            value,
            low: value / (1.0 + error),
            high: value * (1.0 + error),
        }
    }

    /// Each of the three, changed by a function that never falls.
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self {
            value: change(self.value),
            low: change(self.low),
            high: change(self.high),
        }
    }

    /// The least of several: so is each end of the band.
    pub fn least(all: impl IntoIterator<Item = Self>) -> Self {
        let start = Self::exact(f64::INFINITY);
        all.into_iter().fold(start, |least, one| Self {
            value: least.value.min(one.value),
            low: least.low.min(one.low),
            high: least.high.min(one.high),
        })
    }

    /// How far the farther end of the band is off, relative to the figure.
    pub fn relative_error(self) -> f64 {
        match self.value == 0.0 {
            true => 0.0,
            false => ((self.high - self.value).max(self.value - self.low) / self.value).abs(),
        }
    }

    /// Whether a figure lies in the band.
    pub fn holds(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// A number with three digits that matter, large ones by powers of ten.
pub fn readable(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => "no bound".to_owned(),
        size if size >= 1e7 => format!("{value:.1e}"),
        size if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.2e}"),
    }
}
