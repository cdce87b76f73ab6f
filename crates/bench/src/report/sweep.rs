//! A sweep: one point for each combination, as a table, as a picture, for a spreadsheet.
//!
//! Always holds: a picture has the dimension with most values across, and a line for each combination of the others.

use super::plots::{PlotLine, PlotScale, lines_across};
use super::{WorkReport, html};
use crate::arguments::RunArguments;
use quick_xml::escape::escape;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use vocabulary::Fault;

/// A sweep.
#[derive(Debug, Serialize)]
pub struct SweepReport {
    /// Name of the workload, or of its file.
    pub workload: String,
    /// Of this program.
    pub version: String,
    /// In the order in which they were measured.
    pub points: Vec<SweepPoint>,
    /// It was stopped before its end.
    pub interrupted: bool,
}

/// A work with one combination.
#[derive(Debug, Clone, Serialize)]
pub struct SweepPoint {
    /// Stage and work.
    pub work: String,
    /// Addresses of the store that the load was spread over.
    pub endpoints: usize,
    /// Containers of a named workload.
    pub containers: u64,
    /// Sizes of objects, where they are not the workload's own.
    pub sizes: String,
    /// Requests under way at a time.
    pub workers: u32,
    /// Successes a second.
    pub rate: f64,
    /// Bytes a second.
    pub bandwidth: f64,
    /// Mean latency in milliseconds.
    pub mean: f64,
    /// Median latency.
    pub p50: f64,
    /// The latency that 99 of 100 do not exceed.
    pub p99: f64,
    /// The latency that 999 of 1000 do not exceed.
    pub p999: f64,
    /// Requests that failed.
    pub failed: u64,
    /// More of them than the work accepts.
    pub has_failed: bool,
    /// Whether the client rather than the store may have been the limit.
    pub client_is_limit: bool,
}

/// What is swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dimension {
    Workers,
    Endpoints,
    Containers,
    Sizes,
}

impl Dimension {
    const ALL: [Dimension; 4] = [Self::Workers, Self::Endpoints, Self::Containers, Self::Sizes];

    fn name(self) -> &'static str {
        match self {
            Self::Workers => "workers",
            Self::Endpoints => "endpoints",
            Self::Containers => "containers",
            Self::Sizes => "size",
        }
    }

    fn of(self, point: &SweepPoint) -> String {
        match self {
            Self::Workers => point.workers.to_string(),
            Self::Endpoints => point.endpoints.to_string(),
            Self::Containers => point.containers.to_string(),
            Self::Sizes => point.sizes.clone(),
        }
    }
}

impl SweepPoint {
    /// What came of a work.
    pub fn of(run: &RunArguments, stage: &str, work: &WorkReport) -> Self {
        let latency = &work.total.latency;
        Self {
            work: format!("{stage} / {}", work.name),
            endpoints: run.extent.endpoints.len().max(1),
            containers: run.extent.containers,
            sizes: run.extent.sizes.clone().unwrap_or_else(|| "its own".to_owned()),
            workers: work.workers,
            rate: work.total.rate,
            bandwidth: work.total.bandwidth,
            mean: latency.mean,
            p50: latency.at("50"),
            p99: latency.at("99"),
            p999: latency.at("99.9"),
            failed: work.total.failed,
            has_failed: work.has_failed,
            client_is_limit: work.client_is_limit,
        }
    }

    /// The line above all points.
    pub fn heading() -> String {
        format!(
            "{:>9} {:>10} {:>12} {:>7} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>7}",
            "endpoints", "containers", "size", "workers", "op/s", "MB/s", "mean ms", "p50", "p99", "p99.9", "failed"
        )
    }
}

impl fmt::Display for SweepPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>9} {:>10} {:>12} {:>7} {:>10.1} {:>10.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>7}{}",
            self.endpoints,
            self.containers,
            self.sizes,
            self.workers,
            self.rate,
            self.bandwidth / 1e6,
            self.mean,
            self.p50,
            self.p99,
            self.p999,
            self.failed,
            if self.client_is_limit {
                "  the client may be the limit"
            } else {
                ""
            }
        )
    }
}

impl SweepReport {
    /// Nothing yet.
    pub fn of(workload: &str) -> Self {
        Self {
            workload: workload.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            points: vec![],
            interrupted: false,
        }
    }

    /// For a spreadsheet.
    pub fn csv(&self) -> String {
        let mut text = String::from(
            "Work,Endpoints,Containers,Size,Workers,Throughput,Bandwidth,Mean-ms,P50-ms,P99-ms,P99.9-ms,Failed\n",
        );
        for one in &self.points {
            // Writing to memory does not fail.
            let _ = writeln!(
                text,
                "\"{}\",{},{},\"{}\",{},{:.2},{:.2},{:.3},{:.3},{:.3},{:.3},{}",
                one.work,
                one.endpoints,
                one.containers,
                one.sizes,
                one.workers,
                one.rate,
                one.bandwidth,
                one.mean,
                one.p50,
                one.p99,
                one.p999,
                one.failed
            );
        }
        text
    }

    /// How many different values there are.
    fn values(&self, of: impl Fn(&SweepPoint) -> String) -> usize {
        let all: BTreeSet<String> = self.points.iter().map(of).collect();
        all.len()
    }

    /// What a point's line is called: after what differs between lines.
    fn line_name(&self, across: Dimension, point: &SweepPoint) -> String {
        let varies = |dimension: &Dimension| self.values(|point| dimension.of(point)) > 1;
        let others = Dimension::ALL
            .into_iter()
            .filter(|dimension| *dimension != across && varies(dimension));
        let mut names: Vec<String> = others.map(|one| format!("{} {}", one.name(), one.of(point))).collect();
        if names.is_empty() || self.values(|point| point.work.clone()) > 1 {
            names.insert(0, point.work.clone());
        }
        names.join(", ")
    }

