//! How well replicas are spread over regions, zones, servers and devices.

use super::{CommandResult, Desk, refusal};
use crate::advice;
use crate::number::fixed;
use crate::options::{Declared, ParsedOptions, Takes, long, option};
use crate::terminal::{CommandStatus, Stop};
use placement::DispersionReport;
use placement::RingBuilder;
use regex::RegexBuilder;

const RECALCULATE: &str = "recalculate";
const DECLARED: [Declared; 3] = [
    long(RECALCULATE, Takes::Nothing, "count anew and save the result"),
    option('v', "verbose", Takes::Nothing, "a line for each place"),
    advice::SVG,
];

/// Names of places get at least so much room.
const NAME_WIDTH: usize = 30;

/// No pattern needs more memory than this when it is compiled.
const PATTERN_LIMIT: usize = 1 << 20;

/// A report alone needs no lock, nor a directory that is writable.
pub(super) fn saves(words: &[String]) -> bool {
    ParsedOptions::read(&DECLARED, words).is_ok_and(|options| options.has(RECALCULATE))
}

/// Shows it.
pub(super) fn report(desk: &mut Desk<'_, '_>, mut builder: RingBuilder) -> CommandResult {
    desk.placed(&builder)?;
    let options = desk.options(&DECLARED)?;
    let pattern = match options.words.first() {
        // A pattern is for the beginning of a name, as with Python's `re.match`.
        Some(pattern) => RegexBuilder::new(&format!("^(?:{pattern})"))
            .size_limit(PATTERN_LIMIT)
            .build()
            .map(Some)
            .map_err(|error| Stop::Refused(format!("Invalid search filter: {error}")))?,
        None => None,
    };
    if options.has(RECALCULATE) {
        builder.recalculate_dispersion().map_err(refusal)?;
        desk.shelf.save(&mut builder)?;
    }
    let wanted = |name: &str| pattern.as_ref().is_none_or(|pattern| pattern.is_match(name));
    let report = builder.dispersion_report(wanted).map_err(refusal)?;
    let required = builder.required_overload().map_err(refusal)?;
    desk.terminal.say(format_args!(
        "Dispersion is {}, Balance is {}, Overload is {}%\nRequired overload is {}%",
        fixed(builder.dispersion(), 6),
        fixed(builder.balance().unwrap_or(0.0), 6),
        fixed(builder.overload() * 100.0, 2),
        fixed(required * 100.0, 6),
    ));
    if let Some(worst) = &report.worst_tier {
        let dispersion = fixed(report.max_dispersion, 6);
        desk.terminal.say(format_args!("Worst tier is {dispersion} ({worst})"));
    }
    if options.has("verbose") {
        desk.terminal.put(&table(&report));
    }
    if let Some(path) = options.text("svg") {
        advice::save_picture(desk, &builder, &desk.builder_name(), &[], path)?;
    }
    Ok(match report.worst_tier {
        Some(_) => CommandStatus::Warning,
        None => CommandStatus::Success,
    })
}

/// A line for each place.
fn table(report: &DispersionReport) -> String {
    let Some(first) = report.rows.first() else {
        return String::new();
    };
    let width = report
        .rows
        .iter()
        .map(|row| row.name.len())
        .fold(NAME_WIDTH, usize::max);
    let mut head = format!("{:<width$} {:>5} {:>6} {:>6}", "Tier", "Parts", "%", "Max");
    for replicas in 0..first.replicas.len() {
        head.push_str(&format!(" {replicas:>5}"));
    }
    let rule = "-".repeat(head.len());
    let mut out = format!("{rule}\n{head}\n{rule}\n");
    for row in &report.rows {
        let (percent, most) = (fixed(row.dispersion, 2), row.max_replicas);
        out.push_str(&format!(
            "{:<width$} {:>5} {percent:>6} {most:>6}",
            row.name, row.placed_parts
        ));
        for count in &row.replicas {
            out.push_str(&format!(" {count:>5}"));
        }
        out.push('\n');
    }
    out
}
