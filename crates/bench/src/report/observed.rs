//! What is reported of a stage beside its load: commands, phases between them, and figures of servers.

use crate::figures::Latencies;
use crate::report::{StageReport, TimesReport, WorkReport};
use serde::Serialize;
use std::fmt::Write;

/// Of one stage.
#[derive(Debug, Default, Serialize)]
pub struct StageObservations {
    /// How the store was made cold, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cold: Option<ColdReport>,
    /// How full devices became, where that ends the stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filling: Option<FillingReport>,
    /// Commands, in the order of the workload.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ActionReport>,
    /// Figures before, between and after commands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseReport>,
    /// In the order of the workload.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerReport>,
}

/// The command that made the store cold.
#[derive(Debug, Clone, Serialize)]
pub struct ColdReport {
    /// As it was run.
    pub command: String,
    /// What it printed.
    pub output: String,
}

/// How full devices are: shares from 0 to 1.
#[derive(Debug, Clone, Serialize)]
pub struct FillingReport {
    /// As full as they were to be.
    pub asked: f64,
    /// Before the stage.
    pub before: f64,
    /// At its end.
    pub reached: f64,
    /// Why that was not known any longer, if so.
    pub failure: Option<String>,
}

impl FillingReport {
    /// Whether they are full enough.
    pub fn is_reached(&self) -> bool {
        self.reached >= self.asked
    }

    fn text(&self) -> String {
        let [before, reached, asked] = [self.before, self.reached, self.asked].map(|share| share * 100.0);
        let mut text = format!("devices were {before:.1} % full, and are {reached:.1} % full");
        if let Some(failure) = &self.failure {
            text += &format!("; the stage ended because no server said how full they are: {failure}");
        } else if !self.is_reached() {
            text += &format!(
                "; {asked:.1} % were asked for: the stage ended before, with all of its objects or interrupted"
            );
        }
        text
    }
}

/// A command. Times are seconds from the start of the stage.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ActionReport {
    /// Its name.
    pub name: String,
    /// When it was run.
    pub begun: Option<f64>,
    /// When it had ended.
    pub ended: Option<f64>,
    /// When it was undone.
    pub undone: Option<f64>,
    /// When the command that undoes it had ended.
    pub undo_ended: Option<f64>,
    /// What both printed.
    pub output: String,
    /// Why one of them failed, if it did.
    pub failures: Vec<String>,
}

/// A part of a work between two commands.
#[derive(Debug, Clone, Serialize)]
pub struct PhaseReport {
    /// `before`, the commands in force, or `after`.
    pub name: String,
    /// Of the work.
    pub work: String,
    /// Its first interval's start, in seconds from the start of the stage.
    pub from: f64,
    /// Its last interval's end.
    pub until: f64,
    /// Requests that succeeded.
    pub succeeded: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Successes a second.
    pub rate: f64,
    /// Of requests that succeeded, in milliseconds.
    pub latency: TimesReport,
}

/// A server.
#[derive(Debug, Clone, Serialize)]
pub struct ServerReport {
    /// Its name.
    pub name: String,
    /// Seconds of processor time in the stage.
    pub cpu: Option<f64>,
    /// Milliseconds of processor time for each request that succeeded.
    pub cpu_per_request: Option<f64>,
    /// Bytes written to devices in the stage.
    pub written: Option<f64>,
    /// Of those, for each byte of a body that was stored.
    pub written_per_stored: Option<f64>,
    /// By how many bytes devices have more on them.
    pub used_growth: Option<f64>,
    /// Questions without an answer.
    pub failures: u64,
    /// Why the last one had none.
    pub last_failure: Option<String>,
    /// Over time.
    pub points: Vec<ServerPoint>,
}

/// What was seen of a server at a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ServerPoint {
    /// Seconds from the start of the stage.
    pub at: f64,
    /// Processors that were busy since the last point.
    pub cores: Option<f64>,
    /// Bytes a second written to devices since then.
    pub written: Option<f64>,
    /// Bytes of memory.
    pub memory: Option<f64>,
    /// Of the machine: tasks that run or wait, on average of a minute.
    pub load: Option<f64>,
    /// Bytes used on devices.
    pub used: Option<f64>,
}

impl ActionReport {
    /// One that has not been run.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }
}

