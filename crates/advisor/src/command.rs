//! `martlet advise`: one function for each of its commands.

use crate::advice::configuration;
use crate::advice::next_steps::ring;
use crate::advice::unmet::unmet;
use crate::advice::{AdviceReport, answer};
use crate::arguments::{AdviseArguments, AdviseCommand, BuyArguments, FitArguments, OutputArguments, PredictArguments};
use crate::fit::runs::MeasuredRun;
use crate::fit::{self, fit_runs};
use crate::inventory::{PurchaseInventory, STARTER};
use crate::model::rates::{BUILT_IN, SoftwareRates};
use crate::published::PublishedExample;
use crate::report::{curves, html, terminal};
use crate::search::conflict::contradictions;
use crate::search::design::ClusterDesign;
use crate::search::least::Goal;
use crate::search::{MOST_RECIPES, PurchaseQuestion, recipe_bound, search};
use crate::text_files::{read_text, write_text};
use operator_tools::{Console, ToolStatus};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use vocabulary::Fault;
use world::World;

/// Runs a command; mistakes end it with a line.
pub fn run(arguments: &AdviseArguments, world: &World, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    let done = match &arguments.command {
        AdviseCommand::Catalogue => {
            console.out.write_all(STARTER.as_bytes())?;
            return Ok(ToolStatus::SUCCESS);
        }
        AdviseCommand::Buy(line) => buy(line, world),
        AdviseCommand::Predict(line) => predict(line, world),
        AdviseCommand::Fit(line) => fit(line, world),
        AdviseCommand::Measure(_) => Err(Fault::caller("measure: it is run by `measure::run`")),
        AdviseCommand::Rates => Ok((BUILT_IN.to_owned(), ToolStatus::SUCCESS)),
        AdviseCommand::Look(_) => Err(Fault::caller("look: it is run by `look::run`")),
        AdviseCommand::Published => PublishedExample::built_in().map(|example| (example.text(), ToolStatus::SUCCESS)),
    };
    match done {
        Ok((text, status)) => {
            console.out.write_all(text.as_bytes())?;
            Ok(status)
        }
        Err(fault) => console.complain(fault).map(|()| ToolStatus::FAILURE),
    }
}

type CommandText = Result<(String, ToolStatus), Fault>;

fn inventory(world: &World, path: &Path) -> Result<PurchaseInventory, Fault> {
    let text = read_text(world, path)?;
    PurchaseInventory::read(&text).map_err(|fault| fault.within(path.display()))
}

fn rates(world: &World, from: Option<&Path>) -> Result<SoftwareRates, Fault> {
    match from {
        Some(path) => SoftwareRates::read(&read_text(world, path)?).map_err(|fault| fault.within(path.display())),
        None => SoftwareRates::built_in(),
    }
}

/// What a question needs to make sense.
fn check_question(question: PurchaseQuestion, inventory: &PurchaseInventory, path: &Path) -> Result<(), Fault> {
    let wanted = &inventory.wanted;
    let needed = match question {
        PurchaseQuestion::LeastCost => [("capacity", wanted.capacity), ("throughput", wanted.throughput)],
        PurchaseQuestion::MostCapacity => [("throughput", wanted.throughput), ("budget", wanted.budget)],
        PurchaseQuestion::MostThroughput => [("capacity", wanted.capacity), ("budget", wanted.budget)],
    };
    let recipes = recipe_bound(inventory);
    if recipes > MOST_RECIPES {
        return Err(Fault::caller(format!(
            "{}: servers, drives, balancers and protections can be put together in {recipes} ways: expected \
             {MOST_RECIPES} at most, so leave kinds out that you would not buy",
            path.display()
        )));
    }
    match needed.iter().find(|(_, value)| value.is_none()) {
        None => Ok(()),
        Some((key, _)) => {
            let example = match *key {
                "capacity" => "\"500TB\"",
                "throughput" => "\"500MB/s\"",
                _ => "250000",
            };
            Err(Fault::caller(format!(
                "{}: constraints: {key} is missing: this question needs it, as in {key} = {example}",
                path.display()
            )))
        }
    }
}

fn buy(line: &BuyArguments, world: &World) -> CommandText {
    let mut inventory = inventory(world, &line.inventory)?;
    let rates = rates(world, line.output.rates.as_deref())?;
    check_question(line.question, &inventory, &line.inventory)?;
    // What is asked for has no bound of its own.
    match line.question {
        PurchaseQuestion::LeastCost => {}
        PurchaseQuestion::MostCapacity => inventory.wanted.capacity = None,
        PurchaseQuestion::MostThroughput => inventory.wanted.throughput = None,
    }
    let goal = Goal::of(&inventory.wanted);
    let found = search(line.question, &inventory, &rates, usize::from(line.top));
    let mut report = AdviceReport {
        question: Some(line.question),
        currency: inventory.currency.clone(),
        goal: Some(goal),
        answers: vec![],
        contradictions: vec![],
        together: vec![],
        scarce_servers: vec![],
        enough_replicas: None,
        rates,
    };
    if found.is_empty() {
        let found = contradictions(&inventory, &report.rates);
        (report.contradictions, report.together) = (found.constraints, found.together);
        (report.scarce_servers, report.enough_replicas) = (found.servers, found.replicas);
        let text = match line.output.json {
            true => json(&report)?,
            false => terminal::contradictions(&report),
        };
        return Ok((text, ToolStatus::FAILURE));
    }
    for one in &found {
        let requests = one.goal.throughput / inventory.mix.bytes_per_request();
        add(&mut report, world, &inventory, &one.design, Some(requests));
    }
    let designs: Vec<ClusterDesign> = found.iter().map(|one| one.design).collect();
    shown(&report, &inventory, &line.output, &designs, world)
}

