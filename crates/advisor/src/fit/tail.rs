//! The curve of p99: a product of powers of W / X (the mean time, by Little's law), G, N and the work of a request,
//! which is the time that it takes of one gateway and one storage node as the curve of throughput says. Of all sets of
//! them that one is taken which says best what it has not seen.

use super::least_squares::{LinearFit, fit};
use super::points::{Configuration, MeasuredPoint};
use super::throughput::ThroughputCurve;

/// What p99 may depend on, beside a constant.
const FACTORS: [&str; 4] = ["mean time", "work of a request", "gateways", "storage nodes"];

/// A fitted curve.
#[derive(Debug, Clone)]
pub struct TailCurve {
    chosen: Vec<usize>,
    fit: LinearFit,
    /// Of what it has not seen: the sum of squares of ln p99.
    error: f64,
}

fn row(configuration: Configuration, rate: f64, work: f64, chosen: &[usize]) -> Vec<f64> {
    let factors = [
        configuration.workers / rate,
        work,
        configuration.gateways,
        configuration.storage_nodes,
    ];
    let logarithms = chosen.iter().map(|factor| factors[*factor].ln());
    std::iter::once(1.0).chain(logarithms).collect()
}

impl TailCurve {
    /// The best through points, with their curve of throughput.
    pub fn through(points: &[MeasuredPoint], throughput: &ThroughputCurve) -> Option<Self> {
        let sets = 0..1_usize << FACTORS.len();
        let curves = sets.filter_map(|set| {
            let chosen: Vec<usize> = (0..FACTORS.len()).filter(|factor| set & (1 << factor) != 0).collect();
            Self::of(points, throughput, &chosen)
        });
        curves.min_by(|one, other| one.error.total_cmp(&other.error))
    }

    fn of(points: &[MeasuredPoint], throughput: &ThroughputCurve, chosen: &[usize]) -> Option<Self> {
        let rows: Vec<Vec<f64>> = points
            .iter()
            .map(|point| {
                let work = throughput.work(point.configuration.size);
                row(point.configuration, point.rate, work, chosen)
            })
            .collect();
        let targets: Vec<f64> = points.iter().map(|point| point.p99.ln()).collect();
        let fit = fit(&rows, &targets)?;
        let unseen = rows
            .iter()
            .zip(&targets)
            .map(|(row, target)| (fit.without(row, *target) - target).powi(2));
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
    pub fn at(&self, configuration: Configuration, throughput: &ThroughputCurve) -> f64 {
        self.fit.at(&self.row(configuration, throughput)).exp()
    }

    /// How much a point there would decide over the curve.
    pub fn leverage(&self, configuration: Configuration, throughput: &ThroughputCurve) -> f64 {
        self.fit.leverage(&self.row(configuration, throughput))
    }

    fn row(&self, configuration: Configuration, throughput: &ThroughputCurve) -> Vec<f64> {
        let work = throughput.work(configuration.size);
        row(configuration, throughput.at(configuration), work, &self.chosen)
    }
}
