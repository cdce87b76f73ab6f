//! Curves through measured configurations: throughput and p99 with bands, and how well they predict what they have
//! not seen.
//!
//! Runs of the same configuration are one point: the geometric means of their throughput and of their p99. A point that
//! is left out is left out with all of its runs, and whatever is chosen is chosen anew without it.
//! Always holds: a prediction outside of what was measured says so.
//!
//! | question | file |
//! |---|---|
//! | manifests of `martlet bench` | `fit/runs.rs` |
//! | runs of the same configuration, their noise | `fit/points.rs` |
//! | the curve of throughput | `fit/throughput.rs` |
//! | the curve of p99 | `fit/tail.rs` |
//! | what a request costs processors, for `buy` | `fit/costs.rs` |
//! | operations of limited drives, for `buy` | `fit/operations.rs` |
//! | limits of drives and networks, beside manifests | `fit/device_limits.rs` |
//! | what those bound | `fit/known_limits.rs` |
//! | bands, from configurations that were left out | `fit/bands.rs` |
//! | linear least squares | `fit/least_squares.rs` |

pub mod bands;
pub mod costs;
pub mod device_limits;
pub mod known_limits;
pub mod least_squares;
pub mod operations;
pub mod points;
pub mod runs;
pub mod tail;
pub mod throughput;

use crate::model::estimate::Estimate;
use crate::model::limits::Resource;
use crate::model::rates::Extrapolation;
use bands::{UnseenErrors, UnseenFigure};
use device_limits::DeviceLimits;
use known_limits::KnownLimits;
use points::{Configuration, MeasuredPoint, Noise, points};
use runs::MeasuredRun;
use serde::Serialize;
use tail::TailCurve;
use throughput::ThroughputCurve;
use vocabulary::Fault;

/// Configurations below which nothing is fitted.
const FEWEST: usize = 4;
/// Shares of writes that differ by more are other workloads; short runs of one differ by a tenth by chance.
const SAME_SHARE: f64 = 0.15;
/// Between sizes that differ by this factor at most bands were shown to hold.
const NEAR_SIZES: f64 = 256.0;
/// Sizes that differ by a smaller factor are the same.
const SAME_SIZE: f64 = 1.05;

/// What the fit says of a configuration that it has not seen, beside what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    /// The configuration, and the name of its run where there is one only.
    pub name: String,
    /// Runs of it.
    pub runs: usize,
    /// Requests a second: measured, and predicted without it.
    pub rate: (f64, f64),
    /// Seconds: measured, and predicted without it.
    pub p99: (f64, f64),
}

impl LeftOut {
    /// Relative errors of throughput and p99.
    pub fn errors(&self) -> (f64, f64) {
        (self.rate.1 / self.rate.0 - 1.0, self.p99.1 / self.p99.0 - 1.0)
    }
}

