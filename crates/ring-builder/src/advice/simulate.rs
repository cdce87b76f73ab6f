//! `simulate`: what is at risk when places fail, and how long repair takes.
//!
//! Counted from the assignments themselves, partition by partition. Repair is what replicators do once the lost
//! devices are out of the ring: each replica that is lost is copied from one that is left to a device that has room,
//! and the busiest device sets the pace.

use super::states::{self, DeviceStanding, RingState};
use super::stored::{STORED, Stored, USED, WEIGHT_UNIT};
use super::{JSON, STATES, size};
use crate::command::{CommandResult, Desk, matching};
use crate::options::{Declared, Takes, long};
use crate::search_value::DeviceSearch;
use crate::terminal::{CommandStatus, Stop};
use placement::{Device, RingBuilder};
use serde_json::json;
use std::collections::BTreeMap;

const DECLARED: [Declared; 7] = [
    long(
        "lose",
        Takes::Text,
        "what fails: region:1, zone:3, zone:1/3, server:10.0.0.1, device:7",
    ),
    long(
        "bandwidth",
        Takes::Text,
        "what a device can read or write for repair (default 50MB/s)",
    ),
    STORED,
    USED,
    WEIGHT_UNIT,
    JSON,
    STATES,
];

/// What a drive can spare for repair while it serves clients.
const USUAL_BANDWIDTH: &str = "50MB/s";
/// Above this a device refuses writes sooner or later.
const FULL: f64 = 95.0;

/// Of replicas in pictures.
const LEFT: &str = "left";
/// Any would do: what is drawn is how much each device gets.
const SEED: u64 = 1;

/// What comes of it.
#[derive(Debug, Default)]
struct Damage {
    devices: usize,
    /// Replicas of partitions on lost devices.
    lost: u64,
    /// For each number of replicas left, how many partitions have lost at least one and have so many.
    left: Vec<u64>,
    /// Partitions that have fewer replicas left than a write needs.
    below_quorum: u64,
    /// Replicas that can be copied.
    repairable: u64,
    /// Bytes the busiest device reads or writes.
    busiest: f64,
    /// How full the devices that are left are afterwards, in percent.
    full: f64,
    /// Whether the devices that are left can hold all replicas apart.
    enough: bool,
}

/// Tells.
pub fn simulate(desk: &mut Desk<'_, '_>, builder: RingBuilder) -> CommandResult {
    desk.placed(&builder)?;
    let options = desk.options(&DECLARED)?;
    let places: Vec<&str> = options.texts("lose").collect();
    if places.is_empty() || !options.words.is_empty() {
        return Err(desk.usage());
    }
    let bandwidth = size::speed(options.text("bandwidth").unwrap_or(USUAL_BANDWIDTH))?;
    let stored = Stored::read(&options, &builder)?;
    let mut lost: Vec<u32> = Vec::new();
    for place in &places {
        let found = devices_of(&builder, place)?;
        if found.is_empty() {
            return Err(Stop::Refused(format!("{place} has no devices in this ring")));
        }
        lost.extend(found.iter().map(|device| device.id));
    }
    lost.sort_unstable();
    lost.dedup();
    let damage = Damage::of(&builder, &lost, &stored);
    let hours = damage.busiest / bandwidth / 3600.0;
    if options.has("json") {
        desk.terminal.say(as_json(&damage, &stored, &places, bandwidth, hours));
    } else {
        tell(desk, &builder, &damage, &stored, &places, bandwidth, hours);
    }
    if let Some(path) = options.text("svg") {
        let title = format!("{}: {} lost", desk.builder_name(), places.join(", "));
        let drawn = drawn(&builder, &lost, &damage, &stored, desk.shelf.now());
        states::save(desk, &title, drawn, path)?;
    }
    let risky = damage.left.first().is_some_and(|gone| *gone > 0) || damage.below_quorum > 0 || damage.full > FULL;
    Ok(if risky {
        CommandStatus::Warning
    } else {
        CommandStatus::Success
    })
}

