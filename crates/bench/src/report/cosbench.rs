//! COSBench's files: what its users' scripts and spreadsheets read.
//!
//! | file | one line for each |
//! |---|---|
//! | `run-history.csv` | run |
//! | `workloads.csv` | operation of each run |
//! | `w1-NAME.csv` | operation of each stage |
//! | `s1-STAGE.csv` | interval of the stage |
//! | `w1-NAME-rt-histogram.csv` | ten milliseconds of response time, of the operations of normal works |
//! | `workload-config.xml` or `.toml` | the workload |
//!
//! The first two have the lines of all runs whose files are in the folder.
//! Always holds: lines, columns and their names are those of COSBench 0.4.2, as it wrote them for the workload of
//! `cosbench_tests.rs`. Beyond it, works that make and delete containers have figures, percentiles are exact, and times
//! are in UTC.

use super::{IntervalOperation, OperationReport, RunReport, StageReport, WorkReport};
use std::fmt::Write;
use std::time::Duration;
use vocabulary::Timestamp;

/// The step of the histogram.
pub const STEP: Duration = Duration::from_millis(10);
/// Steps of the histogram: from 0 to 500 seconds. What took longer is counted in one more line.
const STEPS: usize = 50_000;
/// What stands in for a figure that there is none of.
const NONE: &str = "N/A";
/// Columns of figures, the same in the file of a run and in that of all runs.
const FIGURES: &str = "Avg-ResTime,Avg-ProcTime,60%-ResTime,80%-ResTime,90%-ResTime,95%-ResTime,99%-ResTime,\
                       100%-ResTime,Throughput,Bandwidth,Succ-Ratio";

/// A file.
pub struct CosbenchFile {
    /// Its name.
    pub name: String,
    /// Its first line, where it goes on from run to run.
    pub heading: Option<&'static str>,
    /// What is written, behind the heading.
    pub text: String,
}

/// The files of a run.
pub fn files(report: &RunReport, run: u32) -> Vec<CosbenchFile> {
    let base = base_name(&report.workload, run);
    let one = |name: String, text: String| CosbenchFile {
        name,
        heading: None,
        text,
    };
    let mut files = vec![
        CosbenchFile {
            name: "run-history.csv".to_owned(),
            heading: Some("Id,Name,Submitted-At,Started-At,Stopped-At,Op-Info,State,Detailed State"),
            text: history(report, run),
        },
        CosbenchFile {
            name: "workloads.csv".to_owned(),
            heading: Some(
                "Id,Op-Name,Op-Count,Byte-Count,Worker-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,80%-ResTime,\
                 90%-ResTime,95%-ResTime,99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,Config-Info",
            ),
            text: operations_of_run(report, run),
        },
        one(format!("{base}.csv"), overall(report)),
        one(format!("{base}-rt-histogram.csv"), histogram(report)),
    ];
    for (at, stage) in report.stages.iter().enumerate() {
        let name = format!("s{}-{}.csv", at + 1, file_name(&stage.name));
        files.push(one(name, timeline(stage)));
        let beside = |what: &str| format!("s{}-{}-{what}.csv", at + 1, file_name(&stage.name));
        if !stage.observed.actions.is_empty() {
            files.push(one(beside("actions"), stage.observed.actions_csv()));
        }
        if !stage.observed.servers.is_empty() {
            files.push(one(beside("servers"), stage.observed.servers_csv()));
        }
    }
    let suffix = match report.manifest.source.trim_start().starts_with('<') {
        true => "xml",
        false => "toml",
    };
    files.push(one(format!("workload-config.{suffix}"), report.manifest.source.clone()));
    files
}

/// What names of a run's files begin with.
pub fn base_name(workload: &str, run: u32) -> String {
    format!("w{run}-{}", file_name(workload))
}

/// As file names are on every system.
fn file_name(name: &str) -> String {
    let allowed = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    name.chars().map(|c| if allowed(c) { c } else { '_' }).collect()
}

/// `2026-11-24 20:11:28`, of seconds since 1970.
fn date(seconds: f64) -> String {
    let iso = Timestamp::from_seconds(seconds.max(0.0) as u64).iso();
    iso.chars().take(19).collect::<String>().replace('T', " ")
}

