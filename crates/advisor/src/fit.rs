//! Curves through measured configurations: throughput and p99 with bands, and how well they predict what they have
//! not seen.
//!
//! A closed loop of W workers on G gateways and N storage nodes answers X requests of S bytes a second. The time
//! between two answers is a p-norm of the times of its parts:
//!
//! ```text
//! X^-p = Σ (θ z)^p,   z of 1/G, S/G, 1/N, S/N, 1/W
//! ```
//!
//! which is linear in θ^p. A large p is the bottleneck law, p = 1 a request that is at one place after the other. Of
//! all sets of parts and of four values of p that one is taken which says best what it has not seen (leave-one-out).
//! p99 is a power of W / X, the mean time by Little's law, and of S.
//! Always holds: no θ is negative; a prediction outside of what was measured says so.
//!
//! | question | file |
//! |---|---|
//! | manifests of `martlet bench` | `fit/runs.rs` |
//! | linear least squares, bands | `fit/least_squares.rs` |

pub mod least_squares;
pub mod runs;

use crate::model::estimate::Estimate;
use crate::model::rates::Extrapolation;
use least_squares::{LinearFit, fit};
use runs::MeasuredRun;
use serde::Serialize;
use vocabulary::Fault;

/// How sharp a knee may be.
const KNEES: [f64; 4] = [1.0, 2.0, 4.0, 8.0];
/// Runs below which nothing is fitted.
const FEWEST: usize = 4;
/// Shares of writes that differ by more are other workloads; short runs of one differ by a tenth by chance.
const SAME_SHARE: f64 = 0.15;
/// What a request's time is made of.
const PARTS: [&str; 5] = [
    "gateway, each request",
    "gateway, each byte",
    "storage node, each request",
    "storage node, each byte",
    "worker, each request",
];

/// A configuration to predict.
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
    fn of(run: &MeasuredRun) -> Self {
        Self {
            gateways: f64::from(run.cluster.gateways),
            storage_nodes: f64::from(run.cluster.storage_nodes),
            size: run.size,
            workers: run.workers,
        }
    }

    fn parts(self) -> [f64; 5] {
        [
            1.0 / self.gateways,
            self.size / self.gateways,
            1.0 / self.storage_nodes,
            self.size / self.storage_nodes,
            1.0 / self.workers,
        ]
    }
}

/// What the fit says of a run that it has not seen, beside what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    /// The run.
    pub name: String,
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
    /// Seconds that each part takes.
    pub parts: Vec<(&'static str, f64)>,
    /// Each run, left out.
    pub left_out: Vec<LeftOut>,
    /// Deviation of repeated runs of the same configuration, relative; none where none was repeated.
    pub noise: Option<f64>,
    /// What all runs have alike, so that its part of the time is not known.
    pub not_varied: Vec<&'static str>,
    /// What was measured.
    pub runs: Vec<MeasuredRun>,
    #[serde(skip)]
    chosen: Vec<usize>,
    #[serde(skip)]
    rate: LinearFit,
    #[serde(skip)]
    p99: LinearFit,
}

/// A row of the fit of throughput: relative to the run's own time, so that errors are relative too.
fn rate_row(configuration: Configuration, chosen: &[usize], knee: f64, time: f64) -> Vec<f64> {
    let parts = configuration.parts();
    chosen.iter().map(|part| (parts[*part] / time).powf(knee)).collect()
}

fn p99_row(configuration: Configuration, rate: f64) -> Vec<f64> {
    vec![
        1.0,
        (configuration.workers / rate).ln(),
        configuration.size.max(1.0).ln(),
    ]
}

struct RateFit {
    knee: f64,
    chosen: Vec<usize>,
    fit: LinearFit,
    left_out: Vec<f64>,
    error: f64,
}

fn try_rate(runs: &[MeasuredRun], chosen: &[usize], knee: f64) -> Option<RateFit> {
    let rows: Vec<Vec<f64>> = runs
        .iter()
        .map(|run| rate_row(Configuration::of(run), chosen, knee, 1.0 / run.rate))
        .collect();
    let targets = vec![1.0; runs.len()];
    let fit = fit(&rows, &targets)?;
    if fit.coefficients.iter().any(|coefficient| *coefficient < 0.0) {
        return None;
    }
    // Said of X^-p relative to the measured one; its power gives the throughput.
    let left_out: Vec<f64> = rows
        .iter()
        .zip(runs)
        .map(|(row, run)| run.rate * fit.without(row, 1.0).max(1e-9).powf(-1.0 / knee))
        .collect();
    let error = left_out
        .iter()
        .zip(runs)
        .map(|(predicted, run)| (predicted / run.rate).ln().powi(2))
        .sum();
    Some(RateFit {
        knee,
        chosen: chosen.to_vec(),
        fit,
        left_out,
        error,
    })
}

