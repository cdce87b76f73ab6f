//! The partition power grows by one, in steps between which objects are relinked on all nodes.

use super::{CommandResult, Desk, refusal};
use crate::terminal::{CommandStatus, Stop};
use placement::RingBuilder;

/// Announces it.
pub(super) fn prepare(desk: &mut Desk<'_, '_>, mut builder: RingBuilder) -> CommandResult {
    // Containers and accounts have no relinker.
    if !desk.shelf.files().ring_name().contains("object") {
        let why = "Partition power increase is only supported for object rings.";
        return Err(Stop::Refused(why.to_owned()));
    }
    if !builder.prepare_increase_partition_power().map_err(refusal)? {
        let why = "Ring is already prepared for partition power increase.";
        return Err(Stop::Refused(why.to_owned()));
    }
    desk.shelf
        .provide_memory(builder.part_power() + 1, builder.replicas())?;
    desk.terminal.say(format_args!(
        "The next partition power is now {}.\n\
         The change will take effect after the next write_ring.\n\
         Ensure your proxy-servers, object-replicators and \n\
         reconstructors are using the changed rings and relink \n\
         (using swift-object-relinker) your existing data\n\
         before the partition power increase",
        builder.next_part_power().unwrap_or_default()
    ));
    desk.shelf.save(&mut builder)?;
    Ok(CommandStatus::Success)
}

/// Does it.
pub(super) fn increase(desk: &mut Desk<'_, '_>, mut builder: RingBuilder) -> CommandResult {
    desk.shelf
        .provide_memory(builder.part_power() + 1, builder.replicas())?;
    if !builder.increase_partition_power().map_err(refusal)? {
        return Err(Stop::Refused(
            "Ring partition power cannot be increased. Either the ring\n\
             was not prepared yet, or this operation has already run."
                .to_owned(),
        ));
    }
    desk.terminal.say(format_args!(
        "The partition power is now {}.\nThe change will take effect after the next write_ring.",
        builder.part_power()
    ));
    desk.shelf.save(&mut builder)?;
    Ok(CommandStatus::Success)
}

/// Takes the announcement back.
pub(super) fn cancel(desk: &mut Desk<'_, '_>, mut builder: RingBuilder) -> CommandResult {
    if !builder.cancel_increase_partition_power() {
        let why = "Ring partition power increase cannot be canceled.";
        return Err(Stop::Refused(why.to_owned()));
    }
    desk.terminal.say(format_args!(
        "The next partition power is now {}.\n\
         The change will take effect after the next write_ring.\n\
         Ensure your object-servers are using the changed rings and\n\
         cleanup (using swift-object-relinker) the hard links",
        builder.next_part_power().unwrap_or_default()
    ));
    desk.shelf.save(&mut builder)?;
    Ok(CommandStatus::Success)
}

/// Ends it.
pub(super) fn finish(desk: &mut Desk<'_, '_>, mut builder: RingBuilder) -> CommandResult {
    if !builder.finish_increase_partition_power() {
        let why = "Ring partition power increase cannot be finished.";
        return Err(Stop::Refused(why.to_owned()));
    }
    desk.terminal
        .say("The change will take effect after the next write_ring.");
    desk.shelf.save(&mut builder)?;
    Ok(CommandStatus::Success)
}
