//! Bands of what curves say, from what they said of configurations that they had not seen.
//!
//! Each configuration is left out in turn, and everything is chosen anew without it. How far the curves are off then is
//! made of the noise of a measurement, the error of what was fitted and that of the choice, none of which is assumed.
//! By theory a curve through points that decide a share h (the leverage) of their own fit is off by σ / √(1 - h) where
//! it has not seen a point, and by σ √(1 + h) where it is asked for a further one; so σ follows from the one, and the
//! band from the other. Few points may each decide their fit alone (h is near 1): then that theory would make nothing
//! of any error, so no more than [`MOST_LEVERAGE`] of it is taken for the curve's.
//! Always holds: a configuration that the others do not suffice for has an infinite error, and so have all bands.

use super::least_squares::student;
use crate::model::estimate::Estimate;

/// Of the square of an error, the share that a point's leverage explains at most.
const MOST_LEVERAGE: f64 = 0.9;

/// A figure of a configuration, and what curves say of it that have not seen it.
#[derive(Debug, Clone, Copy)]
pub struct UnseenFigure {
    /// As measured.
    pub measured: f64,
    /// By the others.
    pub predicted: f64,
    /// The share that it decides of its own fit, where it is seen.
    pub leverage: f64,
}

/// Errors of curves that had not seen a configuration each.
#[derive(Debug, Clone, Copy)]
pub struct UnseenErrors {
    count: usize,
    /// σ: of the logarithm of a figure.
    deviation: f64,
}

impl UnseenErrors {
    /// Of all figures.
    pub fn of(all: impl Iterator<Item = UnseenFigure>) -> Self {
        let square = |one: UnseenFigure| {
            let explained = one.leverage.min(MOST_LEVERAGE);
            (one.predicted / one.measured).ln().powi(2) * (1.0 - explained)
        };
        let (count, sum) = all.fold((0, 0.0), |(count, sum), one| {
            // No leverage makes an infinite error a finite one.
            let square = if one.predicted.is_finite() {
                square(one)
            } else {
                f64::INFINITY
            };
            (count + 1, sum + square)
        });
        Self {
            count,
            deviation: (sum / f64::max(count as f64, 1.0)).sqrt(),
        }
    }

    /// A figure with the band in which one more measured configuration lies with 95 %.
    pub fn band(&self, value: f64, leverage: f64) -> Estimate {
        let spread = (student(self.count.saturating_sub(1)) * self.deviation * (1.0 + leverage).sqrt()).exp();
        let (low, high) = match spread.is_finite() {
            true => (value / spread, value * spread),
            false => (0.0, f64::INFINITY),
        };
        Estimate { value, low, high }
    }
}

#[cfg(test)]
mod tests {
    use super::{UnseenErrors, UnseenFigure};

    fn figure(off: f64, leverage: f64) -> UnseenFigure {
        UnseenFigure {
            measured: 100.0,
            predicted: 100.0 * off,
            leverage,
        }
    }

    #[test]
    fn a_band_is_as_wide_as_what_was_not_seen_was_off() {
        // Errors of ±10 % of five: Student's 2.776 for four degrees of freedom.
        let errors = UnseenErrors::of(
            [1.1, 1.0 / 1.1, 1.1, 1.0 / 1.1, 1.1]
                .map(|off| figure(off, 0.0))
                .into_iter(),
        );
        let band = errors.band(50.0, 0.0);
        assert!((band.high / 50.0 - 1.1f64.powf(2.776)).abs() < 1e-3, "{band:?}");
        assert!((band.low * band.high - 2500.0).abs() < 1e-6);
        let far = errors.band(50.0, 3.0);
        assert!((far.high / 50.0 - 1.1f64.powf(2.0 * 2.776)).abs() < 1e-2, "{far:?}");
        // Points that decide most of their own fit are farther off when they are left out.
        let corners = UnseenErrors::of([1.1; 5].map(|off| figure(off, 0.75)).into_iter());
        assert!((corners.band(50.0, 0.0).high / 50.0 - 1.1f64.powf(2.776 / 2.0)).abs() < 1e-3);
        // As many parts as points: that they were off is a fact nevertheless.
        let few = UnseenErrors::of([0.7; 4].map(|off| figure(off, 1.0)).into_iter());
        assert!(few.band(50.0, 1.0).high > 60.0, "{few:?}");
    }

    #[test]
    fn what_could_not_be_predicted_leaves_no_bound() {
        let errors = UnseenErrors::of([figure(1.0, 0.5), figure(f64::INFINITY, 1.0)].into_iter());
        let band = errors.band(50.0, 0.1);
        assert_eq!((band.low, band.value, band.high), (0.0, 50.0, f64::INFINITY));
    }
}