impl StageObservations {
    /// Of a stage whose load is over.
    pub fn new(
        cold: Option<ColdReport>,
        actions: Vec<ActionReport>,
        servers: Vec<ServerReport>,
        stage: &StageReport,
    ) -> Self {
        let works = stage
            .works
            .iter()
            .filter(|work| !actions.is_empty() && work.kind == "normal");
        Self {
            phases: works.flat_map(|work| phases(work, &actions)).collect(),
            cold,
            filling: None,
            actions,
            servers,
        }
    }

    /// Whether a command failed, or was not run, or devices are not as full as was asked.
    pub fn has_failed(&self) -> bool {
        let is_short = |filling: &FillingReport| !filling.is_reached();
        self.filling.as_ref().is_some_and(is_short) || self.actions.iter().any(|action| !action.failures.is_empty())
    }

    /// Times of commands, with what happens then.
    pub fn marks(&self) -> Vec<(f64, String)> {
        let mut marks = vec![];
        for action in &self.actions {
            marks.extend(action.begun.map(|at| (at, action.name.clone())));
            marks.extend(action.undone.map(|at| (at, format!("{}: undone", action.name))));
        }
        marks.sort_by(|one, other| one.0.total_cmp(&other.0));
        marks
    }

    /// Lines for a terminal; none where there is nothing to be said.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to memory does not fail.
        if let Some(cold) = &self.cold {
            let _ = writeln!(text, "  cold: {}", cold.command);
        }
        if let Some(filling) = &self.filling {
            let _ = writeln!(text, "  {}", filling.text());
        }
        for one in &self.phases {
            let _ = writeln!(
                text,
                "  {:>6.1} to {:>6.1} s, {}: {:.1} op/s, {} failed, mean {:.2} ms, p50 {:.2}, p99 {:.2}, longest {:.2}",
                one.from,
                one.until,
                one.name,
                one.rate,
                one.failed,
                one.latency.mean,
                one.latency.at("50"),
                one.latency.at("99"),
                one.latency.longest
            );
        }
        for action in &self.actions {
            for failure in &action.failures {
                let _ = writeln!(text, "  action {} failed: {failure}", action.name);
            }
        }
        for server in &self.servers {
            let _ = writeln!(text, "  server {}: {}", server.name, server.summary());
        }
        text
    }

    /// Times of commands, for a spreadsheet.
    pub fn actions_csv(&self) -> String {
        let mut text = String::from("Time,Event\n");
        for (at, what) in self.marks() {
            let _ = writeln!(text, "{at:.3},\"{}\"", what.replace('"', "\"\""));
        }
        text
    }

    /// Figures of servers, for a spreadsheet.
    pub fn servers_csv(&self) -> String {
        let mut text = String::from("Time,Server,Cores,Written-Bytes/s,Memory-Bytes,Load,Used-Bytes\n");
        let cell = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
        for server in &self.servers {
            for point in &server.points {
                let cells = [point.cores, point.written, point.memory, point.load, point.used]
                    .map(cell)
                    .join(",");
                let _ = writeln!(text, "{:.3},\"{}\",{cells}", point.at, server.name.replace('"', "\"\""));
            }
        }
        text
    }
}

impl ServerReport {
    /// What it has cost, in a line.
    pub fn summary(&self) -> String {
        let mut parts = vec![];
        if let (Some(cpu), each) = (self.cpu, self.cpu_per_request) {
            let each = each.map_or(String::new(), |each| format!(", {each:.3} ms a request"));
            parts.push(format!("{cpu:.2} s of processor time{each}"));
        }
        if let (Some(written), each) = (self.written, self.written_per_stored) {
            let each = each.map_or(String::new(), |each| format!(", {each:.2} for each byte stored"));
            parts.push(format!("{:.1} MB written{each}", written / 1e6));
        }
        if let Some(growth) = self.used_growth {
            parts.push(format!("{:.1} MB more on its devices", growth / 1e6));
        }
        if let Some(why) = &self.last_failure {
            parts.push(format!("{} questions without an answer ({why})", self.failures));
        }
        parts.join("; ")
    }
}

/// Cuts a work where commands begin and are undone. Intervals in which that happens are in no phase.
fn phases(work: &WorkReport, actions: &[ActionReport]) -> Vec<PhaseReport> {
    let mut cuts = vec![(0.0, 0.0)];
    for action in actions {
        // From the first moment of a command to its last one nothing is as before and nothing as after.
        cuts.extend(action.begun.map(|begun| (begun, action.ended.unwrap_or(begun))));
        cuts.extend(
            action
                .undone
                .map(|undone| (undone, action.undo_ended.unwrap_or(undone))),
        );
    }
    cuts.sort_by(|one, other| one.0.total_cmp(&other.0));
    let ends = cuts.iter().skip(1).map(|cut| cut.0).chain([f64::INFINITY]);
    let parts = cuts.iter().zip(ends).map(|(cut, end)| (cut.1, end));
    parts
        .filter_map(|(from, until)| phase(work, actions, from, until))
        .collect()
}

