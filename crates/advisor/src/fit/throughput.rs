//! The curve of throughput.
//!
//! A closed loop of W workers on G gateways and N storage nodes answers X requests of S bytes a second. The time
//! between two answers is a p-norm of the times of its parts:
//!
//! ```text
//! X^-p = Σ (θ z)^p,   z of (W/G)^b/G, S (W/G)^b/G, (W/N)^b/N, S (W/N)^b/N, 1/W
//! ```
//!
//! which is linear in θ^p. A large p is the bottleneck law, p = 1 a request that is at one place after the other. b
//! says that a request costs more where many are under way at a node: their connections and buffers share its caches.
//! Of all sets of parts, four values of p and three of b those are taken which say best what they have not seen.
//! Always holds: no θ is negative.

use super::least_squares::{LinearFit, fit};
use super::points::{Configuration, MeasuredPoint};
use crate::model::estimate::Estimate;

/// How sharp a knee may be.
const KNEES: [f64; 4] = [1.0, 2.0, 4.0, 8.0];
/// How much dearer requests become where many are under way, as a power of their number.
const CROWDING: [f64; 3] = [0.0, 0.125, 0.25];
/// What a request's time is made of.
const PARTS: [&str; 5] = [
    "gateway, each request",
    "gateway, each byte",
    "storage node, each request",
    "storage node, each byte",
    "worker, each request",
];

fn parts(configuration: Configuration, crowding: f64) -> [f64; 5] {
    let share = |nodes: f64| (configuration.workers / nodes).powf(crowding) / nodes;
    let (gateway, node) = (share(configuration.gateways), share(configuration.storage_nodes));
    [
        gateway,
        configuration.size * gateway,
        node,
        configuration.size * node,
        1.0 / configuration.workers,
    ]
}

/// Which curve.
#[derive(Debug, Clone, Copy)]
struct Shape {
    knee: f64,
    crowding: f64,
}

/// A fitted curve.
#[derive(Debug, Clone)]
pub struct ThroughputCurve {
    shape: Shape,
    chosen: Vec<usize>,
    fit: LinearFit,
    /// Of what it has not seen: the sum of squares of ln X.
    error: f64,
}

/// A row of the fit: relative to the point's own time, so that errors are relative too.
fn row(configuration: Configuration, chosen: &[usize], shape: Shape, time: f64) -> Vec<f64> {
    let parts = parts(configuration, shape.crowding);
    chosen
        .iter()
        .map(|part| (parts[*part] / time).powf(shape.knee))
        .collect()
}

impl ThroughputCurve {
    /// The best through points; none where they do not tell parts apart.
    pub fn through(points: &[MeasuredPoint]) -> Option<Self> {
        let mut best: Option<Self> = None;
        for set in 1..1_usize << PARTS.len() {
            let chosen: Vec<usize> = (0..PARTS.len()).filter(|part| set & (1 << part) != 0).collect();
            for shape in KNEES
                .iter()
                .flat_map(|knee| CROWDING.map(|crowding| Shape { knee: *knee, crowding }))
            {
                if let Some(one) = Self::of(points, &chosen, shape)
                    && best.as_ref().is_none_or(|best| one.error < best.error)
                {
                    best = Some(one);
                }
            }
        }
        best
    }

    fn of(points: &[MeasuredPoint], chosen: &[usize], shape: Shape) -> Option<Self> {
        let rows: Vec<Vec<f64>> = points
            .iter()
            .map(|point| row(point.configuration, chosen, shape, 1.0 / point.rate))
            .collect();
        let fit = fit(&rows, &vec![1.0; points.len()])?;
        if fit.coefficients.iter().any(|coefficient| *coefficient < 0.0) {
            return None;
        }
        // Said of X^-p relative to the measured one; its power gives the throughput.
        let without = |row: &Vec<f64>| fit.without(row, 1.0).max(1e-9).ln() / shape.knee;
        let error = rows.iter().map(|row| without(row).powi(2)).sum();
        Some(Self {
            shape,
            chosen: chosen.to_vec(),
            fit,
            error,
        })
    }

    /// How sharp its knee is, and how much dearer requests become where many are under way.
    pub fn shape(&self) -> (f64, f64) {
        (self.shape.knee, self.shape.crowding)
    }

    /// Parts with the seconds that each takes.
    pub fn parts(&self) -> Vec<(&'static str, f64)> {
        let seconds = self
            .fit
            .coefficients
            .iter()
            .map(|coefficient| coefficient.powf(1.0 / self.shape.knee));
        self.chosen.iter().map(|part| PARTS[*part]).zip(seconds).collect()
    }

    /// Seconds that a request of so many bytes takes of one gateway and one storage node, up to a factor.
    pub fn work(&self, size: f64) -> f64 {
        let seconds = |(part, coefficient): (&usize, &f64)| {
            let seconds = coefficient.powf(1.0 / self.shape.knee);
            match part {
                0 | 2 => seconds,
                1 | 3 => seconds * size,
                _ => 0.0,
            }
        };
        let all: f64 = self.chosen.iter().zip(&self.fit.coefficients).map(seconds).sum();
        if all > 0.0 { all } else { 1.0 }
    }

    /// Requests a second.
    pub fn at(&self, configuration: Configuration) -> f64 {
        let sum = self.fit.at(&row(configuration, &self.chosen, self.shape, 1.0));
        sum.powf(-1.0 / self.shape.knee)
    }

    /// Requests a second, with the band in which one more point lies.
    pub fn predict(&self, configuration: Configuration) -> Estimate {
        let rate = self.at(configuration);
        // Relative to its own time, as rows of points are.
        let row = row(configuration, &self.chosen, self.shape, 1.0 / rate);
        let half = self.fit.half_band(&row);
        // A band that reaches a time of nothing has no upper end.
        let bound = |relative: f64| match relative > 0.0 {
            true => rate * relative.powf(-1.0 / self.shape.knee),
            false => f64::INFINITY,
        };
        Estimate {
            value: rate,
            low: bound(1.0 + half),
            high: bound(1.0 - half),
        }
    }
}
