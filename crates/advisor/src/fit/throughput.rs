//! The curve of throughput.
//!
//! A closed loop of W workers on G gateways and N storage nodes answers X requests of S bytes a second. The time
//! between two answers is a p-norm of the times of its parts:
//!
//! ```text
//! X^-p = Σ (θ z)^p,   z of 1/G, S/G, 1/N, S/N, 1/W
//! ```
//!
//! which is linear in θ^p. A large p is the bottleneck law, p = 1 a request that is at one place after the other. Of
//! all sets of parts and of four values of p that one is taken which says best what it has not seen.
//! Always holds: no θ is negative.

use super::least_squares::{LinearFit, fit};
use super::points::{Configuration, MeasuredPoint};
use crate::model::estimate::Estimate;

/// How sharp a knee may be.
const KNEES: [f64; 4] = [1.0, 2.0, 4.0, 8.0];
/// What a request's time is made of.
const PARTS: [&str; 5] = [
    "gateway, each request",
    "gateway, each byte",
    "storage node, each request",
    "storage node, each byte",
    "worker, each request",
];

fn parts(configuration: Configuration) -> [f64; 5] {
    [
        1.0 / configuration.gateways,
        configuration.size / configuration.gateways,
        1.0 / configuration.storage_nodes,
        configuration.size / configuration.storage_nodes,
        1.0 / configuration.workers,
    ]
}

/// A fitted curve.
#[derive(Debug, Clone)]
pub struct ThroughputCurve {
    /// How sharp its knee is.
    pub knee: f64,
    chosen: Vec<usize>,
    fit: LinearFit,
    /// Of what it has not seen: the sum of squares of ln X.
    error: f64,
}

/// A row of the fit: relative to the point's own time, so that errors are relative too.
fn row(configuration: Configuration, chosen: &[usize], knee: f64, time: f64) -> Vec<f64> {
    let parts = parts(configuration);
    chosen.iter().map(|part| (parts[*part] / time).powf(knee)).collect()
}

impl ThroughputCurve {
    /// The best through points; none where they do not tell parts apart.
    pub fn through(points: &[MeasuredPoint]) -> Option<Self> {
        let mut best: Option<Self> = None;
        for set in 1..1_usize << PARTS.len() {
            let chosen: Vec<usize> = (0..PARTS.len()).filter(|part| set & (1 << part) != 0).collect();
            for knee in KNEES {
                if let Some(one) = Self::of(points, &chosen, knee)
                    && best.as_ref().is_none_or(|best| one.error < best.error)
                {
                    best = Some(one);
                }
            }
        }
        best
    }

    fn of(points: &[MeasuredPoint], chosen: &[usize], knee: f64) -> Option<Self> {
        let rows: Vec<Vec<f64>> = points
            .iter()
            .map(|point| row(point.configuration, chosen, knee, 1.0 / point.rate))
            .collect();
        let fit = fit(&rows, &vec![1.0; points.len()])?;
        if fit.coefficients.iter().any(|coefficient| *coefficient < 0.0) {
            return None;
        }
        // Said of X^-p relative to the measured one; its power gives the throughput.
        let without = |row: &Vec<f64>| fit.without(row, 1.0).max(1e-9).ln() / knee;
        let error = rows.iter().map(|row| without(row).powi(2)).sum();
        Some(Self {
            knee,
            chosen: chosen.to_vec(),
            fit,
            error,
        })
    }

    /// Parts with the seconds that each takes.
    pub fn parts(&self) -> Vec<(&'static str, f64)> {
        let seconds = self.fit.coefficients.iter().map(|coefficient| coefficient.powf(1.0 / self.knee));
        self.chosen.iter().map(|part| PARTS[*part]).zip(seconds).collect()
    }

    /// Requests a second.
    pub fn at(&self, configuration: Configuration) -> f64 {
        let sum = self.fit.at(&row(configuration, &self.chosen, self.knee, 1.0));
        sum.powf(-1.0 / self.knee)
    }

    /// Requests a second, with the band in which one more point lies.
    pub fn predict(&self, configuration: Configuration) -> Estimate {
        let rate = self.at(configuration);
        // Relative to its own time, as rows of points are.
        let row = row(configuration, &self.chosen, self.knee, 1.0 / rate);
        let half = self.fit.half_band(&row);
        // A band that reaches a time of nothing has no upper end.
        let bound = |relative: f64| match relative > 0.0 {
            true => rate * relative.powf(-1.0 / self.knee),
            false => f64::INFINITY,
        };
        Estimate {
            value: rate,
            low: bound(1.0 + half),
            high: bound(1.0 - half),
        }
    }
}
