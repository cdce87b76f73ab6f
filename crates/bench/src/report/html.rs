//! A run as a page: one HTML file with its pictures in it, which needs nothing else and runs no script.
//!
//! Always holds: names and messages of the workload are text on the page, whatever is in them; times and rates are
//! those of the JSON report.

mod observed;

use super::plots::{self, COLORS, PlotLine, PlotScale};
use super::{IntervalOperation, IntervalReport, OperationReport, RunReport, StageReport, WorkReport};
use quick_xml::escape::escape;
use std::fmt::Write;
use vocabulary::Fault;

/// How the page looks.
const STYLE: &str = include_str!("html.css");
/// Percentiles that the table of a work has.
const SHOWN: [&str; 5] = ["50", "90", "99", "99.9", "99.99"];

/// How a page begins.
pub(super) fn head(name: &str, description: &str) -> String {
    let (name, description) = (escape(name), escape(description));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{name}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{name}</h1>\n<p>{description}</p>\n"
    )
}

/// The page of a run.
pub fn page(report: &RunReport) -> Result<String, Fault> {
    let mut page = head(&report.workload, &report.description);
    if report.interrupted {
        page += "<p class=\"warning\">The run was interrupted: the figures are those until then.</p>\n";
    }
    for stage in &report.stages {
        for work in stage.works.iter().filter(|work| !work.operations.is_empty()) {
            add_work(&mut page, stage, work)?;
        }
        observed::add_observed(&mut page, &stage.name, &stage.observed)?;
    }
    let manifest = &report.manifest;
    // Writing to memory does not fail.
    let _ = writeln!(
        page,
        "<h2>How it can be run again</h2>\n<p>Version {}, seed {}, {} threads for each work, bodies {}compared.</p>\n\
         <pre>{}</pre>\n</body>\n</html>",
        escape(&manifest.version),
        manifest.seed,
        manifest.threads,
        if manifest.verifies { "" } else { "not " },
        escape(&manifest.source)
    );
    Ok(page)
}

fn add_work(page: &mut String, stage: &StageReport, work: &WorkReport) -> Result<(), Fault> {
    let open = work
        .rate
        .map_or(String::new(), |rate| format!(", {rate} requests a second asked for"));
    // Writing to memory does not fail.
    let _ = writeln!(
        page,
        "<section>\n<h2>{} / {}</h2>\n<p>{} workers, {:.1} s measured{open}</p>",
        escape(&stage.name),
        escape(&work.name),
        work.workers,
        work.measured
    );
    if work.has_failed {
        *page += "<p class=\"warning\">More requests failed than the work accepts.</p>\n";
    }
    if work.client_is_limit {
        let _ = writeln!(
            page,
            "<p class=\"warning\">The client was busy {:.0} % of the time: it, rather than the store, may have been \
             the limit.</p>",
            work.client_load * 100.0
        );
    }
    add_table(page, work);
    // The pictures need a step from one interval to the next.
    if work.over_time.len() > 1 {
        add_pictures(page, work, &stage.observed.marks())?;
    }
    *page += "</section>\n";
    Ok(())
}

fn add_table(page: &mut String, work: &WorkReport) {
    *page += "<table>\n<tr><th></th><th>succeeded</th><th>failed</th><th>op/s</th><th>MB/s</th><th>mean ms</th>";
    for percent in SHOWN {
        *page += &format!("<th>p{percent}</th>");
    }
    *page += "<th>longest</th></tr>\n";
    let mut rows: Vec<&OperationReport> = work.operations.iter().collect();
    if rows.len() > 1 {
        rows.push(&work.total);
    }
    for row in rows {
        // Writing to memory does not fail.
        let _ = write!(
            page,
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{:.1}</td><td>{:.2}</td><td>{:.2}</td>",
            escape(&row.kind),
            row.succeeded,
            row.failed,
            row.rate,
            row.bandwidth / 1e6,
            row.latency.mean
        );
        for percent in SHOWN {
            let _ = write!(page, "<td>{:.2}</td>", row.latency.at(percent));
        }
        let _ = writeln!(page, "<td>{:.2}</td></tr>", row.latency.longest);
    }
    *page += "</table>\n";
    for (why, count) in &work.total.failures {
        let _ = writeln!(page, "<p class=\"warning\">Failed: {}, {count} times.</p>", escape(why));
    }
}

fn add_pictures(page: &mut String, work: &WorkReport, marks: &[(f64, String)]) -> Result<(), Fault> {
    let throughput = by_operation(work, |one, length| one.succeeded as f64 / length);
    add_lines(page, "Throughput", "op/s", PlotScale::Linear, &throughput, marks)?;
    let percentiles = ["50", "99", "99.9"].map(|percent| PlotLine {
        name: format!("p{percent}"),
        points: (work.over_time.iter())
            .map(|interval| (interval.until, interval.latency.at(percent)))
            .collect(),
    });
    add_lines(page, "Latency", "ms", PlotScale::Logarithmic, &percentiles, marks)?;
    let columns: Vec<_> = (work.over_time.iter())
        .map(|interval| (interval.until, interval.spread.clone()))
        .collect();
    add_picture(page, "Latency, as a heat map", &[], &plots::heat_map(&columns, marks)?);
    if work
        .over_time
        .iter()
        .flat_map(|interval| &interval.operations)
        .any(|one| one.failed > 0)
    {
        let errors = by_operation(work, |one, length| one.failed as f64 / length);
        add_lines(page, "Errors", "errors/s", PlotScale::Linear, &errors, marks)?;
    } else {
        *page += "<p>No request failed.</p>\n";
    }
    Ok(())
}

