//! A new builder, and the settings of one that exists.

use super::{CommandResult, Desk, refusal};
use crate::number::{fixed, float, whole};
use crate::terminal::{CommandStatus, Stop};
use placement::RingBuilder;
use pythonic::quoted;

/// OpenStack's program takes part powers up to this, and runs out of memory at the last.
const MOST_POWER: i64 = 32;
/// Above this an overload is probably meant as percent.
const ALL: f64 = 1.0;

/// Makes a builder, in place of one that is there.
pub(super) fn create(desk: &mut Desk<'_, '_>, _: Option<RingBuilder>) -> CommandResult {
    let [power, replicas, hours, ..] = desk.words else {
        return Err(desk.usage());
    };
    let (power, replicas, hours) = (whole(power)?, float(replicas)?, whole(hours)?);
    let refuse = |why: String| Err(Stop::Refused(why));
    if power > MOST_POWER {
        return refuse(format!("part_power must be at most {MOST_POWER} (was {power})"));
    }
    let Ok(part_power) = u32::try_from(power) else {
        return refuse(format!("part_power must be at least 0 (was {power})"));
    };
    if replicas.is_nan() || replicas < 1.0 {
        return refuse(format!("replicas must be at least 1 (was {})", fixed(replicas, 6)));
    }
    let hours = as_hours(hours)?;
    let mut builder = RingBuilder::new(part_power, replicas, hours).map_err(refusal)?;
    desk.shelf.provide_memory(part_power, replicas)?;
    desk.shelf.save_with_backup(&mut builder)?;
    Ok(CommandStatus::Success)
}

fn as_hours(hours: i64) -> Result<u32, Stop> {
    u32::try_from(hours).map_err(|_| {
        Stop::Refused(if hours < 0 {
            format!("min_part_hours must be non-negative (was {hours})")
        } else {
            format!("min_part_hours must be at most {} (was {hours})", u32::MAX)
        })
    })
}

/// Sets how long partitions stay.
pub(super) fn set_min_part_hours(desk: &mut Desk<'_, '_>, mut builder: RingBuilder) -> CommandResult {
    let [hours, ..] = desk.words else {
        return Err(desk.usage());
    };
    let hours = as_hours(whole(hours)?)?;
    builder.set_min_part_hours(hours);
    desk.terminal.say(format_args!(
        "The minimum number of hours before a partition can be reassigned is now set to {hours}"
    ));
    desk.shelf.save(&mut builder)?;
    Ok(CommandStatus::Success)
}

/// Sets the number of replicas.
pub(super) fn set_replicas(desk: &mut Desk<'_, '_>, mut builder: RingBuilder) -> CommandResult {
    let [text, ..] = desk.words else {
        return Err(desk.usage());
    };
    let Some(replicas) = float(text).ok().filter(|it| it.is_finite()) else {
        return Err(not_a_number(desk, &format!("\"{text}\"")));
    };
    if replicas < 1.0 {
        return Err(Stop::Refused("Replica count must be at least 1.".to_owned()));
    }
    builder.set_replicas(replicas).map_err(refusal)?;
    desk.shelf.provide_memory(builder.part_power(), replicas)?;
    desk.terminal.say(format_args!(
        "The replica count is now {}.\nThe change will take effect after the next rebalance.",
        fixed(replicas, 6)
    ));
    desk.shelf.save(&mut builder)?;
    Ok(CommandStatus::Success)
}

fn not_a_number(desk: &Desk<'_, '_>, shown: &str) -> Stop {
    match desk.usage() {
        Stop::Usage(text) => Stop::Usage(format!("{text}{shown} is not a valid number.\n")),
        other => other,
    }
}

/// Sets how much more than its share a device may take.
pub(super) fn set_overload(desk: &mut Desk<'_, '_>, mut builder: RingBuilder) -> CommandResult {
    let [text, ..] = desk.words else {
        return Err(desk.usage());
    };
    let (number, percent) = match text.trim_end_matches('%') {
        bare if bare.len() < text.len() => (bare, true),
        bare => (bare, false),
    };
    let Some(number) = float(number).ok().filter(|it| it.is_finite()) else {
        return Err(not_a_number(desk, &quoted(text)));
    };
    let overload = if percent { number / 100.0 } else { number };
    builder.set_overload(overload).map_err(refusal)?;
    let suspicious = !percent && overload > ALL;
    if suspicious {
        desk.terminal.say("!?! Warning overload is greater than 100% !?!");
    }
    desk.terminal.say(format_args!(
        "The overload factor is now {}% ({})\nThe change will take effect after the next rebalance.",
        fixed(overload * 100.0, 2),
        fixed(overload, 6)
    ));
    desk.shelf.save(&mut builder)?;
    Ok(if suspicious {
        CommandStatus::Warning
    } else {
        CommandStatus::Success
    })
}

/// Lets everything move in the next rebalance.
pub(super) fn pretend_min_part_hours_passed(desk: &mut Desk<'_, '_>, mut builder: RingBuilder) -> CommandResult {
    builder.pretend_min_part_hours_passed();
    desk.shelf.save(&mut builder)?;
    Ok(CommandStatus::Success)
}
