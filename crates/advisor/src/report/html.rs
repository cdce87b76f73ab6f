//! Answers as a page: one HTML file with its pictures in it, which needs nothing else and runs no script.
//!
//! Always holds: names of the catalogue are text on the page, whatever is in them; figures are those of the JSON.

use super::plots::{BandedLine, drawn};
use super::terminal::{asked, banded, degraded, flash, mixed};
use crate::advice::{AdviceAnswer, AdviceReport};
use crate::inventory::PurchaseInventory;
use crate::model::estimate::readable;
use crate::model::latency::latency;
use crate::model::limits::throughput;
use crate::model::rates::SoftwareRates;
use crate::search::constraint::Constraint;
use crate::search::design::ClusterDesign;
use crate::search::least::Goal;
use crate::search::{PurchaseQuestion, search};
use quick_xml::escape::escape;
use std::fmt::Write;
use vocabulary::Fault;

/// How the page looks.
const STYLE: &str = include_str!("html.css");
/// Throughputs and capacities of the frontier, relative to what is wanted.
const FRONTIER: [f64; 9] = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0];
/// Points of a curve.
const POINTS: u32 = 40;

/// The page.
pub fn page(report: &AdviceReport, inventory: &PurchaseInventory, designs: &[ClusterDesign]) -> Result<String, Fault> {
    let title = match report.question {
        Some(PurchaseQuestion::LeastCost) => "The least cost for a capacity and a throughput",
        Some(PurchaseQuestion::MostCapacity) => "The most capacity for a throughput and a budget",
        Some(PurchaseQuestion::MostThroughput) => "The most throughput for a capacity and a budget",
        None => "What a cluster bears",
    };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n<h1>{title}</h1>\n<p>Bands are those of 95 %. Prices are those of the inventory, in {}.</p>\n",
        escape(&report.currency)
    );
    if let Some(goal) = report.goal {
        // Writing to memory does not fail.
        let _ = writeln!(
            page,
            "<p>{}</p>",
            escape(asked(goal, report.question, inventory).trim_end())
        );
    }
    let _ = writeln!(page, "<p>Software figures: {}.</p>", escape(&report.rates.name));
    if let Some(frontier) = frontier(report, inventory)? {
        page += &frontier;
    }
    for (number, (answer, design)) in report.answers.iter().zip(designs).enumerate() {
        add_answer(&mut page, number + 1, answer);
        add_curves(&mut page, inventory, &report.rates, design, answer)?;
        page += "</section>\n";
    }
    page +=
        "<section>\n<h2>What the software costs</h2>\n<table>\n<tr><th>figure</th><th>value</th><th>source</th></tr>\n";
    for (name, rate) in report.rates.all() {
        // Writing to memory does not fail.
        let _ = writeln!(
            page,
            "<tr><th>{name}</th><td>{}</td><td>{}</td></tr>",
            banded(rate.estimate()),
            escape(&rate.source)
        );
    }
    page += "</table>\n</section>\n</body>\n</html>\n";
    Ok(page)
}

fn figure(page: &mut String, caption: &str, line: &BandedLine<'_>) -> Result<(), Fault> {
    // Writing to memory does not fail.
    let _ = writeln!(
        page,
        "<figure>\n<figcaption>{caption}</figcaption>\n{}\n</figure>",
        drawn(line)?
    );
    Ok(())
}

