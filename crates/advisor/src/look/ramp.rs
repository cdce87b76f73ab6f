//! The steps in which devices that were added to a builder come in: what `martlet ring-builder … ramp` says of them.
//!
//! Always holds: nothing is written; a builder that is not there, or that nothing was added to, has no steps.

use super::ClusterSight;
use super::arguments::LookArguments;
use placement::{Device, RingBuilder};
use ring_builder::{CommandStatus, Invocation, Terminal};
use serde::Serialize;
use serde_json::Value;
use std::io;
use std::path::Path;
use world::World;

/// A larger file is no builder.
const LARGEST_BUILDER: u64 = 8 << 30;
/// Steps that are shown as commands.
const MOST_STEPS: usize = 200;

/// How new devices of a ring come in.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RampAdvice {
    /// `object`.
    pub ring: String,
    /// Devices that hold nothing yet, as they are called on the command line.
    pub devices: Vec<String>,
    /// The command that says so.
    pub command: String,
    /// In this order, each when the replicators are done with the one before.
    pub steps: Vec<RampStepAdvice>,
    /// Why there are no steps.
    pub refused: Option<String>,
}

/// One step.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RampStepAdvice {
    /// Hours after the first, and how long it takes.
    pub after_hours: f64,
    pub hours: f64,
    /// Bytes that move.
    pub bytes: f64,
    pub commands: Vec<String>,
}

/// For each builder beside a ring that has devices which hold nothing yet.
pub(super) fn ramps(world: &World, sight: &ClusterSight, arguments: &LookArguments) -> Vec<RampAdvice> {
    let stored = super::capacity::KnownDevices::of(sight);
    let mut all = vec![];
    for ring in &sight.rings {
        let path = ring.builder();
        let Ok(bytes) = world.files.read(Path::new(&path), LARGEST_BUILDER) else {
            continue;
        };
        let Ok(builder) = RingBuilder::from_bytes(&bytes) else {
            continue;
        };
        let holds = |id: u32| builder.parts_of(id).unwrap_or(0) > 0;
        let new: Vec<u32> = builder
            .devices()
            .filter(|it| it.weight > 0.0 && !holds(it.id))
            .map(|it| it.id)
            .collect();
        // Before the first rebalance all are new.
        if new.is_empty() || !builder.devices().any(|it| holds(it.id)) {
            continue;
        }
        let used = stored.room(ring).map(|room| room.used);
        all.push(ramp(world, ring, &builder, &new, used, arguments));
    }
    all
}

fn ramp(
    world: &World,
    ring: &super::rings::RingSight,
    builder: &RingBuilder,
    new: &[u32],
    used: Option<f64>,
    arguments: &LookArguments,
) -> RampAdvice {
    let mut advice = RampAdvice {
        ring: ring.name.clone(),
        devices: new.iter().map(|id| format!("d{id}")).collect(),
        command: String::new(),
        steps: vec![],
        refused: None,
    };
    let (search, count) = search(builder, new);
    let most = format!("{:.0}B/h", arguments.max_move * count as f64);
    let mut words = vec![ring.builder(), "ramp".to_owned(), search, "--max-move".to_owned(), most];
    // What is used is known; without it the builder assumes how full devices are.
    if let Some(used) = used.filter(|used| *used >= 1.0) {
        words.extend(["--stored".to_owned(), format!("{used:.0}B")]);
    }
    advice.command = format!("martlet ring-builder {}", words.join(" "));
    words.push("--json".to_owned());
    let (mut out, mut err, mut input) = (vec![], vec![], io::empty());
    let mut terminal = Terminal {
        out: &mut out,
        err: &mut err,
        input: &mut input,
    };
    let status = Invocation::new("ring-builder", &words).run(world, &mut terminal);
    let plan: Option<Value> = serde_json::from_slice(&out).ok();
    match plan.filter(|_| status != CommandStatus::Error) {
        Some(plan) => advice.steps = steps(&plan, &ring.command()),
        None => {
            let output = [out, err].concat();
            advice.refused = Some(String::from_utf8_lossy(&output).trim().to_owned());
        }
    }
    advice
}

/// The search value of a zone or a server that finds the new devices and no others, and how many it finds; else that of
/// the first, since those of several places come in one place after the other.
fn search(builder: &RingBuilder, new: &[u32]) -> (String, usize) {
    let Some(first) = new.first().and_then(|id| builder.devices().find(|it| it.id == *id)) else {
        return (String::new(), 1);
    };
    let zone = |it: &Device| (it.region, it.zone) == (first.region, first.zone);
    let server = |it: &Device| zone(it) && it.ip == first.ip;
    let (region, number, ip) = (first.region, first.zone, &first.ip);
    let is_named = ip.parse::<std::net::Ipv4Addr>().is_err();
    let only_new = |at: &dyn Fn(&Device) -> bool| {
        let found: Vec<u32> = builder.devices().filter(|it| at(it)).map(|it| it.id).collect();
        found.iter().all(|id| new.contains(id)).then_some(found.len())
    };
    if let Some(count) = only_new(&zone) {
        return (format!("r{region}z{number}"), count);
    }
    match only_new(&server).filter(|_| !is_named) {
        Some(count) => (format!("r{region}z{number}-{ip}"), count),
        None => (format!("d{}", first.id), 1),
    }
}

fn steps(plan: &Value, command: &str) -> Vec<RampStepAdvice> {
    let seed = plan["rebalance_seed"].as_u64().unwrap_or(1);
    let all = plan["steps"].as_array().into_iter().flatten().take(MOST_STEPS);
    all.map(|step| {
        let weights = step["weights"].as_object().into_iter().flatten();
        let weights = weights.map(|(id, weight)| format!("d{id} {weight}"));
        let number = |name: &str| step[name].as_f64().unwrap_or(0.0);
        RampStepAdvice {
            after_hours: number("after_hours"),
            hours: number("hours"),
            bytes: number("bytes"),
            commands: vec![
                format!("{command} set_weight {}", weights.collect::<Vec<_>>().join(" ")),
                format!("{command} rebalance --seed {seed}"),
            ],
        }
    })
    .collect()
}
