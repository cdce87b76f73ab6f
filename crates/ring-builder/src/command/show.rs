//! The ring shown, searched and checked. Nothing here changes anything.

use super::{CommandResult, Desk};
use crate::number::{duration, fixed};
use crate::search_value::DeviceSearch;
use crate::tables;
use crate::terminal::{CommandStatus, Stop};
use placement::{Device, RingBuilder};
use std::collections::BTreeSet;

/// What OpenStack's program says when no device has weight.
pub(super) const NO_DEVICES: &str = "There are no devices in this ring, or all devices have been deleted";

/// The ring and all its devices.
pub(super) fn ring(desk: &mut Desk<'_, '_>, builder: RingBuilder) -> CommandResult {
    let now = desk.shelf.now();
    let name = desk.builder_name();
    let ring = ring_state(desk, &builder);
    let terminal = &mut *desk.terminal;
    let id = builder.id().unwrap_or("(not assigned)");
    terminal.say(format_args!("{name}, build version {}, id {id}", builder.version()));
    terminal.say(summary(&builder));
    terminal.say(format_args!(
        "The minimum number of hours before a partition can be reassigned is {} ({} remaining)",
        builder.min_part_hours(),
        duration(builder.min_part_seconds_left(now))
    ));
    terminal.say(format_args!(
        "The overload factor is {}% ({})",
        fixed(builder.overload() * 100.0, 2),
        fixed(builder.overload(), 6)
    ));
    terminal.say(ring);
    terminal.put(&tables::devices(&builder));
    if let Some(text) = power_state(&builder) {
        terminal.say(text);
    }
    if builder.balance().is_err() {
        terminal.say(NO_DEVICES);
    }
    Ok(CommandStatus::Success)
}

/// The line of numbers.
fn summary(builder: &RingBuilder) -> String {
    let zones: BTreeSet<(u32, u32)> = builder.devices().map(|device| (device.region, device.zone)).collect();
    let regions: BTreeSet<u32> = zones.iter().map(|zone| zone.0).collect();
    let dispersion = format!(", {} dispersion", fixed(builder.dispersion(), 2));
    format!(
        "{} partitions, {} replicas, {} regions, {} zones, {} devices, {}-byte IDs, {} balance{dispersion}",
        builder.partition_count(),
        fixed(builder.replicas(), 6),
        regions.len(),
        zones.len(),
        builder.devices().count(),
        builder.dev_id_bytes(),
        fixed(builder.balance().unwrap_or(0.0), 2),
    )
}

/// Whether the ring file is what the builder would write.
fn ring_state(desk: &Desk<'_, '_>, builder: &RingBuilder) -> String {
    let name = desk.shelf.files().ring.display();
    match desk.shelf.read_ring() {
        Ok(None) => format!("Ring file {name} not found, probably it hasn't been written yet"),
        Ok(Some(ring)) => match builder.to_ring() {
            Ok(made) if made.same_as(&ring) => format!("Ring file {name} is up-to-date"),
            _ => format!("Ring file {name} is obsolete"),
        },
        Err(why) => format!("Ring file {name} is invalid: {why}"),
    }
}

/// Where an increase of the partition power stands.
fn power_state(builder: &RingBuilder) -> Option<String> {
    let (power, next) = (builder.part_power(), builder.next_part_power()?);
    Some(if power < next {
        format!(
            "\nPreparing increase of partition power ({power} -> {next})\n\
             Run \"swift-object-relinker relink\" on all nodes before moving on to increase_partition_power."
        )
    } else {
        format!(
            "\nIncreased partition power ({power} -> {next})\n\
             First run \"swift-ring-builder <builderfile> write_ring\" now and copy the updated .ring.gz file to all \
             nodes.\n\
             Run \"swift-object-relinker cleanup\" on all nodes before moving on to finish_increase_partition_power."
        )
    })
}

/// The devices that one search value or options describe.
pub(super) fn search(desk: &mut Desk<'_, '_>, builder: RingBuilder) -> CommandResult {
    let line = desk.device_line()?;
    let words = &line.options.words;
    if desk.words.is_empty() || words.len() > usize::from(!line.by_options) {
        return Err(desk.usage());
    }
    let wanted = match words.first() {
        Some(value) if !line.by_options => DeviceSearch::read(value)?,
        _ => line.wanted()?,
    };
    let devices = matching(&builder, &wanted);
    if devices.is_empty() {
        return Err(Stop::Refused("No matching devices found".to_owned()));
    }
    desk.terminal.put(&tables::found(&builder, &devices));
    Ok(CommandStatus::Success)
}

/// Devices that are meant, by id.
pub(crate) fn matching(builder: &RingBuilder, wanted: &DeviceSearch) -> Vec<Device> {
    builder
        .devices()
        .filter(|device| wanted.matches(device))
        .cloned()
        .collect()
}

/// The partitions that devices hold.
pub(super) fn list_parts(desk: &mut Desk<'_, '_>, builder: RingBuilder) -> CommandResult {
    let line = desk.device_line()?;
    let words = &line.options.words;
    if desk.words.is_empty() {
        return Err(desk.usage());
    }
    desk.placed(&builder)?;
    if line.by_options && !words.is_empty() {
        return Err(desk.usage());
    }
    let mut ids = Vec::new();
    let mut find = |wanted: DeviceSearch| ids.extend(matching(&builder, &wanted).iter().map(|device| device.id));
    if line.by_options || words.is_empty() {
        find(line.wanted()?);
    }
    for value in words {
        find(DeviceSearch::read(value)?);
    }
    let parts = partitions_of(&builder, &ids);
    if parts.is_empty() {
        return Err(Stop::Refused("No matching devices found".to_owned()));
    }
    desk.terminal.put(&tables::partitions(&parts));
    Ok(CommandStatus::Success)
}

/// The partitions that devices hold and how many of them do: most first, else in the order OpenStack's program meets
/// them, replica by replica.
fn partitions_of(builder: &RingBuilder, ids: &[u32]) -> Vec<(u32, u32)> {
    let most = builder.slots().count();
    let mut is_asked = vec![false; most];
    ids.iter().for_each(|id| is_asked[*id as usize] = true);
    let mut matches = vec![0u32; builder.partition_count() as usize];
    let mut met = Vec::new();
    for row in builder.assignments() {
        for ((partition, id), count) in (0u32..).zip(row).zip(&mut matches) {
            if is_asked[*id as usize] {
                if *count == 0 {
                    met.push(partition);
                }
                *count += 1;
            }
        }
    }
    let mut parts: Vec<(u32, u32)> = met.into_iter().map(|it| (it, matches[it as usize])).collect();
    parts.sort_by_key(|(_, count)| u32::MAX - count);
    parts
}

/// Whether the ring breaks a rule.
pub(super) fn validate(_: &mut Desk<'_, '_>, builder: RingBuilder) -> CommandResult {
    builder.validate().map_err(super::refusal)?;
    Ok(CommandStatus::Success)
}
