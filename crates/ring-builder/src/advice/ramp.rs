//! `ramp`: the steps in which devices come in or go out without more moving than wished.
//!
//! A step sets weights and rebalances. It may move as many bytes as fit into its hours, and of each partition one
//! replica at most, which is what a rebalance does. The share of the devices at each step is what their weights then
//! ask for; the last step has the weights wished for.

use super::stored::{STORED, Stored, USED, WEIGHT_UNIT};
use super::{JSON, SVG, size};
use crate::command::{Desk, Outcome, matching};
use crate::options::{Declared, Said, Takes, long};
use crate::search_value::Wanted;
use crate::terminal::{Status, Stop};
use placement::{Device, RingBuilder};
use serde_json::json;

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
    SVG,
];

/// Nobody follows more steps than this.
const MOST_STEPS: usize = 10_000;

/// A step.
#[derive(Debug, Clone, PartialEq)]
struct Step {
    /// Hours after the first.
    at: f64,
    /// How much of the way to the wished weights is gone, from 0 to 1.
    factor: f64,
    /// The devices' weights.
    weights: Vec<f64>,
    /// Replicas of partitions that move.
    parts: f64,
    /// In bytes.
    bytes: f64,
    /// How long they take.
    hours: f64,
}

/// What is to be done.
struct Ramp {
    devices: Vec<Device>,
    /// Weights before the first step, as far as partitions have followed them.
    from: Vec<f64>,
    to: Vec<f64>,
    /// Weight of the other devices.
    others: f64,
    /// Replicas of partitions in all.
    cells: f64,
    partitions: f64,
    per_part: f64,
    step_hours: f64,
    /// Bytes per hour.
    most: f64,
}

/// Lays out the steps.
pub fn ramp(desk: &mut Desk<'_, '_>, builder: RingBuilder) -> Outcome {
    desk.placed(&builder)?;
    let said = desk.options(&DECLARED)?;
    let stored = Stored::read(&said, &builder)?;
    let ramp = Ramp::read(desk, &said, &builder, &stored)?;
    let steps = ramp.steps()?;
    if said.has("json") {
        desk.terminal.say(as_json(&ramp, &stored, &steps));
    } else {
        tell(desk, &ramp, &stored, &steps);
    }
    if let Some(path) = said.text("svg") {
        let title = format!(
            "{}: {} devices in {} steps",
            desk.builder_name(),
            ramp.devices.len(),
            steps.len()
        );
        let marked: Vec<u32> = ramp.devices.iter().map(|device| device.id).collect();
        super::save_picture(desk, &builder, &title, &marked, path)?;
    }
    Ok(Status::Success)
}

impl Ramp {
    fn read(desk: &Desk<'_, '_>, said: &Said, builder: &RingBuilder, stored: &Stored) -> Result<Ramp, Stop> {
        let (Some(most), [value]) = (said.text("max-move"), &said.words[..]) else {
            return Err(desk.usage());
        };
        let most = size::speed(most)? * 3600.0;
        let devices = matching(builder, &Wanted::read(value)?);
        if devices.is_empty() {
            return Err(Stop::Refused("No matching devices found".to_owned()));
        }
        let holds = |device: &Device| builder.parts_of(device.id).unwrap_or(0) > 0;
        let target = said.float("target-weight");
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
        let step_hours = said.float("step-hours").unwrap_or(minimum);
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
        let from: Vec<f64> = devices.iter().map(now).collect();
        let to = devices.iter().map(|device| target.unwrap_or(device.weight)).collect();
        let chosen = |id: u32| devices.iter().any(|device| device.id == id);
        let others = builder
            .devices()
            .filter(|device| !chosen(device.id))
            .map(|device| device.weight)
            .sum();
        let partitions = f64::from(builder.partition_count());
        Ok(Ramp {
            from,
            to,
            others,
            cells: partitions * builder.replicas(),
            partitions,
            per_part: stored.per_part,
            step_hours,
            most,
            devices,
        })
    }

    /// The weights at a point of the way.
    fn weights(&self, factor: f64) -> Vec<f64> {
        if factor >= 1.0 {
            return self.to.clone();
        }
        let pairs = self.from.iter().zip(&self.to);
        pairs.map(|(from, to)| from + (to - from) * factor).collect()
    }

    /// How many replicas of partitions the devices hold with these weights: no device holds a partition twice.
    fn share(&self, weights: &[f64]) -> f64 {
        let own: f64 = weights.iter().sum();
        if own <= 0.0 {
            return 0.0;
        }
        let holding = weights.iter().filter(|weight| **weight > 0.0).count() as f64;
        (self.cells * own / (own + self.others)).min(holding * self.partitions)
    }

