//! Answers as text.

use crate::advice::flash::FlashAdvice;
use crate::advice::mixed::MixedAdvice;
use crate::advice::{AdviceAnswer, AdviceReport, DegradedAnswer};
use crate::inventory::PurchaseInventory;
use crate::model::estimate::{Estimate, readable};
use crate::search::PurchaseQuestion;
use crate::search::conflict::{Relaxation, ScarceServer};
use crate::search::least::Goal;
use std::fmt::Write;

/// Seconds in milliseconds, with their band.
fn millis(time: Estimate) -> String {
    banded(time.map(|seconds| seconds * 1e3))
}

/// A figure with its band.
pub fn banded(figure: Estimate) -> String {
    format!(
        "{} ({} to {})",
        readable(figure.value),
        readable(figure.low),
        readable(figure.high)
    )
}

/// What stands in the way of an answer.
pub fn contradictions(report: &AdviceReport) -> String {
    let (found, together, servers) = (&report.contradictions, &report.together, &report.scarce_servers);
    let mut text = String::from("No cluster of this catalogue meets all constraints.");
    text += match found.is_empty() {
        true => " There are too few servers, whatever the constraints are:\n",
        false => " These contradict each other:\n",
    };
    for one in found {
        let (key, now) = (one.constraint.key(), one.constraint.shown(one.now));
        // Writing to memory does not fail.
        let _ = match (one.enough, one.is_hopeless) {
            (Some(enough), _) => writeln!(
                text,
                "  {key} = {now}: with the others as they are, {} would be enough",
                one.constraint.shown_enough(enough)
            ),
            (None, true) => writeln!(text, "  {key} = {now}: no cluster meets it, whatever the others are"),
            (None, false) => writeln!(text, "  {key} = {now}: no value of it alone would be enough"),
        };
    }
    let enough = |one: &Relaxation| {
        Some(format!(
            "{} = {}",
            one.constraint.key(),
            one.constraint.shown_enough(one.enough?)
        ))
    };
    let together: Vec<String> = together.iter().filter_map(enough).collect();
    if !together.is_empty() {
        let _ = writeln!(text, "  together these would be enough: {}", together.join(", "));
    }
    for ScarceServer { server, now, enough } in servers {
        let _ = writeln!(
            text,
            "  server {server:?}: most = {now}: with all else as it is, {enough} would be enough"
        );
    }
    if let Some(count) = report.enough_replicas {
        let _ = writeln!(
            text,
            "  [[protection]]: with all else as it is, replicas = {count} beside those that are offered would be enough"
        );
    }
    if found.is_empty() && servers.is_empty() {
        text += "  several kinds at once: raise `most` of gateways and of storage nodes, or leave it out\n";
    }
    text
}

/// All answers, as `--explain` asks for with the reasons.
pub fn text(report: &AdviceReport, inventory: &PurchaseInventory, explain: bool) -> String {
    let mut text = String::new();
    if let Some(goal) = report.goal {
        text += &asked(goal, report.question, inventory);
    }
    let _ = writeln!(
        text,
        "Software figures: {}. Bands are those of 95 %; --explain says where they come from.",
        report.rates.name
    );
    for (number, answer) in report.answers.iter().enumerate() {
        add_answer(&mut text, number + 1, answer, &report.currency);
        if explain {
            add_explanation(&mut text, answer, report);
        }
    }
    text
}

/// What was asked for, in a line.
pub fn asked(goal: Goal, question: Option<PurchaseQuestion>, inventory: &PurchaseInventory) -> String {
    let wanted = &inventory.wanted;
    let growth = match wanted.years * wanted.growth_a_year <= 0.0 {
        true => String::new(),
        false => format!(
            " (grown by {:.0} % a year for {} {})",
            wanted.growth_a_year * 100.0,
            wanted.years,
            if wanted.years == 1.0 { "year" } else { "years" }
        ),
    };
    let capacity = match question {
        Some(PurchaseQuestion::MostCapacity) => "as much capacity as there can be".to_owned(),
        _ => format!("{} TB of objects", readable(goal.capacity / 1e12)),
    };
    let throughput = match question {
        Some(PurchaseQuestion::MostThroughput) => "as much throughput as there can be".to_owned(),
        _ => format!("{} MB/s", readable(goal.throughput / 1e6)),
    };
    format!(
        "Asked for: {capacity} and {throughput}{growth}, {} bytes on average, {:.0} % reads.\n",
        readable(inventory.mix.mean_size()),
        inventory.mix.reads * 100.0
    )
}

fn add_answer(text: &mut String, number: usize, answer: &AdviceAnswer, currency: &str) {
    *text += "\n";
    let mut line = |name: &str, value: String| {
        // Writing to memory does not fail.
        let _ = writeln!(text, "  {name:<16} {value}");
    };
    line(
        &format!("answer {number}"),
        format!(
            "{:.0} {currency}, {:.0} W, {} rack units; {}; {} zone(s)",
            answer.totals.price,
            answer.totals.power,
            readable(answer.totals.rack_units),
            answer.protection,
            answer.zones
        ),
    );
    for one in &answer.unmet {
        let remedy = one
            .remedy
            .as_ref()
            .map_or(String::new(), |remedy| format!("; {remedy}"));
        line("NOT MET", format!("{}: {}{remedy}", one.key, one.text));
    }
    for one in &answer.bill {
        line(
            "",
            format!(
                "{:>5} x {:<30} {:<16} {:>10.0}  {}",
                one.count,
                one.role,
                one.name,
                f64::from(one.count) * one.price,
                one.what
            ),
        );
    }
    line(
        "ratio",
        format!(
            "1 gateway : {} storage nodes",
            readable(answer.storage_nodes_per_gateway)
        ),
    );
    line(
        "capacity",
        format!("{} TB of objects", readable(answer.capacity / 1e12)),
    );
    add_times(text, answer);
}

