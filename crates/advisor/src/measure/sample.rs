//! Sampling: gateways stay as they are, storage nodes become more until throughput stops growing; and the number of
//! them ("magic N") at which a unit of throughput is cheapest.
//!
//! Throughput has stopped growing at a step when what it has gained over the step before is within the noise of runs,
//! and less than half of what as many more nodes would give if each gave as much as those before. Where noise is so
//! large that it cannot tell, sampling goes on. Noise is the deviation of repeated runs, of all steps together.
//! Always holds: a plan that cannot be sampled is refused before anything runs; a figure is the geometric mean of its
//! runs.

use super::plan::{MeasurePlan, MeasuredPrices};
use crate::fit::least_squares::student;
use crate::model::estimate::readable;
use std::fmt::Write;
use vocabulary::Fault;

/// Relative: no run is known better.
const LEAST_NOISE: f64 = 0.01;
/// Of the gain that nodes in proportion would give, the share below which throughput has stopped.
const HALF: f64 = 0.5;

/// A number of storage nodes and its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledNodes {
    /// Storage nodes.
    pub nodes: u32,
    /// Requests a second, of each run.
    pub rates: Vec<f64>,
}

/// What is known after a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SampledGrowth {
    /// It grows, or may do so.
    Grows,
    /// It has stopped: what was gained, and the gain that would be more than noise. Both are logarithms.
    Stopped {
        /// By the last step.
        gain: f64,
        /// Half of the band of 95 %.
        noise: f64,
    },
}

impl SampledNodes {
    fn log_mean(&self) -> f64 {
        let sum: f64 = self.rates.iter().map(|rate| rate.ln()).sum();
        sum / f64::max(self.rates.len() as f64, 1.0)
    }

    /// Requests a second.
    fn rate(&self) -> f64 {
        self.log_mean().exp()
    }
}

/// What the difference of two steps' logarithms must exceed to be more than noise, with 95 %.
fn noise(steps: &[SampledNodes], one: &SampledNodes, other: &SampledNodes) -> f64 {
    let squares = |step: &SampledNodes| -> f64 {
        let mean = step.log_mean();
        step.rates.iter().map(|rate| (rate.ln() - mean).powi(2)).sum()
    };
    let freedom: usize = steps.iter().map(|step| step.rates.len().saturating_sub(1)).sum();
    let deviation = (steps.iter().map(squares).sum::<f64>() / f64::max(freedom as f64, 1.0)).sqrt();
    let runs = |step: &SampledNodes| 1.0 / f64::max(step.rates.len() as f64, 1.0);
    student(freedom) * deviation.max(LEAST_NOISE) * (runs(one) + runs(other)).sqrt()
}

/// Whether throughput grew by the last step.
pub fn growth(steps: &[SampledNodes]) -> SampledGrowth {
    let [.., before, last] = steps else {
        return SampledGrowth::Grows;
    };
    let gain = last.log_mean() - before.log_mean();
    let noise = noise(steps, before, last);
    let in_proportion = (f64::from(last.nodes) / f64::from(before.nodes)).ln();
    match gain <= noise && gain < HALF * in_proportion {
        true => SampledGrowth::Stopped { gain, noise },
        false => SampledGrowth::Grows,
    }
}

/// An error for a plan that does not say one gateway kind, number, size and load, or that cannot know noise or cost.
pub fn check(plan: &MeasurePlan) -> Result<MeasuredPrices, Fault> {
    let numbers = [
        ("gateways", plan.gateways.len()),
        ("sizes", plan.sizes.len()),
        ("workers", plan.workers.len()),
    ];
    if let Some((key, count)) = numbers.into_iter().find(|(_, count)| *count != 1) {
        let why = format!("--sample: {key} has {count} numbers: expected one, since only storage_nodes vary");
        return Err(Fault::caller(why));
    }
    if plan.storage_nodes.len() < 2 || !plan.storage_nodes.is_sorted_by(|one, other| one < other) {
        let why = "--sample: storage_nodes: expected two numbers or more, each larger than the one before";
        return Err(Fault::caller(why));
    }
    if plan.repeats < 2 {
        let why = "--sample: repeats = 1: expected 2 or more, since their difference is the noise";
        return Err(Fault::caller(why));
    }
    plan.prices.clone().ok_or_else(|| {
        Fault::caller(
            "--sample: what nodes cost is not known: name kinds of an inventory by [gateway] kind and [storage] kind, or \
             write [prices] with gateway, storage (with its drives) and balancer",
        )
    })
}