/// With at most two decimals, and none that is 0.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn share(part: u64, all: u64) -> String {
    match all {
        0 => NONE.to_owned(),
        all => format!("{}%", number(part as f64 / all as f64 * 100.0)),
    }
}

/// As COSBench calls an operation of a special work: after the work, and after what it does to objects.
fn operation_name(work: &WorkReport, one: &OperationReport) -> String {
    match work.kind {
        "normal" => one.kind.clone(),
        kind @ ("init" | "prepare") => format!("{kind}-write"),
        kind => format!("{kind}-delete"),
    }
}

fn operation_type<'a>(work: &WorkReport, one: &'a OperationReport) -> &'a str {
    match work.kind {
        "normal" => &one.kind,
        kind => kind,
    }
}

/// All operations of a stage with their work.
fn operations(stage: &StageReport) -> impl Iterator<Item = (&WorkReport, &OperationReport)> {
    let works = stage.works.iter();
    works.flat_map(|work| work.operations.iter().map(move |operation| (work, operation)))
}

fn figures(one: &OperationReport) -> String {
    let has_any = one.succeeded > 0;
    let time = |value: f64| if has_any { number(value) } else { NONE.to_owned() };
    let whole = |value: f64| {
        if has_any {
            format!("{value:.0}")
        } else {
            NONE.to_owned()
        }
    };
    let mut cells = vec![time(one.latency.mean), time(one.first_byte.mean)];
    cells.extend(["60", "80", "90", "95", "99"].map(|percent| whole(one.latency.at(percent))));
    cells.push(whole(one.latency.longest));
    cells.extend([number(one.rate), number(one.bandwidth)]);
    cells.push(share(one.succeeded, one.succeeded + one.failed));
    cells.join(",")
}

fn overall(report: &RunReport) -> String {
    let mut text = format!("Stage,Op-Name,Op-Type,Op-Count,Byte-Count,{FIGURES},Status,Detailed Status\n");
    let queued = date(report.manifest.begun);
    for (at, stage) in report.stages.iter().enumerate() {
        let (begun, ended) = (date(stage.begun), date(stage.begun + stage.lasted));
        // Writing to memory does not fail.
        for (work, one) in operations(stage) {
            let status = if work.has_failed { "failed" } else { "completed" };
            let _ = writeln!(
                text,
                "s{}-{},{},{},{},{},{},{status},waiting @ {queued},running @ {begun},{status} @ {ended}",
                at + 1,
                stage.name,
                operation_name(work, one),
                operation_type(work, one),
                one.succeeded,
                one.bytes,
                figures(one),
            );
        }
        if operations(stage).next().is_none() {
            let nothing = [NONE; 15].join(",");
            let _ = writeln!(
                text,
                "{},{nothing},completed,waiting @ {queued},sleeping @ {begun},completed @ {ended}",
                stage.name
            );
        }
    }
    text
}

fn history(report: &RunReport, run: u32) -> String {
    let begun = date(report.manifest.begun);
    let ended = report
        .stages
        .last()
        .map_or(report.manifest.begun, |stage| stage.begun + stage.lasted);
    let ended = date(ended);
    let kinds = report
        .stages
        .iter()
        .flat_map(|stage| &stage.works)
        .flat_map(|work| match work.kind {
            "normal" => work.operations.iter().map(|one| one.kind.clone()).collect(),
            kind => vec![kind.to_owned()],
        });
    let mut done: Vec<String> = vec![];
    for kind in kinds {
        if !done.contains(&kind) {
            done.push(kind);
        }
    }
    let works = report.stages.iter().flat_map(|stage| &stage.works);
    let state = match (report.interrupted, works.into_iter().any(|work| work.has_failed)) {
        (true, _) => "cancelled",
        (false, true) => "failed",
        (false, false) => "finished",
    };
    format!(
        "w{run},{},{begun},{begun},{ended},{},{state},queuing @ {begun},processing @ {begun},{state} @ {ended}\n",
        report.workload,
        done.join(" ")
    )
}

fn operations_of_run(report: &RunReport, run: u32) -> String {
    let mut text = String::new();
    for (at, stage) in report.stages.iter().enumerate() {
        for (number, (work, one)) in operations(stage).enumerate() {
            // Writing to memory does not fail.
            let _ = writeln!(
                text,
                "w{run}-s{}-{}-{},{},{},{},{},{},{}",
                at + 1,
                stage.name,
                number + 1,
                operation_name(work, one),
                one.succeeded,
                one.bytes,
                work.workers,
                figures(one),
                one.names.replace(',', "-"),
            );
        }
    }
    text
}

