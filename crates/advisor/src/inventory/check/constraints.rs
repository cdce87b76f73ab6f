//! Constraints of an inventory, and whether they leave the workload its room.

use super::super::file::FileConstraints;
use super::super::{MOST_POWER_PER_RACK, MOST_RACKS, MOST_UNITS_PER_RACK, PurchaseInventory, Wanted};
use super::{HISTOGRAM_ERROR, Section, seconds, shown};
use vocabulary::Fault;

/// Height of a rack of which nothing is said.
const USUAL_RACK: f64 = 42.0;
/// Eleven times as much each year: more is a share that was written in percent.
const MOST_GROWTH: f64 = 10.0;

/// What is wanted.
pub fn wanted(file: &FileConstraints) -> Result<Wanted, Fault> {
    let section = Section("constraints".to_owned());
    let share = |key, value: Option<f64>, usual, range| section.share(key, value.unwrap_or(usual), range);
    let number = |key, value: Option<f64>, range| value.map(|value| section.number(key, value, range)).transpose();
    let racks = file
        .racks
        .map(|racks| section.count("racks", racks, (1, MOST_RACKS)))
        .transpose()?;
    for (key, value) in [
        ("units_per_rack", file.units_per_rack),
        ("power_per_rack", file.power_per_rack),
    ] {
        if value.is_some() && racks.is_none() {
            let why =
                format!("constraints: {key} has no effect without racks: say how many there are, or leave it out");
            return Err(Fault::caller(why));
        }
    }
    let units = file.units_per_rack.or(racks.map(|_| USUAL_RACK));
    Ok(Wanted {
        capacity: file
            .capacity
            .as_deref()
            .map(|text| section.room("capacity", text))
            .transpose()?,
        throughput: file
            .throughput
            .as_deref()
            .map(|text| section.speed("throughput", text))
            .transpose()?,
        budget: number("budget", file.budget, (0.0, super::HUGE))?,
        p99: file
            .p99
            .as_deref()
            .map(|text| section.positive("p99", text, seconds))
            .transpose()?,
        racks,
        units_per_rack: number("units_per_rack", units, (1.0, MOST_UNITS_PER_RACK))?,
        power_per_rack: number("power_per_rack", file.power_per_rack, (1.0, MOST_POWER_PER_RACK))?,
        years_to_loss: number("years_to_loss", file.years_to_loss, (0.0, 1e30))?,
        zones: section.count("zones", file.zones.unwrap_or(1), (1, 1000))?,
        growth_a_year: share("growth_a_year", file.growth_a_year, 0.0, (-0.9, MOST_GROWTH))?,
        years: section.number("years", file.years.unwrap_or(0.0), (0.0, 20.0))?,
        fill: share("fill", file.fill, 0.8, (0.01, 1.0))?,
        utilisation: share("utilisation", file.utilisation, 0.7, (0.01, 1.0))?,
        balancer_utilisation: share("balancer_utilisation", file.balancer_utilisation, 0.5, (0.01, 1.0))?,
        rebuild_share: share("rebuild_share", file.rebuild_share, 0.2, (0.001, 1.0))?,
        gateways: section.count("gateways", file.gateways.unwrap_or(2), (1, 10_000))?,
    })
}

/// What the workload says is stored fits into the capacity that is wanted.
pub fn room_for_objects(inventory: &PurchaseInventory) -> Result<(), Fault> {
    let (objects, mean) = (inventory.mix.objects, inventory.mix.mean_size());
    match inventory.wanted.capacity {
        Some(capacity) if objects * mean > capacity * (1.0 + HISTOGRAM_ERROR) => Err(Fault::caller(format!(
            "workload: objects = {objects:.0} of {} on average are {}, and constraints: capacity is {}: expected {:.0} \
             objects or fewer, other sizes, or more capacity",
            shown(mean),
            shown(objects * mean),
            shown(capacity),
            (capacity / mean).floor()
        ))),
        _ => Ok(()),
    }
}