    /// The dimension that lies across.
    fn across(&self) -> Dimension {
        let values = |dimension: Dimension| self.values(|point| dimension.of(point));
        // Of equals the first one.
        let most = Dimension::ALL.into_iter().map(values).max().unwrap_or(0);
        let found = Dimension::ALL.into_iter().find(|dimension| values(*dimension) == most);
        found.unwrap_or(Dimension::Workers)
    }

    /// A line for each combination of what does not lie across. Sizes lie across by their place in the sweep.
    fn lines(&self, across: Dimension, figure: impl Fn(&SweepPoint) -> f64) -> Vec<PlotLine> {
        let mut places: Vec<String> = vec![];
        let mut lines: Vec<PlotLine> = vec![];
        for point in &self.points {
            let value = across.of(point);
            let place = match places.iter().position(|known| *known == value) {
                Some(place) => place,
                None => {
                    places.push(value.clone());
                    places.len() - 1
                }
            };
            let x = value.parse().unwrap_or(place as f64 + 1.0);
            let name = self.line_name(across, point);
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.push((x, figure(point))),
                None => lines.push(PlotLine {
                    name,
                    points: vec![(x, figure(point))],
                }),
            }
        }
        lines
    }
}

/// A figure of a point.
type SweepFigure = fn(&SweepPoint) -> f64;

/// The page of a sweep: its table and its pictures.
pub fn page(report: &SweepReport) -> Result<String, Fault> {
    let across = report.across();
    let mut page = html::head(&report.workload, "A sweep");
    if report.interrupted {
        page += "<p class=\"warning\">The sweep was interrupted: the points are those until then.</p>\n";
    }
    let pictures: [(&str, &str, PlotScale, SweepFigure); 3] = [
        ("Throughput", "op/s", PlotScale::Linear, |point| point.rate),
        ("Bandwidth", "B/s", PlotScale::Linear, |point| point.bandwidth),
        ("Latency, p99", "ms", PlotScale::Logarithmic, |point| point.p99),
    ];
    for (title, unit, scale, figure) in pictures {
        let lines = report.lines(across, figure);
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        let title = format!("{title} by {}", across.name());
        html::add_picture(
            &mut page,
            &title,
            &names,
            &lines_across(across.name(), unit, scale, &lines, &[])?,
        );
    }
    page += "<table>\n<tr><th></th>";
    for heading in SweepPoint::heading().replace("mean ms", "mean-ms").split_whitespace() {
        // Writing to memory does not fail.
        let _ = write!(page, "<th>{}</th>", escape(heading));
    }
    page += "<th>to the first</th></tr>\n";
    let rates = report.lines(across, |point| point.rate);
    let first = |point: &SweepPoint| {
        let mine = report.lines(across, |other| if std::ptr::eq(other, point) { 1.0 } else { 0.0 });
        let line = mine
            .iter()
            .position(|line| line.points.iter().any(|(_, mark)| *mark > 0.0))?;
        Some(rates.get(line)?.points.first()?.1)
    };
    for point in &report.points {
        let ratio = first(point)
            .filter(|first| *first > 0.0)
            .map_or(1.0, |first| point.rate / first);
        let cells = [
            point.endpoints.to_string(),
            point.containers.to_string(),
            escape(&point.sizes).into_owned(),
            point.workers.to_string(),
            format!("{:.1}", point.rate),
            format!("{:.2}", point.bandwidth / 1e6),
            format!("{:.2}", point.mean),
            format!("{:.2}", point.p50),
            format!("{:.2}", point.p99),
            format!("{:.2}", point.p999),
            point.failed.to_string(),
            format!("{ratio:.2}"),
        ];
        html::add_row(&mut page, &point.work, cells);
    }
    page += "</table>\n</body>\n</html>\n";
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::{Dimension, SweepPoint, SweepReport, page};

    fn point(workers: u32, sizes: &str, rate: f64) -> SweepPoint {
        SweepPoint {
            work: "main / main".to_owned(),
            endpoints: 1,
            containers: 16,
            sizes: sizes.to_owned(),
            workers,
            rate,
            bandwidth: rate * 1000.0,
            mean: 1.0,
            p50: 1.0,
            p99: 2.0,
            p999: 3.0,
            failed: 0,
            has_failed: false,
            client_is_limit: false,
        }
    }

    #[test]
    fn the_dimension_with_most_values_lies_across() {
        let mut report = SweepReport::of("w");
        for sizes in ["c(4)KB", "c(64)KB"] {
            report
                .points
                .extend([1, 4, 16].map(|workers| point(workers, sizes, f64::from(workers) * 10.0)));
        }
        assert_eq!(report.across(), Dimension::Workers);
        let lines = report.lines(Dimension::Workers, |point| point.rate);
        let points: Vec<_> = lines.iter().map(|line| line.points.clone()).collect();
        assert_eq!(
            points,
            [
                vec![(1.0, 10.0), (4.0, 40.0), (16.0, 160.0)],
                vec![(1.0, 10.0), (4.0, 40.0), (16.0, 160.0)]
            ]
        );
        assert_eq!(lines[1].name, "size c(64)KB");
        let by_size = report.lines(Dimension::Sizes, |point| point.rate);
        assert_eq!(
            (by_size.len(), by_size[0].points.as_slice()),
            (3, &[(1.0, 10.0), (2.0, 10.0)][..])
        );
        let page = page(&report).unwrap();
        assert_eq!((page.matches("<svg").count(), page.matches("<tr>").count()), (3, 7));
        assert!(
            page.contains("<td>16.00</td></tr>") && page.contains("Throughput by workers"),
            "{page}"
        );
        assert_eq!(report.csv().lines().count(), 7);
    }
}
