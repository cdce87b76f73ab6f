//! Runs of the same configuration, and how much they differ.

use super::runs::MeasuredRun;
use serde::Serialize;

/// A configuration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Configuration {
    /// Gateways.
    pub gateways: f64,
    /// Storage nodes.
    pub storage_nodes: f64,
    /// Bytes of a body.
    pub size: f64,
    /// Requests under way.
    pub workers: f64,
}

impl Configuration {
    /// That of a run.
    pub fn of(run: &MeasuredRun) -> Self {
        Self {
            gateways: f64::from(run.cluster.gateways),
            storage_nodes: f64::from(run.cluster.storage_nodes),
            size: run.size,
            workers: run.workers,
        }
    }

    /// Whether it is the other one; sizes that are drawn differ a little from run to run.
    fn is_same(self, other: Self) -> bool {
        let sizes = self.size / other.size.max(1e-9);
        (0.95..1.05).contains(&sizes) && Self { size: 0.0, ..self } == Self { size: 0.0, ..other }
    }
}

/// A configuration with what was measured of it.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredPoint {
    /// In words, or the name of its only run.
    pub name: String,
    /// Which.
    pub configuration: Configuration,
    /// Requests a second: the geometric mean of its runs.
    pub rate: f64,
    /// Seconds, the same.
    pub p99: f64,
    /// Throughput and p99 of each run.
    pub runs: Vec<(f64, f64)>,
}

/// Deviation of runs of the same configuration, relative.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Noise {
    /// Of throughput.
    pub rate: f64,
    /// Of p99.
    pub p99: f64,
}

/// A geometric mean.
fn mean(all: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = all.fold((0.0, 0.0), |(sum, count), one| (sum + one.ln(), count + 1.0));
    (sum / f64::max(count, 1.0)).exp()
}

/// Runs by configuration, in the order of their first ones.
pub fn points(runs: &[MeasuredRun]) -> Vec<MeasuredPoint> {
    let mut all: Vec<MeasuredPoint> = vec![];
    for run in runs {
        let configuration = Configuration::of(run);
        let measured = (run.rate, run.p99);
        match all.iter_mut().find(|point| point.configuration.is_same(configuration)) {
            Some(point) => {
                point.runs.push(measured);
                let Configuration {
                    gateways,
                    storage_nodes,
                    size,
                    workers,
                } = point.configuration;
                point.name = format!("{gateways} : {storage_nodes}, {size:.0} bytes, {workers} workers");
            }
            None => all.push(MeasuredPoint {
                name: run.name.clone(),
                configuration,
                rate: 0.0,
                p99: 0.0,
                runs: vec![measured],
            }),
        }
    }
    for point in &mut all {
        point.rate = mean(point.runs.iter().map(|run| run.0));
        point.p99 = mean(point.runs.iter().map(|run| run.1));
    }
    all
}

impl Noise {
    /// That of points; none where no configuration was measured twice.
    pub fn of(points: &[MeasuredPoint]) -> Option<Self> {
        let freedom: usize = points.iter().map(|point| point.runs.len() - 1).sum();
        let deviation = |of: fn(&MeasuredPoint) -> Vec<f64>| {
            let squares: f64 = points.iter().flat_map(of).map(|one| one * one).sum();
            (squares / freedom as f64).sqrt()
        };
        (freedom > 0).then(|| Self {
            rate: deviation(|point| point.runs.iter().map(|run| (run.0 / point.rate).ln()).collect()),
            p99: deviation(|point| point.runs.iter().map(|run| (run.1 / point.p99).ln()).collect()),
        })
    }
}