/// A figure of each operation over time; `figure` gets the length of an interval.
fn by_operation(work: &WorkReport, figure: impl Fn(&IntervalOperation, f64) -> f64) -> Vec<PlotLine> {
    let length = work.over_time.first().map_or(1.0, |first| first.until);
    let of = |at: usize, interval: &IntervalReport| {
        let one = interval.operations.get(at)?;
        Some((interval.until, figure(one, length)))
    };
    (work.operations.iter().enumerate())
        .map(|(at, operation)| PlotLine {
            name: operation.kind.clone(),
            points: work.over_time.iter().filter_map(|interval| of(at, interval)).collect(),
        })
        .collect()
}

/// A row of a table: its name, then its cells.
pub(super) fn add_row(page: &mut String, name: &str, cells: impl IntoIterator<Item = String>) {
    // Writing to memory does not fail.
    let _ = write!(page, "<tr><th>{}</th>", escape(name));
    for cell in cells {
        let _ = write!(page, "<td>{cell}</td>");
    }
    *page += "</tr>\n";
}

/// A picture of lines over time; marks are moments with what happened then.
pub(super) fn add_lines(
    page: &mut String,
    title: &str,
    unit: &str,
    scale: PlotScale,
    all: &[PlotLine],
    marks: &[(f64, String)],
) -> Result<(), Fault> {
    let names: Vec<&str> = all.iter().map(|line| line.name.as_str()).collect();
    add_picture(page, title, &names, &plots::lines(unit, scale, all, marks)?);
    Ok(())
}

/// A picture with the colours of its lines.
pub(super) fn add_picture(page: &mut String, title: &str, names: &[&str], picture: &str) {
    let _ = write!(page, "<figure>\n<figcaption>{title}");
    for (name, color) in names.iter().zip(COLORS.iter().cycle()) {
        let _ = write!(
            page,
            " <span class=\"key\" style=\"background: rgb({}, {}, {})\"></span> {}",
            color.0,
            color.1,
            color.2,
            escape(*name)
        );
    }
    let _ = writeln!(page, "</figcaption>\n{picture}</figure>");
}

#[cfg(test)]
mod tests {
    use super::page;
    use crate::figures::{Failure, RequestOutcome, WorkFigures};
    use crate::load::WorkResult;
    use crate::report::{Manifest, RunReport, StageReport, WorkReport};
    use crate::workload::cosbench;
    use std::time::Duration;

    const WORKLOAD: &str = "<workload name='w'><workflow><workstage name='s'><work name='main' workers='1' interval='1' \
        runtime='9'><operation type='read' ratio='100' config='containers=c(1);objects=c(1)'/></work></workstage>\
        </workflow></workload>";

    fn report(failure: Option<Failure>) -> RunReport {
        let second = Duration::from_secs(1);
        let work = cosbench::parse(WORKLOAD).unwrap().stages[0].works[0].clone();
        let mut figures = WorkFigures::new(1, second);
        for at in 0..4 {
            let outcome = RequestOutcome {
                bytes: 10,
                latency: Duration::from_millis(3),
                first_byte: None,
                failure: failure.filter(|_| at == 2),
            };
            figures.record(0, second * at, true, &outcome);
        }
        let result = WorkResult {
            figures,
            measured: second * 4,
            cpu: second,
            lasted: second * 4,
            threads: 1,
        };
        RunReport {
            workload: "<script>alert(1)</script>".to_owned(),
            description: "a & b".to_owned(),
            manifest: Manifest {
                version: "1".to_owned(),
                seed: 17,
                threads: 1,
                verifies: false,
                begun: 0.0,
                source: WORKLOAD.to_owned(),
            },
            stages: vec![StageReport {
                name: "s".to_owned(),
                works: vec![WorkReport::of(&work, &result)],
                lasted: 4.0,
                ..StageReport::default()
            }],
            interrupted: false,
        }
    }

    #[test]
    fn a_page_needs_nothing_else_and_runs_nothing() {
        let page = page(&report(None)).unwrap();
        assert!(
            page.contains("&lt;script&gt;alert(1)") && page.contains("a &amp; b"),
            "{page}"
        );
        for forbidden in ["<script", "src=", "href=", "url(", "@import"] {
            assert!(!page.contains(forbidden), "{forbidden} in {page}");
        }
        assert!(page.contains("&lt;workload name=") && page.contains("seed 17"));
    }

    #[test]
    fn errors_have_a_picture_where_there_are_any() {
        let (whole, broken) = (report(None), report(Some(Failure::Status(503))));
        let (whole, broken) = (page(&whole).unwrap(), page(&broken).unwrap());
        assert_eq!((whole.matches("<svg").count(), broken.matches("<svg").count()), (3, 4));
        assert!(whole.contains("No request failed.") && broken.contains("Failed: status 503, 1 times."));
    }
}