/// What was made of the runs.
#[derive(Debug, Serialize)]
pub struct FittedCurves {
    /// How sharp the knee is.
    pub knee: f64,
    /// How much dearer a request becomes where many are under way at a node, as a power of their number.
    pub crowding: f64,
    /// Seconds that each part takes.
    pub parts: Vec<(&'static str, f64)>,
    /// What p99 depends on, each with its power.
    pub tail: Vec<(&'static str, f64)>,
    /// Each configuration, left out.
    pub left_out: Vec<LeftOut>,
    /// Deviation of repeated runs of the same configuration; none where none was repeated.
    pub noise: Option<Noise>,
    /// Limits of drives and networks that all runs had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<DeviceLimits>,
    /// What all runs have alike, so that its part of the time is not known.
    pub not_varied: Vec<&'static str>,
    /// What was measured.
    pub runs: Vec<MeasuredRun>,
    #[serde(skip)]
    rate: ThroughputCurve,
    #[serde(skip)]
    p99: TailCurve,
    #[serde(skip)]
    rate_errors: UnseenErrors,
    #[serde(skip)]
    p99_errors: UnseenErrors,
}

/// Curves of throughput and of p99.
type Curves = (ThroughputCurve, TailCurve);

/// Fits curves.
pub fn fit_runs(runs: Vec<MeasuredRun>) -> Result<FittedCurves, Fault> {
    let shares = runs.iter().map(|run| run.write_share);
    let (least, most) = (shares.clone().fold(1.0, f64::min), shares.fold(0.0, f64::max));
    if most - least > SAME_SHARE {
        return Err(Fault::caller(format!(
            "the runs' shares of writes are {least:.2} to {most:.2}: expected the same, so fit reads and writes apart"
        )));
    }
    let points = points(&runs);
    if points.len() < FEWEST {
        return Err(Fault::caller(format!(
            "{} configurations in {} runs: expected {FEWEST} or more, so measure other numbers of gateways, storage nodes, \
             sizes or workers",
            points.len(),
            runs.len()
        )));
    }
    let unfit = || Fault::caller("the runs do not tell gateways, storage nodes and sizes apart: measure more of them");
    let known = known_limits(&runs)?;
    let (rate, p99) = curves(&points, known).ok_or_else(unfit)?;
    let left_out = left_out(&points, known);
    let unseen = |of: fn(&LeftOut) -> (f64, f64), leverage: fn(&Curves, Configuration) -> f64| {
        let curves = (rate.clone(), p99.clone());
        UnseenErrors::of(left_out.iter().zip(&points).map(|(one, point)| UnseenFigure {
            measured: of(one).0,
            predicted: of(one).1,
            leverage: leverage(&curves, point.configuration),
        }))
    };
    Ok(FittedCurves {
        knee: rate.shape().0,
        crowding: rate.shape().1,
        parts: rate.parts(),
        tail: p99.powers(),
        rate_errors: unseen(|one| one.rate, |(rate, _), at| rate.leverage(at)),
        p99_errors: unseen(|one| one.p99, |(rate, p99), at| p99.leverage(at, rate)),
        left_out,
        noise: Noise::of(&points),
        limits: runs.first().and_then(|run| run.cluster.limits),
        not_varied: not_varied(&points),
        rate,
        p99,
        runs,
    })
}

/// Limits of drives and networks that all runs have.
fn known_limits(runs: &[MeasuredRun]) -> Result<KnownLimits, Fault> {
    let of = |run: &MeasuredRun| run.cluster.limits.unwrap_or_default();
    let first = runs.first().map(of).unwrap_or_default();
    if let Some(other) = runs.iter().find(|run| of(run) != first) {
        return Err(Fault::caller(format!(
            "{}: its drives, networks or balancer have other limits than those of {}: fit them apart",
            other.name, runs[0].name
        )));
    }
    let shares: f64 = runs.iter().map(|run| run.write_share).sum();
    Ok(KnownLimits {
        devices: first,
        write_share: shares / f64::max(runs.len() as f64, 1.0),
        pieces: f64::from(runs.iter().filter_map(|run| run.cluster.pieces).max().unwrap_or(1)),
    })
}

fn curves(points: &[MeasuredPoint], known: KnownLimits) -> Option<Curves> {
    let rate = ThroughputCurve::through(points, known)?;
    let p99 = TailCurve::through(points, &rate)?;
    Some((rate, p99))
}

/// What curves through all others say of each point. One that the others do not suffice for is predicted by nothing,
/// which counts as an infinite error.
fn left_out(points: &[MeasuredPoint], known: KnownLimits) -> Vec<LeftOut> {
    let one = |(at, point): (usize, &MeasuredPoint)| {
        let mut others = points.to_vec();
        others.remove(at);
        let predicted = curves(&others, known)
            .map(|(rate, p99)| (rate.at(point.configuration), p99.at(point.configuration, &rate)));
        let (rate, p99) = predicted.unwrap_or((f64::INFINITY, f64::INFINITY));
        LeftOut {
            name: point.name.clone(),
            runs: point.runs.len(),
            rate: (point.rate, rate),
            p99: (point.p99, p99),
        }
    };
    points.iter().enumerate().map(one).collect()
}

/// One number of a configuration.
type ConfigurationNumber = fn(&Configuration) -> f64;

fn not_varied(points: &[MeasuredPoint]) -> Vec<&'static str> {
    let is_same = |get: ConfigurationNumber| {
        let mut all = points.iter().map(|point| get(&point.configuration));
        all.next()
            .is_none_or(|first| all.all(|one: f64| (one / first - 1.0).abs() < 0.05))
    };
    let parameters: [(&str, ConfigurationNumber); 4] = [
        ("gateways", |one| one.gateways),
        ("storage nodes", |one| one.storage_nodes),
        ("sizes", |one| one.size),
        ("workers", |one| one.workers),
    ];
    let same = parameters.into_iter().filter(|(_, get)| is_same(*get));
    same.map(|(name, _)| name).collect()
}

/// A size between two measured ones that are so far apart that the curve was not shown to hold there.
fn between_sizes(asked: f64, measured: impl Iterator<Item = f64> + Clone) -> Option<Extrapolation> {
    let below = measured.clone().filter(|size| *size <= asked).fold(0.0, f64::max);
    let above = measured.filter(|size| *size >= asked).fold(f64::INFINITY, f64::min);
    let is_far = below > 0.0 && above.is_finite() && above > below * NEAR_SIZES;
    let is_measured = asked < below * SAME_SIZE || above < asked * SAME_SIZE;
    (is_far && !is_measured).then_some(Extrapolation {
        parameter: "object size in bytes between two that were measured",
        asked,
        measured: (below, above),
    })
}

/// What curves say of a configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurvePrediction {
    /// Which.
    pub configuration: Configuration,
    /// Requests a second.
    pub rate: Estimate,
    /// Seconds.
    pub p99: Estimate,
    /// Of limits that are known, the one that ends first, and requests a second that it bears at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<(Resource, f64)>,
    /// What was not measured.
    pub extrapolations: Vec<Extrapolation>,
}

