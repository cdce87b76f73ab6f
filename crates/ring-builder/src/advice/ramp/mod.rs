//! `ramp`: the steps in which devices come in or go out without more moving than wished.
//!
//! A step sets weights and rebalances. It may move as many bytes as fit into its hours; `way.rs` tries out what it
//! moves. The last step has the weights wished for.

mod way;

use super::states::{self, DeviceStanding, RingState};
use super::stored::{STORED, Stored, USED, WEIGHT_UNIT};
use super::{JSON, STATES, size};
use crate::command::{CommandResult, Desk, matching};
use crate::number::duration;
use crate::options::{Declared, ParsedOptions, Takes, long};
use crate::search_value::DeviceSearch;
use crate::terminal::{CommandStatus, Stop};
use placement::{Device, RingBuilder};
use serde_json::json;
use std::collections::BTreeMap;
use way::{RampPath, SEED};

const DECLARED: [Declared; 8] = [
    long("max-move", Takes::Text, "how much may move (200GiB/h)"),
    long(
        "target-weight",
        Takes::Float,
        "the weight devices get in the end (0: they go)",
    ),
    long(
        "step-hours",
        Takes::Float,
        "how long a step lasts (default: min_part_hours)",
    ),
    STORED,
    USED,
    WEIGHT_UNIT,
    JSON,
    STATES,
];

/// A step, and when.
struct Step {
    /// Hours after the first.
    at: f64,
    /// What is done and what comes of it.
    done: way::Step,
    /// What moves, in bytes.
    bytes: f64,
    /// How long it takes.
    hours: f64,
}

/// What is to be done.
struct Ramp {
    devices: Vec<Device>,
    way: RampPath,
    per_part: f64,
    step_hours: f64,
    /// Bytes per hour.
    most: f64,
    /// Seconds until partitions may move at all.
    wait: i64,
}

/// Lays out the steps.
pub fn ramp(desk: &mut Desk<'_, '_>, builder: RingBuilder) -> CommandResult {
    desk.placed(&builder)?;
    let options = desk.options(&DECLARED)?;
    if builder.next_part_power().is_some() {
        let why = "Partition power increase in progress.\nYou need to finish the increase first before rebalancing.";
        return Err(Stop::Refused(why.to_owned()));
    }
    let stored = Stored::read(&options, &builder)?;
    let ramp = Ramp::read(desk, &options, &builder, &stored)?;
    let steps = ramp.steps(&builder, desk.shelf.now())?;
    if options.has("json") {
        desk.terminal.say(as_json(&ramp, &stored, &steps));
    } else {
        tell(desk, &ramp, &stored, &steps);
    }
    if let Some(path) = options.text("svg") {
        let title = format!(
            "{}: {} devices in {} steps",
            desk.builder_name(),
            ramp.devices.len(),
            steps.len()
        );
        let drawn = ramp.drawn(&builder, &steps, &stored, desk.shelf.now())?;
        states::save(desk, &title, drawn, path)?;
    }
    Ok(CommandStatus::Success)
}

