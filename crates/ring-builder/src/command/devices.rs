//! Devices come, go and change. Partitions move with the next rebalance.

use super::show::matching;
use super::{CommandResult, Desk, refusal};
use crate::add_value::Added;
use crate::change_value;
use crate::describe::describe;
use crate::device_options::{DeviceLine, as_place};
use crate::number::{decimal, float, whole};
use crate::search_value::DeviceSearch;
use crate::terminal::{CommandStatus, Stop};
use placement::builder::Change;
use placement::{Device, RingBuilder};
use vocabulary::Fault;

const UNCHANGED: &str = "The on-disk ring builder is unchanged.";

/// Adds devices.
pub(super) fn add(desk: &mut Desk<'_, '_>, mut builder: RingBuilder) -> CommandResult {
    if desk.words.len() < 2 {
        return Err(desk.usage());
    }
    not_while_power_grows(&builder, "adding devices")?;
    let line = desk.device_line()?;
    let unchanged = |why: Fault| Stop::Refused(format!("{why}\n{UNCHANGED}"));
    let devices = if line.by_options {
        if !line.options.words.is_empty() {
            return Err(desk.usage());
        }
        vec![line.device().map_err(unchanged)?]
    } else {
        read_values(desk, &line.options.words)?
    };
    for mut device in devices {
        device.id = builder.add(device.clone()).map_err(|error| match refusal(error) {
            // OpenStack's program leaves a line empty here.
            Stop::Refused(why) => Stop::Refused(format!("{why}\n{UNCHANGED}\n")),
            other => other,
        })?;
        let (device, id, weight) = (describe(&device), device.id, decimal(device.weight));
        desk.terminal
            .say(format_args!("Device {device} with {weight} weight got id {id}"));
    }
    desk.shelf.save(&mut builder)?;
    Ok(CommandStatus::Success)
}

/// Pairs of an add value and a weight.
fn read_values(desk: &mut Desk<'_, '_>, words: &[String]) -> Result<Vec<Device>, Stop> {
    if words.is_empty() || !words.len().is_multiple_of(2) {
        return Err(desk.usage());
    }
    let unchanged = |why: Fault| Stop::Refused(format!("{why}\n{UNCHANGED}"));
    let mut devices = Vec::new();
    for pair in words.chunks_exact(2) {
        let Added { mut device, no_region } = Added::read(&pair[0]).map_err(unchanged)?;
        if no_region {
            let value = &pair[0];
            desk.terminal.warn(format_args!(
                "WARNING: No region specified for {value}. Defaulting to region 1.\n"
            ));
        }
        device.weight = float(&pair[1]).map_err(unchanged)?;
        devices.push(device);
    }
    Ok(devices)
}

/// Devices come and go only while all servers agree on the partitions.
fn not_while_power_grows(builder: &RingBuilder, doing: &str) -> Result<(), Stop> {
    if builder.next_part_power().is_none() {
        return Ok(());
    }
    Err(Stop::Refused(format!(
        "Partition power increase in progress. You need \nto finish the increase first before {doing}."
    )))
}

/// Marks devices for removal.
pub(super) fn remove(desk: &mut Desk<'_, '_>, mut builder: RingBuilder) -> CommandResult {
    let line = desk.device_line()?;
    let words = &line.options.words;
    // OpenStack's program takes `remove --yes` without any value for all devices; that is never meant.
    if words.is_empty() != line.by_options {
        return Err(desk.usage());
    }
    not_while_power_grows(&builder, "removing devices")?;
    let mut devices = Vec::new();
    if line.by_options {
        devices.extend(matching(&builder, &line.wanted()?));
    }
    for value in words {
        devices.extend(matching(&builder, &DeviceSearch::read(value)?));
    }
    let question = format!(
        "Are you sure you want to remove these {} devices? (y/N) ",
        devices.len()
    );
    confirm(desk, &line, &devices, &question, "Aborting device removals")?;
    for device in devices {
        builder.remove(device.id).map_err(refusal)?;
        let device = describe(&device);
        desk.terminal.say(format_args!(
            "{device} marked for removal and will be removed next rebalance."
        ));
    }
    desk.shelf.save(&mut builder)?;
    Ok(CommandStatus::Success)
}

/// Asks before more than one device changes.
fn confirm(
    desk: &mut Desk<'_, '_>,
    line: &DeviceLine,
    devices: &[Device],
    question: &str,
    no: &str,
) -> Result<(), Stop> {
    if devices.is_empty() {
        return Err(Stop::Refused(format!("Search value matched 0 devices.\n{UNCHANGED}")));
    }
    if devices.len() == 1 {
        return Ok(());
    }
    desk.terminal.say("Matched more than one device:");
    for device in devices {
        desk.terminal.say(format_args!("    {}", describe(device)));
    }
    if line.yes || desk.terminal.agrees(question) {
        return Ok(());
    }
    Err(Stop::Refused(no.to_owned()))
}