/// A figure of a cell of the timeline; the second argument is the interval's length.
type Cell = fn(&IntervalOperation, f64) -> String;

/// Columns of the timeline, each with one column for every operation.
const GROUPS: [(&str, Cell); 7] = [
    ("Op-Count", |one, _| one.succeeded.to_string()),
    ("Byte-Count", |one, _| one.bytes.to_string()),
    ("Avg-ResTime", |one, _| mean(one, one.mean)),
    ("Avg-ProcTime", |one, _| mean(one, one.first_byte)),
    ("Throughput", |one, length| number(one.succeeded as f64 / length)),
    ("Bandwidth", |one, length| number(one.bytes as f64 / length)),
    ("Succ-Ratio", |one, _| share(one.succeeded, one.succeeded + one.failed)),
];

fn mean(one: &IntervalOperation, mean: f64) -> String {
    match one.succeeded {
        0 => NONE.to_owned(),
        _ => number(mean),
    }
}

/// Two lines of headings, then a line for each interval. A stage without operations has no lines.
fn timeline(stage: &StageReport) -> String {
    let works = stage.works.iter();
    let columns: Vec<(&WorkReport, usize, String)> = works
        .flat_map(|work| {
            let all = work.operations.iter().enumerate();
            all.map(move |(at, one)| (work, at, operation_name(work, one)))
        })
        .collect();
    if columns.is_empty() {
        return String::new();
    }
    let rest = ",".repeat(columns.len() - 1);
    let groups: Vec<String> = GROUPS.iter().map(|(name, _)| format!("{name}{rest}")).collect();
    let names: Vec<&str> = columns.iter().map(|(_, _, name)| name.as_str()).collect();
    let names = [names.join(",").as_str(); GROUPS.len()].join(",");
    let mut text = format!(
        "Timestamp,{},Version-Info,,\n,{names},Min-Version,Version,Max-Version\n",
        groups.join(",")
    );
    let steps = stage.works.iter().map(|work| work.over_time.len()).max().unwrap_or(0);
    for step in 0..steps {
        let cells: Vec<_> = (columns.iter())
            .map(|(work, at, _)| {
                work.over_time
                    .get(step)
                    .map(|interval| (interval.until, &interval.operations[*at]))
            })
            .collect();
        let until = cells.iter().flatten().map(|(until, _)| *until).next().unwrap_or(0.0);
        let length = until / (step + 1) as f64;
        let time = date(stage.begun + until);
        text += time.get(11..).unwrap_or_default();
        for (_, cell) in GROUPS {
            for one in &cells {
                text += ",";
                text += &one.map_or("0".to_owned(), |(_, one)| cell(one, length));
            }
        }
        // Writing to memory does not fail.
        let _ = writeln!(text, ",{step},{step},{step}");
    }
    text
}

fn histogram(report: &RunReport) -> String {
    let mut columns = vec![];
    let mut text = String::from("ResTime");
    for (at, stage) in report.stages.iter().enumerate() {
        for (number, work) in stage.works.iter().enumerate().filter(|(_, work)| work.kind == "normal") {
            for one in &work.operations {
                let (at, number) = (at + 1, number + 1);
                // Writing to memory does not fail.
                let _ = write!(text, ",s{at}-{}-w{number}-{}-{},(%)", stage.name, work.name, one.kind);
                columns.push((one, 0));
            }
        }
    }
    text += "\n";
    for step in 0..=STEPS {
        let millis = STEP.as_millis() as usize;
        let _ = match step {
            STEPS => write!(text, "{}~+INF", STEPS * millis),
            step => write!(text, "{}~{}", step * millis, (step + 1) * millis),
        };
        for (one, so_far) in &mut columns {
            let count: u64 = match step {
                STEPS => one.steps.iter().skip(step).sum(),
                step => one.steps.get(step).copied().unwrap_or(0),
            };
            *so_far += count;
            let part = share(*so_far, one.succeeded.max(1));
            let _ = write!(text, ",{count},{part}");
        }
        text += "\n";
    }
    text
}

#[cfg(test)]
#[path = "cosbench_tests.rs"]
mod tests;
