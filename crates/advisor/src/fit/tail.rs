//! The curve of p99: a product of powers of W / X (the mean time, by Little's law), S, G and N. Of all sets of them that
//! one is taken which says best what it has not seen.

use super::least_squares::{LinearFit, fit};
use super::points::{Configuration, MeasuredPoint};
use crate::model::estimate::Estimate;

/// What p99 may depend on, beside a constant.
const FACTORS: [&str; 4] = ["mean time", "bytes", "gateways", "storage nodes"];

/// A fitted curve.
#[derive(Debug, Clone)]
pub struct TailCurve {
    chosen: Vec<usize>,
    fit: LinearFit,
    /// Of what it has not seen: the sum of squares of ln p99.
    error: f64,
}

fn row(configuration: Configuration, rate: f64, chosen: &[usize]) -> Vec<f64> {
    let factors = [
        configuration.workers / rate,
        configuration.size.max(1.0),
        configuration.gateways,
        configuration.storage_nodes,
    ];
    let logarithms = chosen.iter().map(|factor| factors[*factor].ln());
    std::iter::once(1.0).chain(logarithms).collect()
}

impl TailCurve {
    /// The best through points.
    pub fn through(points: &[MeasuredPoint]) -> Option<Self> {
        let sets = 0..1_usize << FACTORS.len();
        let curves = sets.filter_map(|set| {
            let chosen: Vec<usize> = (0..FACTORS.len()).filter(|factor| set & (1 << factor) != 0).collect();
            Self::of(points, &chosen)
        });
        curves.min_by(|one, other| one.error.total_cmp(&other.error))
    }

    fn of(points: &[MeasuredPoint], chosen: &[usize]) -> Option<Self> {
        let rows: Vec<Vec<f64>> = points
            .iter()
            .map(|point| row(point.configuration, point.rate, chosen))
            .collect();
        let targets: Vec<f64> = points.iter().map(|point| point.p99.ln()).collect();
        let fit = fit(&rows, &targets)?;
        let unseen = rows.iter().zip(&targets).map(|(row, target)| (fit.without(row, *target) - target).powi(2));
        Some(Self {
            chosen: chosen.to_vec(),
            error: unseen.sum(),
            fit,
        })
    }

    /// What it depends on, each with its power.
    pub fn powers(&self) -> Vec<(&'static str, f64)> {
        let powers = self.fit.coefficients.iter().skip(1).copied();
        self.chosen.iter().map(|factor| FACTORS[*factor]).zip(powers).collect()
    }

    /// Seconds.
    pub fn at(&self, configuration: Configuration, rate: f64) -> f64 {
        self.fit.at(&row(configuration, rate, &self.chosen)).exp()
    }

    /// Seconds, with the band in which one more point lies.
    pub fn predict(&self, configuration: Configuration, rate: f64) -> Estimate {
        let spread = self.fit.half_band(&row(configuration, rate, &self.chosen)).exp();
        let value = self.at(configuration, rate);
        Estimate {
            value,
            low: value / spread,
            high: value * spread,
        }
    }
}