fn phase(work: &WorkReport, actions: &[ActionReport], from: f64, until: f64) -> Option<PhaseReport> {
    let length = work.over_time.first()?.until;
    // To a microsecond, as sums of intervals are not exact.
    let is_in = |end: f64| end - length >= from - 1e-6 && end <= until + 1e-6;
    // The last interval of a work is not whole.
    let whole = work.over_time.split_last().map_or(&[][..], |(_, whole)| whole);
    let mine: Vec<_> = whole.iter().filter(|interval| is_in(interval.until)).collect();
    let (first, last) = (mine.first()?, mine.last()?);
    let mut latencies = Latencies::default();
    mine.iter().for_each(|interval| latencies.merge(&interval.latencies));
    let all = || mine.iter().flat_map(|interval| &interval.operations);
    let succeeded = all().map(|one| one.succeeded).sum();
    Some(PhaseReport {
        name: phase_name(actions, from),
        work: work.name.clone(),
        from: first.until - length,
        until: last.until,
        succeeded,
        failed: all().map(|one| one.failed).sum(),
        rate: succeeded as f64 / (mine.len() as f64 * length),
        latency: TimesReport::of(&latencies),
    })
}

fn phase_name(actions: &[ActionReport], at: f64) -> String {
    let has_begun = |one: &&ActionReport| one.begun.is_some_and(|begun| begun <= at);
    let is_undone = |one: &ActionReport| one.undone.is_some_and(|undone| undone <= at);
    let in_force = actions.iter().filter(has_begun).filter(|one| !is_undone(one));
    let names: Vec<&str> = in_force.map(|one| one.name.as_str()).collect();
    match (names.as_slice(), actions.iter().any(|one| has_begun(&one))) {
        ([], false) => "before".to_owned(),
        ([], true) => "after".to_owned(),
        (names, _) => names.join(" + "),
    }
}

#[cfg(test)]
mod tests {
    use super::{ActionReport, phases};
    use crate::figures::{RequestOutcome, WorkFigures};
    use crate::load::WorkResult;
    use crate::report::WorkReport;
    use crate::workload::own_format;
    use std::time::Duration;

    /// A request every 100 ms for ten seconds, slow from the fourth to the sixth second.
    fn work() -> WorkReport {
        let text = "[storage]\ntype = 'mock'\n[[stage]]\nruntime = '10s'\noperations = [\
                    { type = 'read', containers = 'c(1)', objects = 'c(1)' }]";
        let work = own_format::parse(text).unwrap().stages[0].works[0].clone();
        let mut figures = WorkFigures::new(1, Duration::from_secs(1));
        for at in 0..100 {
            let outcome = RequestOutcome {
                bytes: 1,
                latency: Duration::from_millis(if (40..60).contains(&at) { 500 } else { 10 }),
                first_byte: None,
                failure: None,
            };
            figures.record(0, Duration::from_millis(at * 100), true, &outcome);
        }
        let ten = Duration::from_secs(10);
        let result = WorkResult {
            figures,
            measured: ten,
            cpu: Duration::ZERO,
            lasted: ten,
            threads: 1,
        };
        WorkReport::of(&work, &result)
    }

    #[test]
    fn phases_lie_between_commands() {
        let down = ActionReport {
            begun: Some(3.5),
            ended: Some(4.0),
            undone: Some(6.0),
            undo_ended: Some(6.5),
            ..ActionReport::named("down")
        };
        let slow = ActionReport {
            begun: Some(5.0),
            ..ActionReport::named("slow")
        };
        let found = phases(&work(), &[down, slow]);
        let short: Vec<_> = found
            .iter()
            .map(|one| (one.name.as_str(), one.from, one.until, one.succeeded))
            .collect();
        assert_eq!(
            short,
            [
                ("before", 0.0, 3.0, 30),
                ("down", 4.0, 5.0, 10),
                ("down + slow", 5.0, 6.0, 10),
                ("slow", 7.0, 9.0, 20)
            ]
        );
        assert!(found[0].latency.at("99") < 11.0 && found[1].latency.at("50") > 490.0);
        assert_eq!(found[3].rate, 10.0);
    }
}
