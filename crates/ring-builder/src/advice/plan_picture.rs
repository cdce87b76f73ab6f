//! The picture of a plan: the ring that its commands would make, made in memory.

use super::planned_cluster::PlannedCluster;
use super::svg;
use crate::command::{Desk, refusal};
use crate::terminal::Stop;
use placement::{Device, RingBuilder};

/// More partitions take time and change nothing that can be seen.
const LARGEST: u32 = 16;
/// Any would do: the picture is of shares, whichever partitions they are made of.
const SEED: u64 = 1;

/// Draws it into a file.
pub(super) fn save(desk: &Desk<'_, '_>, cluster: &PlannedCluster, part_power: u32, path: &str) -> Result<(), Stop> {
    let drawn = part_power.min(LARGEST);
    let mut builder = RingBuilder::new(drawn, cluster.replicas, cluster.hours).map_err(refusal)?;
    for server in &cluster.inventory.servers {
        for device in &server.devices {
            let device = Device {
                region: server.region,
                zone: server.zone,
                weight: cluster.size_of_a_drive(server),
                ip: server.address.clone(),
                device: device.clone(),
                ..Device::default()
            };
            builder.add(device).map_err(refusal)?;
        }
    }
    builder.rebalance(SEED, desk.shelf.now()).map_err(refusal)?;
    let file = desk.builder_name();
    let title = match drawn == part_power {
        true => format!("{file} as planned, with part power {part_power}"),
        false => format!("{file} as planned, with part power {part_power} (drawn with {drawn})"),
    };
    svg::save(desk, &builder, &title, &[], path)
}
