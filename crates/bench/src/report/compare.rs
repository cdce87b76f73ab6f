//! Two runs side by side: is one of them better, and how sure is that?
//!
//! Figures of neighbouring intervals resemble each other, so that the run is cut into [`BATCHES`] batches of intervals
//! whose means are taken for independent (the method of batch means). The ratio of the two runs' means has a confidence
//! interval by Fieller's approximation to first order: relative variances add up.
//! Always holds: a difference is only called one when the confidence interval of the ratio leaves out 1.
//! Source: A. M. Law, "Simulation Modeling and Analysis", section 9.5.3 (batch means).

use serde_json::Value;
use vocabulary::Fault;

/// Batches of each run.
const BATCHES: usize = 10;
/// The quantile of Student's distribution for 95 % with 2 * (BATCHES - 1) degrees of freedom.
const STUDENT: f64 = 2.101;

/// One figure of two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// `main / main: read op/s`.
    pub what: String,
    /// Of the first run.
    pub before: f64,
    /// Of the second one.
    pub after: f64,
    /// After to before.
    pub ratio: f64,
    /// The ratio lies in here with 95 % confidence.
    pub interval: (f64, f64),
    /// More of it is better.
    pub more_is_better: bool,
}

/// What a comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonVerdict {
    /// The second run is better.
    Better,
    /// The second run is worse.
    Worse,
    /// Neither is shown.
    NoDifference,
}

impl Comparison {
    /// Whether there is a difference.
    pub fn verdict(&self) -> ComparisonVerdict {
        let (low, high) = self.interval;
        match (low > 1.0, high < 1.0, self.more_is_better) {
            (true, _, true) | (_, true, false) => ComparisonVerdict::Better,
            (true, _, false) | (_, true, true) => ComparisonVerdict::Worse,
            _ => ComparisonVerdict::NoDifference,
        }
    }

    fn of(what: String, before: &[f64], after: &[f64], more_is_better: bool) -> Option<Self> {
        let (before, after) = (batch_means(before)?, batch_means(after)?);
        let (mean_before, mean_after) = (mean(&before), mean(&after));
        if mean_before <= 0.0 || mean_after <= 0.0 {
            return None;
        }
        let ratio = mean_after / mean_before;
        let spread = (relative_variance(&before) + relative_variance(&after)).sqrt();
        Some(Self {
            what,
            before: mean_before,
            after: mean_after,
            ratio,
            interval: (ratio * (1.0 - STUDENT * spread), ratio * (1.0 + STUDENT * spread)),
            more_is_better,
        })
    }
}

/// Compares two reports, as [`super::RunReport`] becomes JSON.
pub fn compare(before: &Value, after: &Value) -> Result<Vec<Comparison>, Fault> {
    let mut comparisons = vec![];
    for (name, work) in works(before) {
        let Some((_, other)) = works(after).into_iter().find(|(other, _)| *other == name) else {
            return Err(Fault::caller(format!(
                "the second report has no {name}: compare runs of the same workload"
            )));
        };
        for (at, operation) in list(&work["operations"]).iter().enumerate() {
            let kind = operation["kind"].as_str().unwrap_or_default();
            let rate = |work: &Value| series(work, at, |one, length| one["succeeded"].as_f64().map(|n| n / length));
            let latency = |work: &Value| series(work, at, |one, _| one["mean"].as_f64().filter(|mean| *mean > 0.0));
            let what = |figure: &str| format!("{name}: {kind} {figure}");
            comparisons.extend(Comparison::of(what("op/s"), &rate(work), &rate(other), true));
            comparisons.extend(Comparison::of(what("mean ms"), &latency(work), &latency(other), false));
        }
    }
    match comparisons.is_empty() {
        true => Err(Fault::caller(format!(
            "nothing to compare: both runs need a normal work of {BATCHES} intervals or more"
        ))),
        false => Ok(comparisons),
    }
}

/// Normal works with their names.
fn works(report: &Value) -> Vec<(String, &Value)> {
    let mut works = vec![];
    for stage in list(&report["stages"]) {
        for work in list(&stage["works"]).iter().filter(|work| work["kind"] == "normal") {
            let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            works.push((format!("{} / {}", word(&stage["name"]), word(&work["name"])), work));
        }
    }
    works
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A figure of an operation, by interval. The first and the last one are not whole.
fn series(work: &Value, operation: usize, figure: impl Fn(&Value, f64) -> Option<f64>) -> Vec<f64> {
    let intervals = list(&work["over_time"]);
    let length = intervals
        .first()
        .and_then(|first| first["until"].as_f64())
        .unwrap_or(1.0);
    let whole = intervals.get(1..intervals.len().saturating_sub(1)).unwrap_or_default();
    whole
        .iter()
        .filter_map(|interval| figure(list(&interval["operations"]).get(operation)?, length))
        .collect()
}

/// Means of batches of equal length; nothing when there are too few figures.
fn batch_means(figures: &[f64]) -> Option<Vec<f64>> {
    let length = figures.len() / BATCHES;
    (length > 0).then(|| figures.chunks_exact(length).take(BATCHES).map(mean).collect())
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len().max(1) as f64
}

/// Of the mean of these figures, in relation to its square.
fn relative_variance(figures: &[f64]) -> f64 {
    let (middle, count) = (mean(figures), figures.len() as f64);
    let squares: f64 = figures.iter().map(|one| (one - middle).powi(2)).sum();
    squares / (count - 1.0) / count / middle.powi(2)
}

#[cfg(test)]
mod tests {
    use super::{Comparison, ComparisonVerdict, compare};
    use serde_json::json;

    fn noisy(level: f64, seed: u64) -> Vec<f64> {
        let mut dice = fastrand::Rng::with_seed(seed);
        (0..60).map(|_| level * (0.9 + 0.2 * dice.f64())).collect()
    }

    #[test]
    fn equal_runs_do_not_differ_and_others_do() {
        let mut wrongly = 0;
        for seed in 0..200 {
            let same = Comparison::of("x".into(), &noisy(100.0, seed), &noisy(100.0, seed + 1000), true).unwrap();
            wrongly += u32::from(same.verdict() != ComparisonVerdict::NoDifference);
            let less = Comparison::of("x".into(), &noisy(100.0, seed), &noisy(90.0, seed + 1000), true).unwrap();
            assert_eq!(less.verdict(), ComparisonVerdict::Worse, "{less:?}");
            let slower = Comparison::of("x".into(), &noisy(90.0, seed), &noisy(100.0, seed + 1000), false).unwrap();
            assert_eq!(slower.verdict(), ComparisonVerdict::Worse, "{slower:?}");
        }
        // One in twenty at 95 %, and some room for chance.
        assert!(wrongly < 25, "{wrongly} of 200");
    }

    #[test]
    fn reports_of_other_workloads_are_refused() {
        let report = |name: &str| json!({"stages": [{"name": name, "works": [{"name": "w", "kind": "normal"}]}]});
        let refused = compare(&report("a"), &report("b")).unwrap_err().to_string();
        assert!(refused.contains("has no a / w"), "{refused}");
        let refused = compare(&report("a"), &report("a")).unwrap_err().to_string();
        assert!(refused.starts_with("nothing to compare"), "{refused}");
    }
}