/// What `set_weight`, `set_region`, `set_zone` and `set_info` have in common: a value and the devices that get it.
fn set<V>(
    desk: &mut Desk<'_, '_>,
    builder: &mut RingBuilder,
    what: &str,
    pairs: Vec<(DeviceSearch, V)>,
    line: &DeviceLine,
    mut put: impl FnMut(&mut RingBuilder, &Device, &V) -> Result<String, Stop>,
) -> CommandResult {
    for (wanted, value) in pairs {
        let devices = matching(builder, &wanted);
        let count = devices.len();
        let question = format!("Are you sure you want to update the {what} for these {count} devices? (y/N) ");
        confirm(desk, line, &devices, &question, "Aborting device modifications")?;
        for device in devices {
            let done = put(builder, &device, &value)?;
            desk.terminal.say(done);
        }
    }
    desk.shelf.save(builder)?;
    Ok(CommandStatus::Success)
}

/// Search values and values in turn, or options and one value.
fn pairs<V>(
    desk: &Desk<'_, '_>,
    line: &DeviceLine,
    read: impl Fn(&str) -> Result<V, Fault>,
) -> Result<Vec<(DeviceSearch, V)>, Stop> {
    let words = &line.options.words;
    if line.by_options {
        let [value] = &words[..] else { return Err(desk.usage()) };
        return Ok(vec![(line.wanted()?, read(value)?)]);
    }
    if words.is_empty() || !words.len().is_multiple_of(2) {
        return Err(desk.usage());
    }
    let pairs = words.chunks_exact(2);
    Ok(pairs
        .map(|pair| Ok((DeviceSearch::read(&pair[0])?, read(&pair[1])?)))
        .collect::<Result<_, Fault>>()?)
}

/// Sets weights.
pub(super) fn set_weight(desk: &mut Desk<'_, '_>, mut builder: RingBuilder) -> CommandResult {
    let line = desk.device_line()?;
    let pairs = pairs(desk, &line, float)?;
    set(desk, &mut builder, "weight", pairs, &line, |builder, device, weight| {
        builder.set_weight(device.id, *weight).map_err(refusal)?;
        Ok(format!("{} weight set to {}", describe(device), decimal(*weight)))
    })
}

/// Sets regions.
pub(super) fn set_region(desk: &mut Desk<'_, '_>, mut builder: RingBuilder) -> CommandResult {
    let line = desk.device_line()?;
    let pairs = pairs(desk, &line, |text| as_place(whole(text)?, "region"))?;
    set(
        desk,
        &mut builder,
        "region",
        pairs,
        &line,
        |builder, device, &region| {
            builder.set_region(device.id, region).map_err(refusal)?;
            let device = Device {
                region,
                ..device.clone()
            };
            Ok(format!("{} region set to {region}", describe(&device)))
        },
    )
}

/// Sets zones.
pub(super) fn set_zone(desk: &mut Desk<'_, '_>, mut builder: RingBuilder) -> CommandResult {
    let line = desk.device_line()?;
    let pairs = pairs(desk, &line, |text| as_place(whole(text)?, "zone"))?;
    set(desk, &mut builder, "zone", pairs, &line, |builder, device, &zone| {
        builder.set_zone(device.id, zone).map_err(refusal)?;
        let device = Device { zone, ..device.clone() };
        Ok(format!("{} zone set to {zone}", describe(&device)))
    })
}

/// Sets where devices are reached, their names and remarks.
pub(super) fn set_info(desk: &mut Desk<'_, '_>, mut builder: RingBuilder) -> CommandResult {
    let line = desk.device_line()?;
    if desk.words.len() < 2 || (!line.by_options && line.changes()) {
        return Err(desk.usage());
    }
    let pairs = if line.by_options {
        if !line.options.words.is_empty() {
            return Err(desk.usage());
        }
        vec![(line.wanted()?, line.change()?)]
    } else {
        pairs(desk, &line, change_value::read)?
    };
    set(
        desk,
        &mut builder,
        "info",
        pairs,
        &line,
        |builder, device, change: &Change| {
            builder.set_info(device.id, change.clone()).map_err(refusal)?;
            let after = builder.device(device.id).map(describe).unwrap_or_default();
            Ok(format!("Device {} is now {after}", describe(device)))
        },
    )
}