impl FittedCurves {
    /// What they say of a configuration.
    pub fn predict(&self, configuration: Configuration) -> CurvePrediction {
        let (rate, p99) = (&self.rate, &self.p99);
        CurvePrediction {
            configuration,
            rate: self
                .rate_errors
                .band(rate.at(configuration), rate.leverage(configuration)),
            p99: self
                .p99_errors
                .band(p99.at(configuration, rate), p99.leverage(configuration, rate)),
            bound: rate
                .bound(configuration)
                .map(|bound| (bound.resource, 1.0 / bound.seconds)),
            extrapolations: self.extrapolations(configuration),
        }
    }

    fn extrapolations(&self, configuration: Configuration) -> Vec<Extrapolation> {
        let measured: Vec<Configuration> = self.runs.iter().map(Configuration::of).collect();
        let of = |parameter, get: fn(&Configuration) -> f64| {
            let asked = get(&configuration);
            let least = measured.iter().map(get).fold(f64::INFINITY, f64::min);
            let most = measured.iter().map(get).fold(0.0, f64::max);
            (asked < least || asked > most).then_some(Extrapolation {
                parameter,
                asked,
                measured: (least, most),
            })
        };
        [
            of("number of gateways", |one| one.gateways),
            of("number of storage nodes", |one| one.storage_nodes),
            of("object size in bytes", |one| one.size),
            between_sizes(configuration.size, measured.iter().map(|one| one.size)),
            of("number of workers", |one| one.workers),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// The number of storage nodes behind one gateway at which a unit of throughput is cheapest, of those measured.
    pub fn magic_number(&self, gateway_price: f64, storage_price: f64, size: f64, workers: f64) -> Option<u32> {
        let nodes = self.runs.iter().map(|run| run.cluster.storage_nodes);
        let (least, most) = (nodes.clone().min()?, nodes.max()?);
        let cost = |nodes: &u32| {
            let configuration = Configuration {
                gateways: 1.0,
                storage_nodes: f64::from(*nodes),
                size,
                workers,
            };
            let rate = self.rate.at(configuration);
            (gateway_price + f64::from(*nodes) * storage_price) / rate
        };
        (least..=most).min_by(|one, other| cost(one).total_cmp(&cost(other)))
    }
}

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