/// Fits curves.
pub fn fit_runs(runs: Vec<MeasuredRun>) -> Result<FittedCurves, Fault> {
    if runs.len() < FEWEST {
        return Err(Fault::caller(format!("{} runs: expected {FEWEST} or more", runs.len())));
    }
    let shares = runs.iter().map(|run| run.write_share);
    let (least, most) = (shares.clone().fold(1.0, f64::min), shares.fold(0.0, f64::max));
    if most - least > SAME_SHARE {
        return Err(Fault::caller(format!(
            "the runs' shares of writes are {least:.2} to {most:.2}: expected the same, so fit reads and writes apart"
        )));
    }
    let mut best: Option<RateFit> = None;
    for set in 1..1_usize << PARTS.len() {
        let chosen: Vec<usize> = (0..PARTS.len()).filter(|part| set & (1 << part) != 0).collect();
        for knee in KNEES {
            if let Some(one) = try_rate(&runs, &chosen, knee)
                && best.as_ref().is_none_or(|best| one.error < best.error)
            {
                best = Some(one);
            }
        }
    }
    let unfit = || Fault::caller("the runs do not tell gateways, storage nodes and sizes apart: measure more of them");
    let best = best.ok_or_else(unfit)?;
    let p99 = fit_p99(&runs).ok_or_else(unfit)?;
    let left_out = runs
        .iter()
        .enumerate()
        .map(|(at, run)| {
            let mut others = runs.clone();
            others.remove(at);
            let others = fit_p99(&others).unwrap_or_else(|| p99.clone());
            let predicted = best.left_out[at];
            LeftOut {
                name: run.name.clone(),
                rate: (run.rate, predicted),
                p99: (run.p99, p99_at(&others, Configuration::of(run), predicted)),
            }
        })
        .collect();
    let seconds = best
        .fit
        .coefficients
        .iter()
        .map(|coefficient| coefficient.powf(1.0 / best.knee));
    Ok(FittedCurves {
        knee: best.knee,
        parts: best.chosen.iter().map(|part| PARTS[*part]).zip(seconds).collect(),
        left_out,
        noise: noise(&runs),
        not_varied: not_varied(&runs),
        chosen: best.chosen,
        rate: best.fit,
        p99,
        runs,
    })
}

/// With as many columns as the runs can tell apart: size, mean time, or a constant.
fn fit_p99(runs: &[MeasuredRun]) -> Option<LinearFit> {
    let targets: Vec<f64> = runs.iter().map(|run| run.p99.ln()).collect();
    (1..=3).rev().find_map(|columns| {
        let rows: Vec<Vec<f64>> = runs
            .iter()
            .map(|run| p99_row(Configuration::of(run), run.rate)[..columns].to_vec())
            .collect();
        fit(&rows, &targets)
    })
}

fn p99_at(p99: &LinearFit, configuration: Configuration, rate: f64) -> f64 {
    p99.at(&p99_row(configuration, rate)[..p99.coefficients.len()]).exp()
}

/// One number of a configuration.
type ConfigurationNumber = fn(&Configuration) -> f64;

fn not_varied(runs: &[MeasuredRun]) -> Vec<&'static str> {
    let is_same = |get: ConfigurationNumber| {
        let mut all = runs.iter().map(|run| get(&Configuration::of(run)));
        all.next().is_none_or(|first| all.all(|one| one == first))
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

/// The relative deviation of throughput among runs of the same configuration.
fn noise(runs: &[MeasuredRun]) -> Option<f64> {
    let is_same = |one: &MeasuredRun, other: &MeasuredRun| {
        let (one, other) = (Configuration::of(one), Configuration::of(other));
        let sizes = one.size / other.size.max(1e-9);
        (0.95..1.05).contains(&sizes) && Configuration { size: 0.0, ..one } == Configuration { size: 0.0, ..other }
    };
    let (mut squares, mut freedom, mut seen) = (0.0, 0, vec![false; runs.len()]);
    for at in 0..runs.len() {
        if seen[at] {
            continue;
        }
        let group: Vec<usize> = (at..runs.len())
            .filter(|other| is_same(&runs[at], &runs[*other]))
            .collect();
        let mean = group.iter().map(|one| runs[*one].rate.ln()).sum::<f64>() / group.len() as f64;
        squares += group
            .iter()
            .map(|one| (runs[*one].rate.ln() - mean).powi(2))
            .sum::<f64>();
        freedom += group.len() - 1;
        group.iter().for_each(|one| seen[*one] = true);
    }
    (freedom > 0).then(|| (squares / freedom as f64).sqrt())
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
    /// What was not measured.
    pub extrapolations: Vec<Extrapolation>,
}

impl FittedCurves {
    /// What they say of a configuration.
    pub fn predict(&self, configuration: Configuration) -> CurvePrediction {
        let sum = self.rate.at(&rate_row(configuration, &self.chosen, self.knee, 1.0));
        let rate = sum.powf(-1.0 / self.knee);
        // Relative to its own time, as rows of runs are.
        let row = rate_row(configuration, &self.chosen, self.knee, 1.0 / rate);
        let half = self.rate.half_band(&row);
        // A band that reaches a time of nothing has no upper end.
        let bound = |relative: f64| match relative > 0.0 {
            true => rate * relative.powf(-1.0 / self.knee),
            false => f64::INFINITY,
        };
        let columns = self.p99.coefficients.len();
        let row = &p99_row(configuration, rate)[..columns];
        let (p99, spread) = (self.p99.at(row).exp(), self.p99.half_band(row).exp());
        CurvePrediction {
            configuration,
            rate: Estimate {
                value: rate,
                low: bound(1.0 + half),
                high: bound(1.0 - half),
            },
            p99: Estimate {
                value: p99,
                low: p99 / spread,
                high: p99 * spread,
            },
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
            let rate = self.predict(configuration).rate.value;
            (gateway_price + f64::from(*nodes) * storage_price) / rate
        };
        (least..=most).min_by(|one, other| cost(one).total_cmp(&cost(other)))
    }
}

#[cfg(test)]
mod tests;