fn add_times(text: &mut String, answer: &AdviceAnswer) {
    let mut line = |name: &str, value: String| {
        // Writing to memory does not fail.
        let _ = writeln!(text, "  {name:<16} {value}");
    };
    line(
        "throughput",
        format!(
            "{} MB/s at most; {} requests/s; {} end first",
            banded(answer.throughput.bytes.map(|bytes| bytes / 1e6)),
            banded(answer.throughput.requests),
            answer.throughput.bottleneck.name()
        ),
    );
    let load = readable(answer.load);
    match &answer.latency {
        Some(latency) => line(
            "times",
            format!(
                "at {load} requests/s: mean {} ms, p99 {} ms",
                millis(latency.mean),
                millis(latency.p99)
            ),
        ),
        None => line("times", format!("{load} requests/s are not borne")),
    }
    for one in &answer.degraded {
        line(&format!("without {}", one.lost), degraded(one));
    }
    line(
        "years to loss",
        format!("{} {}", banded(answer.years_to_loss), answer.of_what_loss()),
    );
    add_advice(text, answer);
}

fn add_advice(text: &mut String, answer: &AdviceAnswer) {
    let mut line = |name: &str, value: String| {
        // Writing to memory does not fail.
        let _ = writeln!(text, "  {name:<16} {value}");
    };
    if let Some(ring) = &answer.ring {
        line("ring", format!("part power {}: {}", ring.part_power, ring.command));
    }
    for one in &answer.pitfalls {
        line(
            "pitfall",
            format!("{}: {}. Remedy: {}", one.name, one.evidence, one.remedy),
        );
    }
    for one in &answer.flash {
        line("flash, memory", flash(one));
    }
    if let Some(one) = &answer.mixed {
        line("mixed nodes", mixed(one));
    }
    for one in &answer.throughput.extrapolations {
        line("NOT MEASURED", one.to_string());
    }
}

/// What flash or memory gives, and when it pays.
pub fn flash(one: &FlashAdvice) -> String {
    let pays = match one.pays() {
        Some(true) => "pays",
        Some(false) => "does not pay",
        None => "pays below that price",
    };
    let when = match one.ends_before.filter(|_| one.pays() != Some(false)) {
        Some(resource) => format!(" once storage nodes end first ({} do now)", resource.name()),
        None => String::new(),
    };
    let bays = match one.takes_bays {
        true => "; there is no free bay, so it takes the place of drives for objects",
        false => "",
    };
    format!(
        "{}: storage bears {} times as much, as {} more nodes would; worth {:.0} in each node: {pays}{when}{bays}",
        one.change,
        banded(one.gain),
        one.nodes_saved,
        one.worth_per_node
    )
}

/// What nodes that are gateways too hold and answer.
pub fn mixed(mixed: &MixedAdvice) -> String {
    let days = mixed.days_to_full.map_or("never".to_owned(), readable);
    format!(
        "{} hold {:.1} % of all pieces and give {:.2} of the first {} acknowledgements; {} times as slow; full after {days} days \
         of writes; weight {:.2} suits their processors",
        mixed.nodes,
        mixed.share_of_pieces * 100.0,
        mixed.acknowledgements,
        mixed.waited,
        readable(mixed.slowdown),
        mixed.fair_weight
    )
}

/// A line about a cluster that has lost something.
pub fn degraded(one: &DegradedAnswer) -> String {
    let p99 = one.p99.map_or("the load is not borne".to_owned(), |p99| {
        format!("p99 {} ms", millis(p99))
    });
    format!(
        "{} requests/s, {p99}, whole again after {} h",
        banded(one.requests),
        banded(one.hours)
    )
}

fn add_explanation(text: &mut String, answer: &AdviceAnswer, report: &AdviceReport) {
    let mut say = |line: String| {
        // Writing to memory does not fail.
        let _ = writeln!(text, "    {line}");
    };
    say("Each resource bears so many requests a second, the least first:".to_owned());
    for limit in &answer.throughput.limits {
        say(format!(
            "  {:<28} {:<34} {:.0} % of its time goes into bytes",
            limit.resource.name(),
            banded(limit.requests),
            limit.transfer_share * 100.0
        ));
    }
    if let Some(latency) = &answer.latency {
        let busy: Vec<String> = latency
            .busy
            .iter()
            .map(|(resource, busy)| format!("{} {:.0} %", resource.name(), busy * 100.0))
            .collect();
        say(format!(
            "At {} requests/s so much of each is busy: {}",
            readable(latency.requests),
            busy.join(", ")
        ));
    }
    say(format!(
        "Years to loss: rebuilding a drive takes {} h; failure rates may be off by a factor of two, which enters to the \
         power of the losses that are survived and one.",
        readable(answer.rebuild.drive)
    ));
    say("What the software costs, and where that is from:".to_owned());
    for (name, rate) in report.rates.all() {
        say(format!("  {name:<28} {} ({})", banded(rate.estimate()), rate.source));
    }
}