/// Before, with the devices lost, and once the ring is without them.
fn drawn(builder: &RingBuilder, lost: &[u32], damage: &Damage, stored: &Stored, now: i64) -> Vec<RingState> {
    let sizes = BTreeMap::new();
    let partitions = u64::from(builder.partition_count());
    let is_lost = |id: &u32| lost.contains(id);
    let rows = builder.assignments();
    let has_data = |partition: usize| {
        let mut held = rows.iter().filter_map(|row| row.get(partition));
        held.any(|id| !is_lost(id))
    };
    let before = RingState::of("Before".to_owned(), builder, stored, &sizes, |_| true);
    // A ring of 2.5 replicas has partitions of two and of three.
    let whole = by_replicas(builder, |_| false);
    let left = by_replicas(builder, is_lost);
    let during = RingState::of("Lost, nothing copied yet".to_owned(), builder, stored, &sizes, |_| true);
    let during = during
        .standing(builder, lost, DeviceStanding::Lost)
        .with_replicas(left, LEFT);
    let mut drawn = vec![before.with_replicas(whole.clone(), LEFT), during];
    if let Some(repaired) = repaired(builder, lost, now) {
        let gone = damage.left.first().copied().unwrap_or(0);
        let title = match damage.full > 100.0 {
            false => "Repaired: what was lost is copied to the devices that are left",
            true => "Repair: what was lost does not fit on the devices that are left",
        };
        let mut left = whole;
        if gone > 0 {
            left = vec![0; rows.len() + 1];
            (left[0], left[rows.len()]) = (gone, partitions - gone);
        }
        let after = RingState::of(title.to_owned(), &repaired, stored, &sizes, has_data);
        drawn.push(
            after
                .standing(&repaired, lost, DeviceStanding::Out)
                .emptied()
                .with_replicas(left, LEFT),
        );
    }
    drawn
}

/// For each number of replicas, the partitions that have so many outside of what `is_lost`.
fn by_replicas(builder: &RingBuilder, is_lost: impl Fn(&u32) -> bool) -> Vec<u64> {
    let rows = builder.assignments();
    let mut counts = vec![0; rows.len() + 1];
    for partition in 0..rows.first().map_or(0, Vec::len) {
        let held = rows.iter().filter_map(|row| row.get(partition));
        counts[held.filter(|id| !is_lost(id)).count()] += 1;
    }
    counts
}

/// The ring whose lost devices weigh nothing, at rest; `None` where none are left to hold anything.
fn repaired(builder: &RingBuilder, lost: &[u32], now: i64) -> Option<RingBuilder> {
    let mut ring = builder.clone();
    for id in lost {
        ring.set_weight(*id, 0.0).ok()?;
    }
    // Of each partition one replica moves in a rebalance.
    for _ in builder.assignments() {
        ring.pretend_min_part_hours_passed();
        ring.rebalance(SEED, now).ok()?;
    }
    let is_free = |id: &u32| ring.parts_of(*id).unwrap_or(0) == 0;
    lost.iter().all(is_free).then_some(ring)
}

/// The devices of a place.
fn devices_of(builder: &RingBuilder, place: &str) -> Result<Vec<Device>, Stop> {
    let Some((kind, name)) = place
        .split_once(':')
        .filter(|(kind, _)| !kind.is_empty() && !kind.contains(['.', '[']))
    else {
        return Ok(matching(builder, &DeviceSearch::read(place)?));
    };
    let number = |text: &str| {
        let parsed = text.parse::<i64>();
        parsed.map_err(|_| Stop::Refused(format!("{place}: '{text}' is no number")))
    };
    let mut wanted = DeviceSearch::default();
    match kind {
        "region" => wanted.region = Some(number(name)?),
        "zone" => match name.split_once('/') {
            Some((region, zone)) => (wanted.region, wanted.zone) = (Some(number(region)?), Some(number(zone)?)),
            None => wanted.zone = Some(number(name)?),
        },
        "server" => wanted.ip = Some(crate::address::address(name)?),
        "device" => wanted.id = Some(number(name)?),
        // `d7:6200` and the like are search values.
        _ => wanted = DeviceSearch::read(place)?,
    }
    Ok(matching(builder, &wanted))
}

impl Damage {
    fn of(builder: &RingBuilder, lost: &[u32], stored: &Stored) -> Damage {
        let rows = builder.assignments();
        let most = builder
            .devices()
            .map(|device| device.id as usize + 1)
            .max()
            .unwrap_or(0);
        let mut is_lost = vec![false; most];
        lost.iter().for_each(|id| is_lost[*id as usize] = true);
        let mut damage = Damage {
            devices: lost.len(),
            left: vec![0; rows.len()],
            ..Damage::default()
        };
        let mut reads = vec![0.0f64; most];
        let mut held: Vec<u32> = Vec::with_capacity(rows.len());
        for partition in 0..rows.first().map_or(0, Vec::len) {
            held.clear();
            held.extend(rows.iter().filter_map(|row| row.get(partition)));
            damage.count(&held, &is_lost, &mut reads);
        }
        let staying: Vec<&Device> = builder
            .devices()
            .filter(|device| !is_lost[device.id as usize])
            .collect();
        let weight: f64 = staying.iter().map(|device| device.weight).sum();
        let copied = damage.repairable as f64;
        let busiest = |device: &&Device| {
            let writes = if weight > 0.0 {
                copied * device.weight / weight
            } else {
                0.0
            };
            (reads[device.id as usize] + writes) * stored.per_part
        };
        damage.busiest = staying.iter().map(busiest).fold(0.0, f64::max);
        let capacity: f64 = staying.iter().map(|device| stored.capacity(device)).sum();
        let gone = damage.left.first().copied().unwrap_or(0) as f64 * builder.replicas();
        let cells: usize = rows.iter().map(Vec::len).sum();
        damage.full = match capacity > 0.0 {
            true => 100.0 * (cells as f64 - gone) * stored.per_part / capacity,
            false => f64::INFINITY,
        };
        damage.enough = staying.iter().filter(|device| device.weight > 0.0).count() as f64 >= builder.replicas().ceil();
        damage
    }