fn predict(line: &PredictArguments, world: &World) -> CommandText {
    let inventory = inventory(world, &line.inventory)?;
    let Some(planned) = &inventory.design else {
        return Err(Fault::caller(format!(
            "{}: there is no section [design]: it says what is there or planned",
            line.inventory.display()
        )));
    };
    let goal = Goal::of(&inventory.wanted);
    let requests = inventory
        .wanted
        .throughput
        .and(Some(goal.throughput / inventory.mix.bytes_per_request()));
    let mut report = AdviceReport {
        question: None,
        currency: inventory.currency.clone(),
        rates: rates(world, line.output.rates.as_deref())?,
        goal: None,
        answers: vec![],
        contradictions: vec![],
        together: vec![],
        scarce_servers: vec![],
        enough_replicas: None,
    };
    let design = planned.design();
    add(&mut report, world, &inventory, &design, requests);
    for one in &mut report.answers {
        one.unmet = unmet(&inventory, &report.rates, &design, one);
    }
    let (text, status) = shown(&report, &inventory, &line.output, &[design], world)?;
    match report.answers.iter().all(|one| one.unmet.is_empty()) {
        true => Ok((text, status)),
        false => Ok((text, ToolStatus::FAILURE)),
    }
}

fn add(
    report: &mut AdviceReport,
    world: &World,
    inventory: &PurchaseInventory,
    design: &ClusterDesign,
    requests: Option<f64>,
) {
    let mut one = answer(inventory, &report.rates, design, requests);
    one.ring = ring(world, inventory, design);
    report.answers.push(one);
}

fn fit(line: &FitArguments, world: &World) -> CommandText {
    let (mut all, mut seen) = (vec![], BTreeMap::new());
    for path in &line.manifests {
        let manifest = read_text(world, path)?;
        let beside = path.with_extension("cluster.toml");
        let cluster = read_text(world, &beside).map_err(|fault| {
            Fault::caller(format!(
                "{}; it says what {} loaded: gateways, storage_nodes, what",
                fault.what,
                path.display()
            ))
        })?;
        let cluster = fit::runs::cluster(&cluster).map_err(|fault| fault.within(beside.display()))?;
        let runs = fit::runs::runs(&path.display().to_string(), &manifest, &cluster);
        all.extend(runs.map_err(|fault| fault.within(path.display()))?);
        // A run that is there twice is predicted by itself, without any error.
        if let Some(other) = seen.insert(manifest, path) {
            let (path, other) = (path.display(), other.display());
            return Err(Fault::caller(format!(
                "{path}: it is the run of {other} again: name each run once"
            )));
        }
    }
    let report = curves::CurvesReport::of(fit_runs(all)?, line);
    let written = match &line.write_rates {
        Some(path) => write_rates(line, world, path, &report.curves.runs)?,
        None => String::new(),
    };
    let text = match line.json {
        true => {
            let text = serde_json::to_string_pretty(&report);
            text.map_err(|error| Fault::caller(format!("JSON: {error}")))? + "\n"
        }
        false => report.text() + &written,
    };
    Ok((text, ToolStatus::SUCCESS))
}

/// Writes what the runs say of the software, and says which figures those are.
fn write_rates(line: &FitArguments, world: &World, path: &Path, runs: &[MeasuredRun]) -> Result<String, Fault> {
    let base = rates(world, line.rates.as_deref())?;
    let found = fit::costs::rates(runs, &base, line.rates.is_some())?;
    write_text(world, path, &found.text())?;
    let (taken, kept) = fit::costs::taken(&base, &found);
    Ok(format!(
        "\n{}: of these runs: {}\n  as they were in {}: {}\n",
        path.display(),
        taken.join(", "),
        base.name,
        kept.join(", ")
    ))
}

fn json(report: &AdviceReport) -> Result<String, Fault> {
    let text = serde_json::to_string_pretty(report);
    text.map(|text| text + "\n")
        .map_err(|error| Fault::caller(format!("JSON: {error}")))
}

fn shown(
    report: &AdviceReport,
    inventory: &PurchaseInventory,
    output: &OutputArguments,
    designs: &[ClusterDesign],
    world: &World,
) -> CommandText {
    if let (Some(folder), [first, ..], Some(answer)) = (&output.write_configuration, designs, report.answers.first()) {
        let part_power = answer.ring.as_ref().map(|ring| ring.part_power);
        configuration::write(world, inventory, first, part_power, folder)?;
    }
    if let (Some(path), Some(first)) = (&output.workload, report.answers.first()) {
        write_text(world, path, &first.validation)?;
    }
    if let Some(path) = &output.html {
        write_text(world, path, &html::page(report, inventory, designs)?)?;
    }
    let text = match output.json {
        true => json(report)?,
        false => terminal::text(report, inventory, output.explain),
    };
    Ok((text, ToolStatus::SUCCESS))
}
