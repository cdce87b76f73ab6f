//! A run as a table for people.

use super::{OperationReport, RunReport, StageReport};
use std::fmt::Write;

/// The whole run.
pub fn text(report: &RunReport) -> String {
    let mut text = String::new();
    for stage in &report.stages {
        text += &stage_text(stage);
    }
    if report.interrupted {
        text += "interrupted: what stands above is what was measured until then\n";
    }
    text
}

/// One stage: a line for each operation, and what is to be known beside it.
pub fn stage_text(stage: &StageReport) -> String {
    let mut text = String::new();
    for work in &stage.works {
        let open = work
            .rate
            .map_or(String::new(), |rate| format!(", {rate} requests a second asked for"));
        // Writing to memory does not fail.
        let _ = writeln!(
            text,
            "{} / {}: {} workers, {:.1} s measured{open}",
            stage.name, work.name, work.workers, work.measured
        );
        if work.operations.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "  {:<10} {:>10} {:>8} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "", "succeeded", "failed", "op/s", "MB/s", "mean ms", "p50", "p99", "p99.9", "longest"
        );
        let mut lines: Vec<&OperationReport> = work.operations.iter().collect();
        if lines.len() > 1 {
            lines.push(&work.total);
        }
        for one in lines {
            let times = &one.latency;
            let _ = writeln!(
                text,
                "  {:<10} {:>10} {:>8} {:>10.1} {:>10.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2}",
                one.kind,
                one.succeeded,
                one.failed,
                one.rate,
                one.bandwidth / 1e6,
                times.mean,
                times.at("50"),
                times.at("99"),
                times.at("99.9"),
                times.longest
            );
        }
        for (why, count) in &work.total.failures {
            let _ = writeln!(text, "  failed: {why}, {count} times");
        }
        if work.has_failed {
            let _ = writeln!(text, "  this work has failed: more requests failed than it accepts");
        }
        if work.client_is_limit {
            let _ = writeln!(
                text,
                "  the client was busy {:.0} % of the time: it, rather than the store, may have been the limit",
                work.client_load * 100.0
            );
        }
    }
    text += &stage.observed.text();
    text
}