    /// One partition.
    fn count(&mut self, held: &[u32], is_lost: &[bool], reads: &mut [f64]) {
        let lost = held.iter().filter(|id| is_lost[**id as usize]).count();
        if lost == 0 {
            return;
        }
        let left = held.len() - lost;
        self.lost += lost as u64;
        self.left[left.min(held.len() - 1)] += 1;
        if left < quorum::size(held.len()) {
            self.below_quorum += 1;
        }
        if left == 0 {
            return;
        }
        self.repairable += lost as u64;
        for id in held.iter().filter(|id| !is_lost[**id as usize]) {
            reads[*id as usize] += lost as f64 / left as f64;
        }
    }
}

fn tell(
    desk: &mut Desk<'_, '_>,
    builder: &RingBuilder,
    damage: &Damage,
    stored: &Stored,
    places: &[&str],
    bandwidth: f64,
    hours: f64,
) {
    let terminal = &mut *desk.terminal;
    let partitions = f64::from(builder.partition_count());
    let share = |count: u64| format!("{count} partitions ({:.1}%)", 100.0 * count as f64 / partitions);
    let data = |count: u64| size::shown(count as f64 * stored.per_part);
    if let Some(assumed) = stored.assumption() {
        terminal.say(assumed);
    }
    terminal.say(format_args!(
        "Lost: {} ({} devices, {} in {} replicas of partitions)\n",
        places.join(", "),
        damage.devices,
        data(damage.lost),
        damage.lost
    ));
    for (left, count) in damage.left.iter().enumerate().filter(|(_, count)| **count > 0) {
        let meaning = match left {
            0 => "UNAVAILABLE until the devices come back; gone if they do not",
            1 => "one more failure makes them unavailable",
            _ => "safe",
        };
        terminal.say(format_args!(
            "{left} replicas left: {}, {} of data: {meaning}",
            share(*count),
            data(*count)
        ));
    }
    let untouched = partitions as u64 - damage.left.iter().sum::<u64>();
    terminal.say(format_args!("all replicas left: {}", share(untouched)));
    if damage.below_quorum > 0 {
        terminal.say(format_args!(
            "no quorum of primaries: {}: writes need handoffs meanwhile",
            share(damage.below_quorum)
        ));
    }
    terminal.say(format_args!(
        "\nRepair copies {}. With {}/s for each device it takes {}.",
        data(damage.repairable),
        size::shown(bandwidth),
        size::hours(hours)
    ));
    if damage.full.is_finite() {
        terminal.say(format_args!("Devices that are left are {:.0}% full then.", damage.full));
    }
    if !damage.enough {
        terminal.say("WARNING: fewer devices are left than there are replicas: no repair can be complete.");
    } else if damage.full > 100.0 {
        terminal.say("WARNING: they cannot hold it all: bring the devices back or add others.");
    } else if damage.full > FULL {
        terminal.say("WARNING: that is too full: add devices before you need this.");
    }
}

fn as_json(damage: &Damage, stored: &Stored, places: &[&str], bandwidth: f64, hours: f64) -> String {
    let left: serde_json::Map<_, _> = damage
        .left
        .iter()
        .enumerate()
        .map(|(left, count)| (left.to_string(), json!(count)))
        .collect();
    super::pretty(&json!({
        "lost": places,
        "devices": damage.devices,
        "lost_partition_replicas": damage.lost,
        "lost_bytes": (damage.lost as f64 * stored.per_part) as u64,
        "partitions_by_replicas_left": left,
        "partitions_below_quorum": damage.below_quorum,
        "repair_bytes": (damage.repairable as f64 * stored.per_part) as u64,
        "bandwidth_bytes_per_second": bandwidth,
        "repair_hours": hours,
        "fill_percent_afterwards": damage.full,
        "can_be_complete": damage.enough,
        "stored_bytes": stored.bytes as u64,
        "assumed": stored.assumed,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_counted_by_what_is_left() {
        let mut damage = Damage {
            left: vec![0; 3],
            ..Damage::default()
        };
        let is_lost = [true, true, false, false];
        let mut reads = [0.0; 4];
        for held in [[0, 2, 3], [0, 1, 2], [2, 3, 2]] {
            damage.count(&held, &is_lost, &mut reads);
        }
        assert_eq!((damage.lost, damage.repairable, damage.below_quorum), (3, 3, 1));
        assert_eq!(damage.left, [0, 1, 1]);
        assert_eq!(reads, [0.0, 0.0, 2.5, 0.5]);
    }
}