impl Ramp {
    fn read(
        desk: &Desk<'_, '_>,
        options: &ParsedOptions,
        builder: &RingBuilder,
        stored: &Stored,
    ) -> Result<Ramp, Stop> {
        let (Some(most), [value]) = (options.text("max-move"), &options.words[..]) else {
            return Err(desk.usage());
        };
        let most = size::speed(most)? * 3600.0;
        let devices = matching(builder, &DeviceSearch::read(value)?);
        if devices.is_empty() {
            return Err(Stop::Refused("No matching devices found".to_owned()));
        }
        let holds = |device: &Device| builder.parts_of(device.id).unwrap_or(0) > 0;
        let target = options.float("target-weight");
        if let Some(weight) = target.filter(|it| !it.is_finite() || *it < 0.0) {
            return Err(Stop::Refused(format!(
                "weight {weight} is impossible: choose 0 or more"
            )));
        }
        if target.is_none() && devices.iter().any(|device| holds(device) || device.weight == 0.0) {
            let why = "say the weight devices get in the end with --target-weight: only devices that were added with \
                       their weight and hold nothing yet need none";
            return Err(Stop::Refused(why.to_owned()));
        }
        let minimum = builder.min_part_hours().max(1) as f64;
        let step_hours = options.float("step-hours").unwrap_or(minimum);
        if !(step_hours >= minimum && step_hours.is_finite()) {
            let why = format!("a step lasts at least min_part_hours ({minimum} h)");
            return Err(Stop::Refused(why));
        }
        let weight_of_one_part = builder.weight_of_one_part().map_err(crate::command::refusal)?;
        // What a device holds says how far it has come, whatever its weight asks for.
        let now = |device: &Device| match target {
            Some(_) if holds(device) && device.weight > 0.0 => device.weight,
            _ => builder.parts_of(device.id).unwrap_or(0) as f64 / weight_of_one_part,
        };
        let chosen = |id: u32| devices.iter().any(|device| device.id == id);
        let others = builder.devices().filter(|device| !chosen(device.id));
        let partitions = f64::from(builder.partition_count());
        let way = RampPath {
            ids: devices.iter().map(|device| device.id).collect(),
            from: devices.iter().map(now).collect(),
            to: devices.iter().map(|device| target.unwrap_or(device.weight)).collect(),
            others: others.map(|device| device.weight).sum(),
            cells: partitions * builder.replicas(),
            partitions,
            most: may_move(most * step_hours, stored.per_part, step_hours)?,
        };
        Ok(Ramp {
            devices,
            way,
            per_part: stored.per_part,
            step_hours,
            most,
            wait: builder.min_part_seconds_left(desk.shelf.now()),
        })
    }

    fn steps(&self, builder: &RingBuilder, now: i64) -> Result<Vec<Step>, Stop> {
        let mut at = 0.0;
        let done = self.way.steps(builder, now)?;
        let last = done.len().saturating_sub(1);
        let steps = done.into_iter().enumerate().map(|(number, done)| {
            let bytes = done.moved as f64 * self.per_part;
            // The last one ends when it is done.
            let hours = if number < last {
                self.step_hours
            } else {
                bytes / self.most
            };
            let step = Step { at, done, bytes, hours };
            at += hours;
            step
        });
        Ok(steps.collect())
    }

    /// Before, after each step, and so in the end.
    fn drawn(&self, builder: &RingBuilder, steps: &[Step], stored: &Stored, now: i64) -> Result<Vec<RingState>, Stop> {
        // On the way a device's weight says less than its size.
        let ends = self.way.from.iter().zip(&self.way.to).zip(&self.devices);
        let size = |((from, to), device): ((&f64, &f64), &Device)| {
            let weight = from.max(*to).max(device.weight);
            let full = Device {
                weight,
                ..device.clone()
            };
            (device.id, stored.capacity(&full))
        };
        let sizes: BTreeMap<u32, f64> = ends.map(size).collect();
        let state = |title: String, ring: &RingBuilder| {
            let state = RingState::of(title, ring, stored, &sizes, |_| true);
            state.standing(ring, &self.way.ids, DeviceStanding::Chosen)
        };
        let mut drawn = vec![state("Before".to_owned(), builder)];
        let mut ring = builder.clone();
        for (number, step) in steps.iter().enumerate() {
            let after = self.way.taken(&ring, &step.done, now)?;
            let stayed = way::in_place(&ring, &after);
            ring = after;
            let title = format!(
                "After step {}{}: {} has moved in {}",
                number + 1,
                if number + 1 == steps.len() { ", the last" } else { "" },
                size::shown(step.bytes),
                size::hours(step.hours)
            );
            drawn.push(state(title, &ring).with_replicas(stayed, "in place while it moves"));
        }
        Ok(drawn)
    }
}

/// How many replicas of partitions may move in a step.
fn may_move(bytes: f64, per_part: f64, step_hours: f64) -> Result<u64, Stop> {
    match bytes / per_part {
        most if most >= 1.0 => Ok(most.min(1e15) as u64),
        _ => Err(Stop::Refused(format!(
            "one partition holds {}, more than may move in a step of {step_hours} h: allow more or make steps longer",
            size::shown(per_part)
        ))),
    }
}