    fn steps(&self) -> Result<Vec<Step>, Stop> {
        if self.others <= 0.0 {
            return Err(Stop::Refused(
                "there are no other devices to move partitions from or to".to_owned(),
            ));
        }
        let allowed = self.most * self.step_hours;
        if allowed < self.per_part {
            return Err(Stop::Refused(format!(
                "one partition holds {}, more than may move in a step of {} h: allow more or make steps longer",
                size::shown(self.per_part),
                self.step_hours
            )));
        }
        let per_step = if self.per_part > 0.0 {
            (allowed / self.per_part).floor()
        } else {
            self.cells
        };
        let per_step = per_step.min(self.partitions);
        let (begin, end) = (self.share(&self.weights(0.0)), self.share(&self.weights(1.0)));
        let count = ((end - begin).abs() / per_step).ceil();
        if count > MOST_STEPS as f64 {
            return Err(Stop::Refused(format!(
                "that would be {count:.0} steps: allow more to move"
            )));
        }
        let mut steps = Vec::new();
        let (mut held, mut at) = (begin, 0.0);
        while held != end {
            let left = end - held;
            let factor = match left.abs() <= per_step {
                true => 1.0,
                false => self.factor_for(held + per_step.copysign(left)),
            };
            let weights = self.weights(factor);
            let reached = self.share(&weights);
            let parts = (reached - held).abs();
            let bytes = parts * self.per_part;
            // The last one ends when it is done.
            let hours = if factor < 1.0 {
                self.step_hours
            } else {
                bytes / self.most
            };
            steps.push(Step {
                at,
                factor,
                weights,
                parts,
                bytes,
                hours,
            });
            at += hours;
            held = if factor < 1.0 { reached } else { end };
        }
        Ok(steps)
    }

    /// The point of the way at which the devices hold so much. The share grows or shrinks steadily on the way.
    fn factor_for(&self, wanted: f64) -> f64 {
        let rising = self.share(&self.weights(1.0)) > self.share(&self.weights(0.0));
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            let beyond = (self.share(&self.weights(middle)) > wanted) == rising;
            if beyond { high = middle } else { low = middle }
        }
        low
    }
}

/// A weight as it is said on a command line.
fn rounded(weight: f64) -> f64 {
    (weight * 100.0).round() / 100.0
}

/// The command of a step: devices with the same weight go by one search value each.
fn command(desk: &Desk<'_, '_>, ramp: &Ramp, step: &Step) -> String {
    let pairs = ramp.devices.iter().zip(&step.weights);
    let words: Vec<String> = pairs
        .map(|(device, weight)| format!("d{} {}", device.id, rounded(*weight)))
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
            "{:>4} {:>10} {:>14.2} {:>7.1}% {:>10.0} {:>11} {:>10}",
            number + 1,
            size::hours(step.at),
            step.weights.iter().sum::<f64>(),
            step.factor * 100.0,
            step.parts,
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
    let rebalance = format!("     {} {} rebalance", desk.program, desk.builder_name());
    desk.terminal.say(rebalance);
}

fn as_json(ramp: &Ramp, stored: &Stored, steps: &[Step]) -> String {
    let steps: Vec<_> = steps
        .iter()
        .map(|step| {
            let weights = ramp.devices.iter().zip(&step.weights);
            let weights: serde_json::Map<_, _> = weights
                .map(|(device, weight)| (device.id.to_string(), json!(rounded(*weight))))
                .collect();
            json!({
                "after_hours": step.at,
                "weights": weights,
                "partitions": step.parts.round() as u64,
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
        "steps": steps,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ramp(from: f64, to: f64, others: f64, most: f64) -> Ramp {
        Ramp {
            devices: vec![Device::default(); 2],
            from: vec![from; 2],
            to: vec![to; 2],
            others,
            cells: 3.0 * 1024.0,
            partitions: 1024.0,
            per_part: 1e9,
            step_hours: 1.0,
            most,
        }
    }

    #[test]
    fn a_step_moves_no_more_than_fits() {
        let ramp = ramp(0.0, 100.0, 800.0, 100e9);
        let steps = ramp.steps().unwrap();
        // Two of ten equal devices hold a fifth: 614.4 partitions, 100 of them each hour.
        assert_eq!(steps.len(), 7);
        assert!((steps.iter().map(|step| step.parts).sum::<f64>() - 614.4).abs() < 1e-6);
        assert_eq!(steps[6].weights, [100.0; 2]);
        assert!(steps[6].hours < 0.2 && steps[5].hours == 1.0);
    }

    #[test]
    fn devices_that_go_end_with_nothing() {
        let steps = ramp(100.0, 0.0, 800.0, 1e12).steps().unwrap();
        assert_eq!((steps.len(), &*steps[0].weights), (1, &[0.0, 0.0][..]));
    }

    #[test]
    fn too_little_for_one_partition_is_refused() {
        assert!(ramp(0.0, 100.0, 800.0, 1e8).steps().is_err());
        assert!(ramp(0.0, 100.0, 0.0, 1e12).steps().is_err());
    }

    proptest! {
        #[test]
        fn every_way_ends_where_it_should(from in 0.0..1e4f64, to in 0.0..1e4f64, others in 1.0..1e5f64, most in 2e9..1e13f64) {
            let ramp = ramp(from, to, others, most);
            let steps = ramp.steps().unwrap();
            for step in &steps {
                prop_assert!(step.bytes <= most * 1.0001 && step.parts <= 1024.001);
            }
            if let Some(last) = steps.last() {
                prop_assert_eq!(&last.weights, &ramp.to);
            }
        }
    }
}
