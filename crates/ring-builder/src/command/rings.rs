//! The ring file is written again; a builder is made of it; its version is printed.

use super::{CommandResult, Desk, refusal};
use crate::number::whole;
use crate::options::{Declared, Takes, long};
use crate::terminal::{CommandStatus, Stop};
use placement::{RingBuilder, RingData};
use std::fmt::Display;

/// The hours of a builder made from a ring, which does not store them.
const DEFAULT_HOURS: u32 = 24;

/// The formats a ring can be written in.
pub(super) const FORMAT: Declared = long("format-version", Takes::OneOf(&["1", "2"]), "format of the ring file");

const DECLARED: [Declared; 2] = [
    FORMAT,
    long(
        "dev-id-bytes",
        Takes::OneOf(&["2", "4"]),
        "bytes of a device id (format 2 only)",
    ),
];

/// Says which format is written when none is given.
pub(super) fn note_format(desk: &mut Desk<'_, '_>, format: Option<&str>) {
    if format.is_none() {
        desk.terminal.say(
            "Defaulting to --format-version=1. This ensures the ring\n\
             written will be readable by older versions of Swift.\n\
             In a future release, the default will change to\n\
             --format-version=2\n",
        );
    }
}

/// The ring as a file of a format; the first unless said otherwise.
pub(super) fn encode(builder: &RingBuilder, format: Option<&str>) -> Result<Vec<u8>, Stop> {
    let ring = builder.to_ring().map_err(refusal)?;
    match format {
        Some("2") => Ok(ring.to_bytes_v2()),
        _ => ring.to_bytes_v1().map_err(|error| Stop::Refused(error.to_string())),
    }
}

/// Writes the ring.
pub(super) fn write_ring(desk: &mut Desk<'_, '_>, builder: RingBuilder) -> CommandResult {
    let options = desk.options(&DECLARED)?;
    let format = options.text("format-version");
    note_format(desk, format);
    if !builder.ever_rebalanced() {
        return Err(Stop::Refused("Unable to write empty ring.".to_owned()));
    }
    // The width is for this file only: the builder keeps its own.
    let mut written = builder.clone();
    match options.text("dev-id-bytes") {
        Some("4") if format != Some("2") => {
            return Err(Stop::Refused("Ring v1 only supports 2-byte dev IDs".to_owned()));
        }
        Some(width) => written
            .set_dev_id_bytes(if width == "4" { 4 } else { 2 })
            .map_err(refusal)?,
        None => {}
    }
    let bytes = encode(&written, format)?;
    desk.shelf.save_ring(&bytes)?;
    Ok(CommandStatus::Success)
}

/// Makes a builder of the ring.
pub(super) fn write_builder(desk: &mut Desk<'_, '_>, builder: Option<RingBuilder>) -> CommandResult {
    if builder.is_some() {
        let name = desk.builder_name();
        let why = format!("Cowardly refusing to overwrite existing Ring Builder file: {name}");
        return Err(Stop::Refused(why));
    }
    let hours = match desk.words {
        [] => {
            desk.terminal
                .warn("WARNING: default min_part_hours may not match the value in the lost builder.\n");
            DEFAULT_HOURS
        }
        [hours, ..] => {
            let hours = whole(hours)?;
            let refuse = |_| Stop::Refused(format!("min_part_hours must be non-negative (was {hours})"));
            u32::try_from(hours).map_err(refuse)?
        }
    };
    let (ring, _) = ring_file(desk)?;
    let mut builder = RingBuilder::from_ring(&ring, hours).map_err(refusal)?;
    desk.shelf.save(&mut builder)?;
    Ok(CommandStatus::Success)
}

/// Tells what the ring file is.
pub(super) fn version(desk: &mut Desk<'_, '_>, _: Option<RingBuilder>) -> CommandResult {
    let (ring, format) = ring_file(desk)?;
    let name = desk.shelf.files().ring.display();
    let build = ring.version().map_or("None".to_owned(), |it| it.to_string());
    let width = ring.dev_id_bytes();
    desk.terminal.say(format_args!(
        "{name}: Serialization version: {format} ({width}-byte IDs), build version: {build}"
    ));
    Ok(CommandStatus::Success)
}

/// The ring and its format.
fn ring_file(desk: &Desk<'_, '_>) -> Result<(RingData, u16), Stop> {
    let name = desk.shelf.files().ring.display();
    let refuse = |why: &dyn Display| Stop::Refused(format!("{name}: {why}"));
    let Some(bytes) = desk.shelf.read_ring_bytes().map_err(|error| refuse(&error))? else {
        return Err(Stop::Refused(format!("Ring file does not exist: {name}")));
    };
    let ring = RingData::from_bytes(&bytes).map_err(|error| refuse(&error))?;
    let format = RingData::format_of(&bytes).map_err(|error| refuse(&error))?;
    Ok((ring, format))
}