/// The command of a step: devices with the same weight go by one search value each.
fn command(desk: &Desk<'_, '_>, ramp: &Ramp, step: &Step) -> String {
    let pairs = ramp.devices.iter().zip(&step.done.weights);
    let words: Vec<String> = pairs
        .map(|(device, weight)| format!("d{} {weight}", device.id))
        .collect();
    format!(
        "{} {} set_weight {}",
        desk.program,
        desk.builder_name(),
        words.join(" ")
    )
}

fn tell(desk: &mut Desk<'_, '_>, ramp: &Ramp, stored: &Stored, steps: &[Step]) {
    if let Some(assumed) = stored.assumption() {
        desk.terminal.say(assumed);
    }
    let total: f64 = steps.iter().map(|step| step.bytes).sum();
    let end = steps.last().map_or(0.0, |step| step.at + step.hours);
    desk.terminal.say(format_args!(
        "{} devices, {} steps, {} move in all, done after {}\n",
        ramp.devices.len(),
        steps.len(),
        size::shown(total),
        size::hours(end)
    ));
    let title = if ramp.devices.len() == 1 {
        "weight"
    } else {
        "weights (sum)"
    };
    desk.terminal.say(format_args!(
        "{:>4} {:>10} {title:>14} {:>8} {:>10} {:>11} {:>10}",
        "step", "after", "of way", "partitions", "bytes", "takes"
    ));
    for (number, step) in steps.iter().enumerate() {
        desk.terminal.say(format_args!(
            "{:>4} {:>10} {:>14.2} {:>7.1}% {:>10} {:>11} {:>10}",
            number + 1,
            size::hours(step.at),
            step.done.weights.iter().sum::<f64>(),
            step.done.factor * 100.0,
            step.done.moved,
            size::shown(step.bytes),
            size::hours(step.hours)
        ));
    }
    desk.terminal
        .say("\nFor each step, when the one before has taken its time and the replicators are done:");
    for (number, step) in steps.iter().enumerate().take(3) {
        let line = command(desk, ramp, step);
        desk.terminal.say(format_args!("{:>4} {line}", number + 1));
    }
    if steps.len() > 3 {
        desk.terminal.say("     ... (--json has the weights of every step)");
    }
    let rebalance = format!("     {} {} rebalance --seed {SEED}", desk.program, desk.builder_name());
    desk.terminal.say(rebalance);
    if ramp.wait > 0 {
        let wait = duration(ramp.wait);
        desk.terminal.say(format_args!(
            "\nNot before min_part_hours have passed since the last rebalance: {wait} remaining."
        ));
    }
}

fn as_json(ramp: &Ramp, stored: &Stored, steps: &[Step]) -> String {
    let steps: Vec<_> = steps
        .iter()
        .map(|step| {
            let weights = ramp.devices.iter().zip(&step.done.weights);
            let weights: serde_json::Map<_, _> = weights
                .map(|(device, weight)| (device.id.to_string(), json!(weight)))
                .collect();
            json!({
                "after_hours": step.at,
                "weights": weights,
                "partitions": step.done.moved,
                "bytes": step.bytes as u64,
                "hours": step.hours,
            })
        })
        .collect();
    super::pretty(&json!({
        "stored_bytes": stored.bytes as u64,
        "bytes_per_partition_replica": stored.per_part as u64,
        "max_move_bytes_per_hour": ramp.most as u64,
        "assumed": stored.assumed,
        "rebalance_seed": SEED,
        "wait_seconds": ramp.wait,
        "steps": steps,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_for_one_partition_is_refused() {
        assert_eq!(may_move(10.5e9, 1e9, 1.0), Ok(10));
        assert!(may_move(1e8, 1e9, 1.0).is_err());
        assert!(may_move(1e9, f64::NAN, 1.0).is_err());
        assert!(may_move(1e9, 0.0, 1.0).is_ok());
    }
}
