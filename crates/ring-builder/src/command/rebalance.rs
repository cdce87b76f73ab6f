//! Partitions move: the builder and the ring are written, with backups of both.

use super::rings::{FORMAT, encode, note_format};
use super::show::NO_DEVICES;
use super::{CommandResult, Desk};
use crate::number::{decimal, duration, fixed};
use crate::options::{Declared, Takes, option};
use crate::terminal::{CommandStatus, Stop};
use placement::{BuilderError, RingBuilder};

/// A ring whose worst device is no farther off than this (percent) is balanced.
const BALANCED: f64 = 5.0;
/// A change of balance or dispersion below this (percent) is not worth bringing a ring to all nodes.
const WORTH_IT: f64 = 1.0;
/// The balance of a device that should be empty and is not: a number that says nothing about how much is left.
const MEANINGLESS: f64 = 999.99;

const RULE: &str = "-------------------------------------------------------------------------------";

const DECLARED: [Declared; 4] = [
    option(
        'f',
        "force",
        Takes::Nothing,
        "save the ring even if less than 1% of it changed",
    ),
    option('s', "seed", Takes::Text, "the same seed places the same way again"),
    option('d', "debug", Takes::Nothing, "accepted; there is nothing more to print"),
    FORMAT,
];

/// What a rebalance did.
struct Change {
    parts: u64,
    removed: usize,
    devices_changed: bool,
    balance_before: f64,
    balance: f64,
    dispersion_before: f64,
    dispersion: f64,
}

impl Change {
    /// Whether the new ring is worth its way to all nodes.
    fn is_worth_it(&self) -> bool {
        self.devices_changed
            || (self.balance - self.balance_before).abs() >= WORTH_IT
            || (self.balance == MEANINGLESS && self.balance_before == MEANINGLESS)
            || (self.dispersion - self.dispersion_before).abs() >= WORTH_IT
    }
}

/// Moves partitions.
pub(super) fn rebalance(desk: &mut Desk<'_, '_>, mut builder: RingBuilder) -> CommandResult {
    let options = desk.options(&DECLARED)?;
    note_format(desk, options.text("format-version"));
    if builder.next_part_power().is_some() {
        return Err(Stop::Refused(
            "Partition power increase in progress.\nYou need to finish the increase first before rebalancing."
                .to_owned(),
        ));
    }
    let seed = options.text("seed").or(options.words.first().map(String::as_str));
    let seed = seed.map_or_else(|| desk.shelf.dice(), as_seed);
    let now = desk.shelf.now();
    let seconds_left = builder.min_part_seconds_left(now);
    let change = apply(&mut builder, seed, now)?;
    let force = options.has("force");
    if change.parts == 0 && change.removed == 0 && !force {
        let why = nothing_moves(&builder, seconds_left);
        desk.terminal
            .say(format_args!("No partitions could be reassigned.\n{why}"));
        return Ok(CommandStatus::Warning);
    }
    if !force && !change.is_worth_it() {
        desk.terminal
            .say("Cowardly refusing to save rebalance as it did not change at least 1%.");
        return Ok(CommandStatus::Warning);
    }
    let bytes = encode(&builder, options.text("format-version"))?;
    let status = tell(desk, &builder, &change);
    // The builder first: a ring that no builder knows could not be continued.
    desk.shelf.save_with_backup(&mut builder)?;
    desk.shelf.save_ring(&bytes)?;
    Ok(status)
}

/// Any text may be a seed.
fn as_seed(text: &str) -> u64 {
    // FNV-1a: the same on every machine, and good enough to tell texts apart.
    let number = text.parse().ok();
    number.unwrap_or_else(|| {
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    })
}

fn apply(builder: &mut RingBuilder, seed: u64, now: i64) -> Result<Change, Stop> {
    let devices_changed = builder.devices_changed();
    let (balance_before, dispersion_before) = (builder.balance().unwrap_or(0.0), builder.dispersion());
    let done = builder.rebalance(seed, now).map_err(|error| boxed(&error))?;
    builder.validate().map_err(|error| boxed(&error))?;
    Ok(Change {
        parts: done.moved,
        removed: done.removed,
        devices_changed,
        balance_before,
        balance: builder.balance().unwrap_or(0.0),
        dispersion_before,
        dispersion: builder.dispersion(),
    })
}

/// An impossible rebalance, in OpenStack's frame.
fn boxed(error: &BuilderError) -> Stop {
    let why = match error {
        BuilderError::NoDevices | BuilderError::TooFewDevices { devices: 0, .. } => NO_DEVICES.to_owned(),
        BuilderError::TooFewDevices { replicas, devices } => {
            format!(
                "Replica count of {} requires more than {devices} devices",
                decimal(*replicas)
            )
        }
        other => other.to_string(),
    };
    Stop::Refused(format!(
        "{RULE}\n\
         An error has occurred during ring validation. Common\n\
         causes of failure are rings that are empty or do not\n\
         have enough devices to accommodate the replica count.\n\
         Original exception message:\n {why}\n{RULE}"
    ))
}

fn nothing_moves(builder: &RingBuilder, seconds_left: i64) -> String {
    match seconds_left {
        0 => "There is no need to do so at this time".to_owned(),
        left => format!(
            "The time between rebalances must be at least min_part_hours: {} hours ({} remaining)",
            builder.min_part_hours(),
            duration(left)
        ),
    }
}

/// Says what was done and what remains.
fn tell(desk: &mut Desk<'_, '_>, builder: &RingBuilder, change: &Change) -> CommandStatus {
    let percent = 100.0 * change.parts as f64 / f64::from(builder.partition_count());
    let balance = fixed(change.balance, 2);
    let terminal = &mut *desk.terminal;
    terminal.say(format_args!(
        "Reassigned {} ({}%) partitions. Balance is now {balance}.  Dispersion is now {}",
        change.parts,
        fixed(percent, 2),
        fixed(change.dispersion, 2),
    ));
    if change.dispersion > 0.0 {
        let dispersion = fixed(change.dispersion, 6);
        terminal.say(format_args!(
            "{RULE}\n\
             NOTE: Dispersion of {dispersion} indicates some parts are not\n      \
             optimally dispersed.\n\n      \
             You may want to adjust some device weights, increase\n      \
             the overload or review the dispersion report.\n{RULE}"
        ));
        return CommandStatus::Warning;
    }
    if change.balance > BALANCED && change.balance / 100.0 > builder.overload() {
        terminal.say(format_args!(
            "{RULE}\n\
             NOTE: Balance of {balance} indicates you should push this \n      \
             ring, wait at least {} hours, and rebalance/repush.\n{RULE}",
            builder.min_part_hours()
        ));
        return CommandStatus::Warning;
    }
    CommandStatus::Success
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_changes_are_not_worth_it() {
        let change = |balance, before, dispersion, devices_changed| Change {
            parts: 1,
            removed: 0,
            devices_changed,
            balance_before: before,
            balance,
            dispersion_before: 0.0,
            dispersion,
        };
        assert!(!change(10.0, 10.99, 0.99, false).is_worth_it());
        assert!(change(10.0, 11.0, 0.0, false).is_worth_it());
        assert!(change(10.0, 10.0, 1.0, false).is_worth_it());
        assert!(change(10.0, 10.0, 0.0, true).is_worth_it());
        assert!(change(999.99, 999.99, 0.0, false).is_worth_it());
    }

    #[test]
    fn any_text_is_a_seed() {
        assert_eq!(as_seed("42"), 42);
        assert_eq!(as_seed("x"), as_seed("x"));
        assert_ne!(as_seed("x"), as_seed("y"));
    }
}
