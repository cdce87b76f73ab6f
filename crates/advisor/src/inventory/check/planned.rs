//! Whether a `[design]` could be built of the kinds that it names.
//!
//! Always holds: a key that would have no effect is a mistake, as it says that something else was meant.

use super::super::{PlannedDesign, PurchaseInventory};
use super::FileDesign;
use vocabulary::Fault;

/// Roles, bays and drives suffice for what the design says, and each key belongs to something.
pub fn buildable(file: &FileDesign, planned: &PlannedDesign, inventory: &PurchaseInventory) -> Result<(), Fault> {
    let refuse = |why: String| Err(Fault::caller(format!("design: {why}")));
    let (gateway, storage) = (&inventory.servers[planned.gateway], &inventory.servers[planned.storage]);
    for (key, kind, has_role) in [
        ("gateway", gateway, gateway.is_gateway),
        ("storage", storage, storage.is_storage),
    ] {
        if !has_role {
            return refuse(format!("{key} = {:?}: its roles do not have {key:?}", kind.name));
        }
    }
    for (key, is_there, other, other_is_there) in [
        (
            "listing_drives",
            file.listing_drives.is_some(),
            "listing_drive",
            file.listing_drive.is_some(),
        ),
        (
            "balancers",
            file.balancers.is_some(),
            "balancer",
            file.balancer.is_some(),
        ),
        (
            "mixed_weight",
            file.mixed_weight.is_some(),
            "mixed_nodes",
            file.mixed_nodes > 0,
        ),
    ] {
        if is_there && !other_is_there {
            return refuse(format!(
                "{key} has no effect without {other}: say which, or leave it out"
            ));
        }
    }
    let listing = planned.listing_drive.map_or(0, |(_, count)| count);
    if planned.drives + listing > storage.bays {
        return refuse(format!(
            "drives = {} and listing_drives = {listing}: {:?} has {} bays",
            planned.drives, storage.name, storage.bays
        ));
    }
    let is_flash = |(kind, _): (usize, u32)| inventory.drives[kind].is_flash;
    if planned.index_on_flash && !planned.listing_drive.is_some_and(is_flash) {
        return refuse(
            "index_on_flash = true: expected a listing_drive of kind flash, which the index lies on".to_owned(),
        );
    }
    let (pieces, drives) = (
        inventory.protections[planned.protection].pieces(),
        planned.drives * planned.storage_nodes,
    );
    if pieces > drives {
        return refuse(format!(
            "an object has {pieces} pieces, and there are {drives} drives in all: expected a drive for each piece"
        ));
    }
    Ok(())
}
