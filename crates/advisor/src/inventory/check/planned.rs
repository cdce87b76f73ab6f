//! Whether a `[design]` could be built of the kinds that it names.
//!
//! Always holds: a key that would have no effect is a mistake, as it says that something else was meant.

use super::super::{CatalogueServer, PlannedDesign, PurchaseInventory};
use super::FileDesign;
use vocabulary::Fault;

fn refuse(why: impl std::fmt::Display) -> Result<(), Fault> {
    Err(Fault::caller(format!("design: {why}")))
}

/// Each server has the role that it is planned for.
fn roles(planned: &PlannedDesign, inventory: &PurchaseInventory) -> Result<(), Fault> {
    let (gateway, storage) = (&inventory.servers[planned.gateway], &inventory.servers[planned.storage]);
    for (key, kind, has_role) in [
        ("gateway", gateway, gateway.is_gateway),
        ("storage", storage, storage.is_storage),
    ] {
        if !has_role {
            let has_it = |one: &&CatalogueServer| match key {
                "gateway" => one.is_gateway,
                _ => one.is_storage,
            };
            let others: Vec<&str> = inventory
                .servers
                .iter()
                .filter(has_it)
                .map(|one| one.name.as_str())
                .collect();
            return refuse(format!(
                "{key} = {:?}: its roles do not have {key:?}: expected one of {}",
                kind.name,
                others.join(", ")
            ));
        }
    }
    if planned.mixed_nodes > 0 && !storage.is_gateway {
        return refuse(format!(
            "mixed_nodes = {}: roles of {:?} do not have \"gateway\": add it there, or leave mixed_nodes out",
            planned.mixed_nodes, storage.name
        ));
    }
    Ok(())
}

/// Roles, bays and drives suffice for what the design says, and each key belongs to something.
pub fn buildable(file: &FileDesign, planned: &PlannedDesign, inventory: &PurchaseInventory) -> Result<(), Fault> {
    let storage = &inventory.servers[planned.storage];
    roles(planned, inventory)?;
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
            "drives = {} and listing_drives = {listing}: {:?} has {} bays: expected {} together or fewer, or another server",
            planned.drives, storage.name, storage.bays, storage.bays
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
