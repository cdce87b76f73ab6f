//! Fitted curves as text.

use super::terminal::banded;
use crate::arguments::FitArguments;
use crate::fit::{CurvePrediction, FittedCurves};
use crate::model::estimate::readable;
use serde::Serialize;
use std::fmt::Write;

/// What a good fit keeps: relative errors of throughput and of p99.
const BOUNDS: (f64, f64) = (0.15, 0.30);

/// The cheapest number of storage nodes behind a gateway, for a size and a number of workers.
#[derive(Debug, Serialize)]
pub struct MagicNumber {
    /// Bytes of a body.
    pub size: f64,
    /// Requests under way.
    pub workers: f64,
    /// Storage nodes, of those measured.
    pub storage_nodes: u32,
}

/// Curves, and what was asked of them.
#[derive(Debug, Serialize)]
pub struct CurvesReport {
    /// The curves.
    pub curves: FittedCurves,
    /// What they say.
    pub predictions: Vec<CurvePrediction>,
    /// Where throughput is cheapest, where prices were given.
    pub magic_numbers: Vec<MagicNumber>,
}

impl CurvesReport {
    /// What a command line asks of curves.
    pub fn of(curves: FittedCurves, line: &FitArguments) -> Self {
        let predictions = line.at.iter().map(|one| curves.predict(*one)).collect();
        let mut asked: Vec<(f64, f64)> = curves.runs.iter().map(|run| (run.size.round(), run.workers)).collect();
        asked.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
        asked.dedup();
        let magic = |(gateway, node): (f64, f64)| {
            let number = |(size, workers): &(f64, f64)| {
                let nodes = curves.magic_number(gateway, node, *size, *workers)?;
                Some(MagicNumber {
                    size: *size,
                    workers: *workers,
                    storage_nodes: nodes,
                })
            };
            asked.iter().filter_map(number).collect()
        };
        Self {
            predictions,
            magic_numbers: line.prices.map_or(vec![], magic),
            curves,
        }
    }

    /// Everything, in words.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut say = |line: String| {
            // Writing to memory does not fail.
            let _ = writeln!(text, "{line}");
        };
        let curves = &self.curves;
        say(format!(
            "{} runs; knee {}; where many requests are under way at a node, the time of each goes with their number^{}; it \
             is made of:",
            curves.runs.len(),
            curves.knee,
            curves.crowding
        ));
        for (part, seconds) in &curves.parts {
            say(format!("  {part:<28} {} s", readable(*seconds)));
        }
        if !curves.tail.is_empty() {
            let powers = curves.tail.iter().map(|(name, power)| format!("{name}^{power:.2}"));
            say(format!("  p99 goes with {}", powers.collect::<Vec<_>>().join(" ")));
        }
        if !curves.not_varied.is_empty() {
            say(format!(
                "  NOT MEASURED: {} are the same in all runs, so that their part of the time is not known",
                curves.not_varied.join(", ")
            ));
        }
        say("\nEach configuration (gateways : storage nodes) left out with all of its runs: measured, and predicted by the others".to_owned());
        let mut good = 0;
        for one in &curves.left_out {
            let (rate, p99) = one.errors();
            good += usize::from(rate.abs() <= BOUNDS.0 && p99.abs() <= BOUNDS.1);
            say(format!(
                "  {:<32} {:>8} {:>8} requests/s ({:+.1} %)  p99 {:>8} {:>8} ms ({:+.1} %)",
                one.name,
                readable(one.rate.0),
                readable(one.rate.1),
                rate * 100.0,
                readable(one.p99.0 * 1e3),
                readable(one.p99.1 * 1e3),
                p99 * 100.0
            ));
        }
        say(format!(
            "{good} of {} within {:.0} % of throughput and {:.0} % of p99",
            curves.left_out.len(),
            BOUNDS.0 * 100.0,
            BOUNDS.1 * 100.0
        ));
        say(match curves.noise {
            Some(noise) => format!(
                "Single runs of a configuration deviate by {:.1} % of throughput and {:.1} % of p99",
                noise.rate * 100.0,
                noise.p99 * 100.0
            ),
            None => "No configuration was measured twice: the noise of runs is not known".to_owned(),
        });
        self.add_predictions(&mut text);
        text
    }

    fn add_predictions(&self, text: &mut String) {
        let mut say = |line: String| {
            // Writing to memory does not fail.
            let _ = writeln!(text, "{line}");
        };
        for one in &self.predictions {
            let asked = one.configuration;
            say(format!(
                "\n{} gateways, {} storage nodes, {} bytes, {} workers: {} requests/s, {} MB/s, p99 {} ms",
                asked.gateways,
                asked.storage_nodes,
                asked.size,
                asked.workers,
                banded(one.rate),
                banded(one.rate.map(|rate| rate * asked.size / 1e6)),
                banded(one.p99.map(|seconds| seconds * 1e3))
            ));
            if let Some((resource, most)) = one.bound {
                say(format!(
                    "  {} bear at most {} requests/s",
                    resource.name(),
                    readable(most)
                ));
            }
            for outside in &one.extrapolations {
                say(format!("  NOT MEASURED: {outside}"));
            }
        }
        for one in &self.magic_numbers {
            say(format!(
                "Cheapest behind one gateway at {} bytes and {} workers: {} storage nodes",
                one.size, one.workers, one.storage_nodes
            ));
        }
    }
}
