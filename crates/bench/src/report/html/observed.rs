//! The part of a run's page about what happened beside the load: commands, phases, servers.

use super::super::plots::{PlotLine, PlotScale};
use super::{add_lines, add_row};
use crate::report::observed::{ServerPoint, ServerReport, StageObservations};
use quick_xml::escape::escape;
use std::fmt::Write;
use vocabulary::Fault;

/// Adds it, where there is any.
pub(super) fn add_observed(page: &mut String, stage: &str, observed: &StageObservations) -> Result<(), Fault> {
    let is_nothing = observed.cold.is_none() && observed.actions.is_empty() && observed.servers.is_empty();
    if is_nothing {
        return Ok(());
    }
    // Writing to memory does not fail.
    let _ = writeln!(page, "<section>\n<h2>{}: beside the load</h2>", escape(stage));
    if let Some(cold) = &observed.cold {
        let _ = writeln!(
            page,
            "<p>Cold: <code>{}</code> ran before it.</p>",
            escape(&cold.command)
        );
    }
    add_actions(page, observed);
    add_phases(page, observed);
    add_servers(page, observed)?;
    *page += "</section>\n";
    Ok(())
}

fn add_actions(page: &mut String, observed: &StageObservations) {
    if observed.actions.is_empty() {
        return;
    }
    *page += "<table>\n<tr><th>action</th><th>run at s</th><th>took s</th><th>undone at s</th><th>took s</th></tr>\n";
    let cell = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.2}"));
    let took = |begun: Option<f64>, ended: Option<f64>| begun.zip(ended).map(|(begun, ended)| ended - begun);
    for one in &observed.actions {
        let cells = [
            one.begun,
            took(one.begun, one.ended),
            one.undone,
            took(one.undone, one.undo_ended),
        ];
        add_row(page, &one.name, cells.map(cell));
    }
    *page += "</table>\n";
    for one in &observed.actions {
        for failure in &one.failures {
            let (name, failure) = (escape(&one.name), escape(failure));
            let _ = writeln!(page, "<p class=\"warning\">Action {name} failed: {failure}</p>");
        }
        if !one.output.trim().is_empty() {
            let (name, output) = (escape(&one.name), escape(one.output.trim_end()));
            let _ = writeln!(
                page,
                "<details><summary>Output of {name}</summary><pre>{output}</pre></details>"
            );
        }
    }
}

fn add_phases(page: &mut String, observed: &StageObservations) {
    if observed.phases.is_empty() {
        return;
    }
    *page += "<table>\n<tr><th>phase</th><th>from s</th><th>until s</th><th>succeeded</th><th>failed</th><th>op/s</th>\
              <th>mean ms</th><th>p50</th><th>p99</th><th>longest</th></tr>\n";
    for one in &observed.phases {
        let name = format!("{} / {}", one.work, one.name);
        let cells = [
            format!("{:.1}", one.from),
            format!("{:.1}", one.until),
            one.succeeded.to_string(),
            one.failed.to_string(),
            format!("{:.1}", one.rate),
            format!("{:.2}", one.latency.mean),
            format!("{:.2}", one.latency.at("50")),
            format!("{:.2}", one.latency.at("99")),
            format!("{:.2}", one.latency.longest),
        ];
        add_row(page, &name, cells);
    }
    *page += "</table>\n";
}

/// A figure of a server at a time.
type PointFigure = fn(&ServerPoint) -> Option<f64>;

fn add_servers(page: &mut String, observed: &StageObservations) -> Result<(), Fault> {
    if observed.servers.is_empty() {
        return Ok(());
    }
    *page += "<table>\n<tr><th>server</th><th>processor s</th><th>ms a request</th><th>MB written</th>\
              <th>for each byte stored</th><th>MB more on devices</th><th>unanswered</th></tr>\n";
    let number = |value: Option<f64>, scale: f64, digits: usize| {
        value.map_or("–".to_owned(), |value| format!("{:.digits$}", value / scale))
    };
    for one in &observed.servers {
        let cells = [
            number(one.cpu, 1.0, 2),
            number(one.cpu_per_request, 1.0, 3),
            number(one.written, 1e6, 1),
            number(one.written_per_stored, 1.0, 2),
            number(one.used_growth, 1e6, 1),
            one.failures.to_string(),
        ];
        add_row(page, &one.name, cells);
    }
    *page += "</table>\n";
    for one in &observed.servers {
        if let Some(why) = &one.last_failure {
            let (name, why) = (escape(&one.name), escape(why));
            let _ = writeln!(page, "<p class=\"warning\">{name} left questions unanswered: {why}</p>");
        }
    }
    let figures: [(&str, &str, PointFigure); 5] = [
        ("Processors of servers", "busy", |point| point.cores),
        ("Written by servers", "B/s", |point| point.written),
        ("Memory of servers", "B", |point| point.memory),
        ("Load of servers", "tasks", |point| point.load),
        ("Used on devices of servers", "B", |point| point.used),
    ];
    for (title, unit, figure) in figures {
        let line = |server: &ServerReport| PlotLine {
            name: server.name.clone(),
            points: (server.points.iter())
                .filter_map(|point| Some((point.at, figure(point)?)))
                .collect(),
        };
        let lines: Vec<PlotLine> = observed.servers.iter().map(line).collect();
        if lines.iter().any(|line| line.points.len() > 1) {
            add_lines(page, title, unit, PlotScale::Linear, &lines, &observed.marks())?;
        }
    }
    Ok(())
}