/// What more throughput costs at the capacity that is wanted, and more capacity at the throughput.
fn frontier(report: &AdviceReport, inventory: &PurchaseInventory) -> Result<Option<String>, Fault> {
    let Some(first) = report.answers.first() else {
        return Ok(None);
    };
    let mut free = inventory.clone();
    free.wanted.budget = None;
    let each = inventory.mix.bytes_per_request();
    let load = |answer: &AdviceAnswer| answer.load * each;
    // What was asked for the most of is wanted as the first answer has it; all of it has grown already.
    let (goal, wanted) = (Goal::of(&inventory.wanted), &inventory.wanted);
    free.wanted.throughput = wanted.throughput.map(|_| goal.throughput).or(Some(load(first)));
    free.wanted.capacity = wanted.capacity.map(|_| goal.capacity).or(Some(first.capacity));
    free.wanted.years = 0.0;
    let mut text = String::from("<section>\n<h2>Cost, throughput and capacity</h2>\n");
    let mut is_empty = true;
    for (caption, constraint, across, unit) in [
        (
            "The least cost for each throughput, at the capacity that is wanted",
            Constraint::Throughput,
            "MB/s",
            1e6,
        ),
        (
            "The least cost for each capacity, at the throughput that is wanted",
            Constraint::Capacity,
            "TB",
            1e12,
        ),
    ] {
        let of = |answer: &AdviceAnswer| match constraint {
            Constraint::Throughput => load(answer),
            _ => answer.capacity,
        };
        let points = cheapest(&free, &report.rates, constraint);
        if points.is_empty() {
            continue;
        }
        is_empty = false;
        let marks = report.answers.iter().enumerate().map(|(number, answer)| {
            let name = format!(
                "answer {}, {} TB, {} MB/s",
                number + 1,
                readable(answer.capacity / 1e12),
                readable(load(answer) / 1e6)
            );
            (of(answer) / unit, answer.totals.price, name)
        });
        let line = BandedLine {
            across,
            unit: "cost",
            points: points
                .iter()
                .map(|(at, price)| (at / unit, *price, *price, *price))
                .collect(),
            marks: marks.collect(),
        };
        figure(&mut text, caption, &line)?;
    }
    Ok((!is_empty).then(|| text + "</section>\n"))
}

/// The least cost of more and less of one constraint.
fn cheapest(free: &PurchaseInventory, rates: &SoftwareRates, constraint: Constraint) -> Vec<(f64, f64)> {
    let mut changed = free.clone();
    let mut points = vec![];
    for factor in FRONTIER {
        let value = constraint.value(&free.wanted).map(|value| value * factor);
        constraint.set(&mut changed.wanted, value);
        let found = search(PurchaseQuestion::LeastCost, &changed, rates, 1);
        points.extend(value.zip(found.first().map(|found| found.design.totals(&changed).price)));
    }
    points
}

fn add_answer(page: &mut String, number: usize, answer: &AdviceAnswer) {
    // Writing to memory does not fail.
    let _ = writeln!(
        page,
        "<section>\n<h2>Answer {number}: {:.0}</h2>\n<p>{}; {} zone(s); 1 gateway for {} storage nodes; {:.0} W; {} rack \
         units.</p>\n<table>\n<tr><th>part</th><th>kind</th><th>what</th><th>count</th><th>price</th></tr>",
        answer.totals.price,
        answer.protection,
        answer.zones,
        readable(answer.storage_nodes_per_gateway),
        answer.totals.power,
        readable(answer.totals.rack_units)
    );
    for one in &answer.bill {
        let _ = writeln!(
            page,
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{:.0}</td></tr>",
            one.role,
            escape(&one.name),
            escape(&one.what),
            one.count,
            f64::from(one.count) * one.price
        );
    }
    let times = answer.latency.as_ref().map_or("not borne".to_owned(), |latency| {
        let millis = |time: crate::model::estimate::Estimate| banded(time.map(|seconds| seconds * 1e3));
        format!("mean {} ms, p99 {} ms", millis(latency.mean), millis(latency.p99))
    });
    let _ = writeln!(
        page,
        "</table>\n<table>\n<tr><th>capacity</th><td>{} TB of objects</td></tr>\n<tr><th>throughput</th><td>{} MB/s; {} end \
         first</td></tr>\n<tr><th>at {} requests/s</th><td>{times}</td></tr>\n<tr><th>years to loss</th><td>{} {}</td></tr>",
        readable(answer.capacity / 1e12),
        banded(answer.throughput.bytes.map(|bytes| bytes / 1e6)),
        answer.throughput.bottleneck.name(),
        readable(answer.load),
        banded(answer.years_to_loss),
        answer.of_what_loss()
    );
    for one in &answer.degraded {
        let _ = writeln!(page, "<tr><th>without {}</th><td>{}</td></tr>", one.lost, degraded(one));
    }
    for one in &answer.flash {
        let _ = writeln!(page, "<tr><th>flash, memory</th><td>{}</td></tr>", escape(flash(one)));
    }
    if let Some(one) = &answer.mixed {
        let _ = writeln!(page, "<tr><th>mixed nodes</th><td>{}</td></tr>", mixed(one));
    }
    *page += "</table>\n";
    add_warnings(page, answer);
    if let Some(ring) = &answer.ring {
        let _ = writeln!(page, "<pre>{}</pre>", escape(&ring.command));
    }
}

