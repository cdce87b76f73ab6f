//! COSBench's files: what its users' scripts and spreadsheets read.
//!
//! | file | one line for each |
//! |---|---|
//! | `w1-NAME.csv` | operation of each stage |
//! | `s1-STAGE.csv` | interval of the stage |
//! | `w1-NAME-rt-histogram.csv` | ten milliseconds of response time, of each stage's operations |
//! | `workload-config.xml` or `.toml` | the workload |
//!
//! Source: COSBench User Guide 0.4.2, section 5.2.

use super::{OperationReport, RunReport, StageReport, WorkReport};
use std::fmt::Write;
use std::time::Duration;

/// The step of the histogram.
pub const STEP: Duration = Duration::from_millis(10);
/// Steps of the histogram: from 0 to 500 seconds. What took longer is counted in the last one.
const STEPS: usize = 50_000;

/// The files of a run by their names.
pub fn files(report: &RunReport, run: u32) -> Vec<(String, String)> {
    let base = format!("w{run}-{}", file_name(&report.workload));
    let mut files = vec![
        (format!("{base}.csv"), overall(report)),
        (format!("{base}-rt-histogram.csv"), histogram(report)),
    ];
    for (at, stage) in report.stages.iter().enumerate() {
        files.push((format!("s{}-{}.csv", at + 1, file_name(&stage.name)), timeline(stage)));
    }
    let suffix = if report.manifest.source.trim_start().starts_with('<') {
        "xml"
    } else {
        "toml"
    };
    files.push((format!("workload-config.{suffix}"), report.manifest.source.clone()));
    files
}

/// As file names are on every system.
fn file_name(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect()
}

/// All operations of a stage with their work.
fn operations(stage: &StageReport) -> impl Iterator<Item = (&WorkReport, &OperationReport)> {
    stage
        .works
        .iter()
        .flat_map(|work| work.operations.iter().map(move |operation| (work, operation)))
}

fn overall(report: &RunReport) -> String {
    let mut text = String::from(
        "Stage,Op-Name,Op-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,80%-ResTime,90%-ResTime,\
         95%-ResTime,99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,Status,Detailed Status\n",
    );
    for (at, stage) in report.stages.iter().enumerate() {
        for (work, one) in operations(stage) {
            let status = if work.has_failed { "failed" } else { "completed" };
            let ratio = one
                .success_ratio()
                .map_or("N/A".to_owned(), |ratio| format!("{:.2}%", ratio * 100.0));
            let at_percent = |name: &str| format!("{:.0}", one.latency.at(name));
            // Writing to memory does not fail.
            let _ = writeln!(
                text,
                "s{}-{},{},{},{},{},{:.2},{:.2},{},{},{},{},{},{:.0},{:.2},{:.2},{ratio},{status},{status}",
                at + 1,
                stage.name,
                one.kind,
                one.kind,
                one.succeeded,
                one.bytes,
                one.latency.mean,
                one.first_byte.mean,
                at_percent("60"),
                at_percent("80"),
                at_percent("90"),
                at_percent("95"),
                at_percent("99"),
                one.latency.longest,
                one.rate,
                one.bandwidth,
            );
        }
    }
    text
}

fn timeline(stage: &StageReport) -> String {
    let columns: Vec<(&WorkReport, usize, &OperationReport)> = stage
        .works
        .iter()
        .flat_map(|work| {
            work.operations
                .iter()
                .enumerate()
                .map(move |(at, operation)| (work, at, operation))
        })
        .collect();
    let mut text = String::from("Timestamp");
    for group in [
        "Op-Count",
        "Byte-Count",
        "Avg-ResTime",
        "Avg-ProcTime",
        "Throughput",
        "Bandwidth",
        "Succ-Ratio",
    ] {
        for (_, _, operation) in &columns {
            let _ = write!(text, ",{} {group}", operation.kind);
        }
    }
    text += ",Version-Info\n";
    let steps = stage.works.iter().map(|work| work.over_time.len()).max().unwrap_or(0);
    for step in 0..steps {
        let cells: Vec<_> = columns
            .iter()
            .map(|(work, at, _)| work.over_time.get(step).map(|i| (i, &i.operations[*at])))
            .collect();
        let until = cells
            .iter()
            .flatten()
            .map(|(interval, _)| interval.until)
            .next()
            .unwrap_or(0.0);
        let length = until / (step + 1) as f64;
        let _ = write!(text, "{until:.0}");
        for value in [
            |one: &super::IntervalOperation, _: f64| one.succeeded.to_string(),
            |one: &super::IntervalOperation, _: f64| one.bytes.to_string(),
            |one: &super::IntervalOperation, _: f64| format!("{:.2}", one.mean),
            |one: &super::IntervalOperation, _: f64| format!("{:.2}", one.first_byte),
            |one: &super::IntervalOperation, length: f64| format!("{:.2}", one.succeeded as f64 / length),
            |one: &super::IntervalOperation, length: f64| format!("{:.2}", one.bytes as f64 / length),
            |one: &super::IntervalOperation, _: f64| match one.succeeded + one.failed {
                0 => "N/A".to_owned(),
                all => format!("{:.2}%", one.succeeded as f64 / all as f64 * 100.0),
            },
        ] {
            for cell in &cells {
                let _ = write!(text, ",{}", cell.map_or("0".to_owned(), |(_, one)| value(one, length)));
            }
        }
        text += ",\n";
    }
    text
}

fn histogram(report: &RunReport) -> String {
    let columns: Vec<(usize, &StageReport, &WorkReport)> = report
        .stages
        .iter()
        .enumerate()
        .flat_map(|(at, stage)| stage.works.iter().map(move |work| (at, stage, work)))
        .filter(|(_, _, work)| !work.operations.is_empty())
        .collect();
    let mut text = String::from("ResTime");
    for (at, stage, work) in &columns {
        let _ = write!(text, ",s{}-{}-{},(%)", at + 1, stage.name, work.name);
    }
    text += "\n";
    let longest = columns
        .iter()
        .map(|(_, _, work)| work.steps.len())
        .max()
        .unwrap_or(0)
        .min(STEPS);
    let mut so_far = vec![0_u64; columns.len()];
    for step in 0..longest {
        let millis = STEP.as_millis() as usize;
        let _ = write!(text, "{}~{}", step * millis, (step + 1) * millis);
        for ((_, _, work), so_far) in columns.iter().zip(&mut so_far) {
            let count: u64 = match step + 1 == longest {
                true => work.steps.iter().skip(step).sum(),
                false => work.steps.get(step).copied().unwrap_or(0),
            };
            *so_far += count;
            let share = *so_far as f64 / (work.total.succeeded.max(1)) as f64;
            let _ = write!(text, ",{count},{:.2}%", share * 100.0);
        }
        text += "\n";
    }
    text
}