/// Steps, where throughput stops and where it is cheapest, in words.
pub fn text(steps: &[SampledNodes], plan: &MeasurePlan, prices: &MeasuredPrices) -> String {
    let gateways = plan.gateways.first().copied().unwrap_or(1);
    let size = plan.sizes.first().copied().unwrap_or(1) as f64;
    let balancer = plan.balancer.map_or(0.0, |_| prices.balancer);
    let price = |nodes: u32| f64::from(gateways) * prices.gateway + f64::from(nodes) * prices.storage + balancer;
    let cost = |step: &SampledNodes| price(step.nodes) / (step.rate() * size / 1e6);
    let mut text = String::new();
    let mut say = |line: String| {
        // Writing to memory does not fail.
        let _ = writeln!(text, "{line}");
    };
    say(format!(
        "Sampling: {gateways} gateway(s), objects of {size} bytes, {} workers, {} runs of each step",
        plan.workers.first().copied().unwrap_or(1),
        plan.repeats
    ));
    say(format!(
        "  {:>13}  {:>10}  {:>8}  {:>12}  {} for each MB/s",
        "storage nodes", "requests/s", "MB/s", "price", prices.currency
    ));
    for step in steps {
        say(format!(
            "  {:>13}  {:>10}  {:>8}  {:>12.0}  {}",
            step.nodes,
            readable(step.rate()),
            readable(step.rate() * size / 1e6),
            price(step.nodes),
            readable(cost(step))
        ));
    }
    let percent = |logarithm: f64| (logarithm.exp() - 1.0) * 100.0;
    match (growth(steps), steps) {
        (SampledGrowth::Stopped { gain, noise }, [.., before, last]) => say(format!(
            "Throughput stops growing at N = {}: with {} it is {:+.1} %, and less than {:+.1} % is noise",
            before.nodes,
            last.nodes,
            percent(gain),
            percent(noise)
        )),
        _ => say(format!(
            "Throughput still grows at N = {}, or its noise is too large to tell: list more storage_nodes, or more repeats",
            steps.last().map_or(0, |step| step.nodes)
        )),
    }
    if let Some(best) = steps.iter().min_by(|one, other| cost(one).total_cmp(&cost(other))) {
        let is_equal = |step: &&SampledNodes| {
            step.nodes != best.nodes && (cost(step) / cost(best)).ln() <= noise(steps, step, best)
        };
        let equal: Vec<String> = steps
            .iter()
            .filter(is_equal)
            .map(|step| step.nodes.to_string())
            .collect();
        let beside = match equal.is_empty() {
            true => String::new(),
            false => format!("; within the noise no dearer: {}", equal.join(", ")),
        };
        let each = readable(cost(best));
        say(format!(
            "Magic N = {}: {each} {} for each MB/s{beside}",
            best.nodes, prices.currency
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{SampledGrowth, SampledNodes, check, growth, text};
    use crate::inventory::PurchaseInventory;
    use crate::measure::plan::MeasurePlan;

    fn step(nodes: u32, rates: &[f64]) -> SampledNodes {
        let rates = rates.to_vec();
        SampledNodes { nodes, rates }
    }

    #[test]
    fn throughput_stops_where_its_gain_is_noise_and_small() {
        let two = [step(1, &[100.0, 104.0]), step(2, &[195.0, 205.0])];
        assert_eq!(growth(&two[..1]), SampledGrowth::Grows);
        assert_eq!(growth(&two), SampledGrowth::Grows);
        let three = [two[0].clone(), two[1].clone(), step(4, &[203.0, 199.0])];
        let SampledGrowth::Stopped { gain, noise } = growth(&three) else {
            panic!("{:?}", growth(&three))
        };
        // Deviation 2.7 % of three pairs; Student's 3.182 for three degrees of freedom, of means of two each.
        assert!(
            (0.0..0.01).contains(&gain) && (0.07..0.1).contains(&noise),
            "{gain} {noise}"
        );
        // As noisy as this, 60 % more of 100 % more nodes may be growth.
        let noisy = [step(1, &[60.0, 150.0]), step(2, &[100.0, 240.0])];
        assert_eq!(growth(&noisy), SampledGrowth::Grows);
        // It may also become less.
        assert_ne!(
            growth(&[two[1].clone(), step(4, &[150.0, 151.0])]),
            SampledGrowth::Grows
        );
    }

    const PLAN: &str = "gateways = [1]\nstorage_nodes = [1, 2, 4]\nsizes = [1000000]\nworkers = [16]\n[gateway]\n\
                        processors = 1\n[storage]\nprocessors = 1\n[prices]\ngateway = 100\nstorage = 50\n";

    fn read(text: &str) -> MeasurePlan {
        MeasurePlan::read(text, |_| PurchaseInventory::read("")).unwrap()
    }

    #[test]
    fn the_cheapest_number_is_named() {
        let plan = read(PLAN);
        let steps = [
            step(1, &[100.0, 104.0]),
            step(2, &[195.0, 205.0]),
            step(4, &[203.0, 199.0]),
        ];
        let shown = text(&steps, &plan, &check(&plan).unwrap());
        // 200 for 199.9 MB/s; 150 for 102 are dearer, and 300 for 201 as well.
        assert!(
            shown.contains("Throughput stops growing at N = 2: with 4 it is +0.5 %"),
            "{shown}"
        );
        assert!(
            shown.ends_with("Magic N = 2: 1.00 units of money for each MB/s\n"),
            "{shown}"
        );
        let shown = text(&steps[..2], &plan, &check(&plan).unwrap());
        assert!(shown.contains("still grows at N = 2"), "{shown}");
    }

    #[test]
    fn a_plan_that_cannot_be_sampled_is_refused() {
        for (from, to, why) in [
            ("sizes = [1000000]", "sizes = [1000000, 2]", "sizes has 2 numbers"),
            ("[1, 2, 4]", "[2, 1]", "storage_nodes: expected two numbers"),
            (
                "workers = [16]",
                "workers = [16]\nrepeats = 1",
                "repeats = 1: expected 2",
            ),
            (
                "[prices]\ngateway = 100\nstorage = 50\n",
                "",
                "what nodes cost is not known",
            ),
        ] {
            let found = check(&read(&PLAN.replace(from, to))).unwrap_err().what;
            assert!(found.contains(why), "{found}");
        }
    }
}