/// What is wrong with an answer, and what is not known of it.
fn add_warnings(page: &mut String, answer: &AdviceAnswer) {
    // Writing to memory does not fail.
    for one in &answer.unmet {
        let _ = writeln!(
            page,
            "<p class=\"warning\">Not met: {}: {}{}</p>",
            one.key,
            escape(&one.text),
            escape(
                one.remedy
                    .as_ref()
                    .map_or(String::new(), |remedy| format!("; {remedy}"))
            )
        );
    }
    for one in &answer.pitfalls {
        let (name, evidence, remedy) = (one.name, escape(&one.evidence), escape(&one.remedy));
        let _ = writeln!(
            page,
            "<p class=\"warning\">Pitfall {name}: {evidence}. Remedy: {remedy}</p>"
        );
    }
    for one in &answer.throughput.extrapolations {
        let _ = writeln!(
            page,
            "<p class=\"warning\">Not measured: {}</p>",
            escape(one.to_string())
        );
    }
}

/// Throughput over storage nodes, and p99 over load.
fn add_curves(
    page: &mut String,
    inventory: &PurchaseInventory,
    rates: &SoftwareRates,
    design: &ClusterDesign,
    answer: &AdviceAnswer,
) -> Result<(), Fault> {
    let most = design.counts.storage.saturating_mul(2).max(4);
    let step = most.div_ceil(POINTS).max(1);
    let at = |storage: u32| {
        let mut model = design.model(inventory);
        model.storage.count = storage;
        let found = throughput(&model, &inventory.mix, rates).bytes.map(|bytes| bytes / 1e6);
        (f64::from(storage), found.value, found.low, found.high)
    };
    let here = at(design.counts.storage);
    let nodes = BandedLine {
        across: "storage nodes",
        unit: "MB/s",
        points: (1..=most).step_by(step as usize).map(at).collect(),
        marks: vec![(here.0, here.1, "this answer".to_owned())],
    };
    figure(page, "Throughput over storage nodes, with its band", &nodes)?;
    let model = design.model(inventory);
    let limit = answer.throughput.requests.value;
    let points = (1..POINTS).filter_map(|step| {
        let requests = limit * f64::from(step) / f64::from(POINTS);
        let p99 = latency(&model, &inventory.mix, rates, requests)?
            .p99
            .map(|seconds| seconds * 1e3);
        Some((requests, p99.value, p99.low, p99.high))
    });
    let mark = answer
        .latency
        .as_ref()
        .map(|found| (answer.load, found.p99.value * 1e3, "the load".to_owned()));
    let times = BandedLine {
        across: "requests/s",
        unit: "p99, ms",
        points: points.collect(),
        marks: mark.into_iter().collect(),
    };
    figure(page, "The 99th percentile over load, with its band", &times)
}

#[cfg(test)]
mod tests {
    use super::page;
    use crate::advice::{AdviceReport, answer};
    use crate::inventory::tests::starter;
    use crate::model::rates::SoftwareRates;
    use crate::search::least::Goal;
    use crate::search::{PurchaseQuestion, search};

    #[test]
    fn a_page_has_its_pictures_and_no_script() {
        let mut inventory = starter();
        inventory.servers[2].name = "<b>storage</b>".to_owned();
        inventory.wanted.p99 = None;
        let rates = SoftwareRates::built_in().unwrap();
        let found = search(PurchaseQuestion::LeastCost, &inventory, &rates, 1);
        let goal = Goal::of(&inventory.wanted);
        let report = AdviceReport {
            question: Some(PurchaseQuestion::LeastCost),
            currency: inventory.currency.clone(),
            goal: Some(goal),
            answers: vec![answer(&inventory, &rates, &found[0].design, Some(400.0))],
            contradictions: vec![],
            together: vec![],
            scarce_servers: vec![],
            enough_replicas: None,
            rates,
        };
        let text = page(&report, &inventory, &[found[0].design]).unwrap();
        assert_eq!(text.matches("<svg").count(), 4);
        assert_eq!(text.matches("<polygon").count(), 4);
        // What the terminal says stands on the page.
        for part in [
            "Asked for: 600 TB of objects",
            "without a node",
            ", p99 ",
            "flash, memory",
            "Software figures: built-in",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert!(!text.contains("<script") && !text.contains("<b>storage") && text.contains("&lt;b&gt;storage"));
        assert!(text.contains("Not measured:"));
    }
}
