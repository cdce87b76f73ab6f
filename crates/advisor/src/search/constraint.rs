//! The constraints of an inventory: what each is called, what it is, how it is loosened.
//!
//! Always holds: a loosened constraint never asks for more than before.

use crate::inventory::{MOST_POWER_PER_RACK, MOST_RACKS, MOST_UNITS_PER_RACK, Wanted};
use crate::model::estimate::readable;
use serde::Serialize;

/// A constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// Bytes of objects.
    Capacity,
    /// Bytes a second.
    Throughput,
    /// Money.
    Budget,
    /// Seconds.
    P99,
    /// Their number.
    Racks,
    /// Height of one rack.
    UnitsPerRack,
    /// Watts of one rack.
    PowerPerRack,
    /// Years.
    YearsToLoss,
    /// Places that fail by themselves.
    Zones,
    /// Their least number.
    Gateways,
    /// For how many years it must suffice while it grows.
    Years,
}

/// All of them, in the order in which they are left out: what a user can change least easily stays longest.
pub const ALL: [Constraint; 11] = [
    Constraint::Zones,
    Constraint::Gateways,
    Constraint::YearsToLoss,
    Constraint::P99,
    Constraint::Years,
    Constraint::PowerPerRack,
    Constraint::UnitsPerRack,
    Constraint::Racks,
    Constraint::Throughput,
    Constraint::Capacity,
    Constraint::Budget,
];

impl Constraint {
    /// The key in the inventory.
    pub fn key(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::Throughput => "throughput",
            Self::Budget => "budget",
            Self::P99 => "p99",
            Self::Racks => "racks",
            Self::UnitsPerRack => "units_per_rack",
            Self::PowerPerRack => "power_per_rack",
            Self::YearsToLoss => "years_to_loss",
            Self::Zones => "zones",
            Self::Gateways => "gateways",
            Self::Years => "years",
        }
    }

    /// What it is; none where it does not matter.
    pub fn value(self, wanted: &Wanted) -> Option<f64> {
        match self {
            Self::Capacity => wanted.capacity,
            Self::Throughput => wanted.throughput,
            Self::Budget => wanted.budget,
            Self::P99 => wanted.p99,
            Self::Racks => wanted.racks.map(f64::from),
            Self::UnitsPerRack => wanted.units_per_rack,
            Self::PowerPerRack => wanted.power_per_rack,
            Self::YearsToLoss => wanted.years_to_loss,
            Self::Zones => Some(f64::from(wanted.zones)).filter(|zones| *zones > 1.0),
            Self::Gateways => Some(f64::from(wanted.gateways)).filter(|gateways| *gateways > 1.0),
            Self::Years => Some(wanted.years).filter(|years| *years * wanted.growth_a_year > 0.0),
        }
    }

    /// Gives it a value; none leaves it out.
    pub fn set(self, wanted: &mut Wanted, value: Option<f64>) {
        let count = |value: Option<f64>| value.map_or(1, |count| count.max(1.0) as u32);
        match self {
            Self::Capacity => wanted.capacity = value,
            Self::Throughput => wanted.throughput = value,
            Self::Budget => wanted.budget = value,
            Self::P99 => wanted.p99 = value,
            Self::Racks => wanted.racks = value.map(|racks| racks as u32),
            Self::UnitsPerRack => wanted.units_per_rack = value,
            Self::PowerPerRack => wanted.power_per_rack = value,
            Self::YearsToLoss => wanted.years_to_loss = value,
            Self::Zones => wanted.zones = count(value),
            Self::Gateways => wanted.gateways = count(value),
            Self::Years => wanted.years = value.unwrap_or(0.0),
        }
    }

    /// A value with its unit.
    pub fn shown(self, value: f64) -> String {
        match self {
            Self::Capacity => format!("{} TB", readable(value / 1e12)),
            Self::Throughput => format!("{} MB/s", readable(value / 1e6)),
            Self::P99 => format!("{} ms", readable(value * 1e3)),
            Self::PowerPerRack => format!("{:.0} W", value.ceil()),
            Self::Budget => format!("{:.0}", value.ceil()),
            Self::UnitsPerRack | Self::Racks | Self::Zones | Self::Gateways => format!("{value:.0}"),
            Self::YearsToLoss if value >= 1e7 => format!("{value:.2e}"),
            Self::YearsToLoss => readable(value),
            Self::Years => format!("{}", (value * 100.0).floor() / 100.0),
        }
    }

    /// A value that is enough, with its unit. What is left out of its digits makes it looser, so that what is shown is
    /// enough as well.
    pub fn shown_enough(self, value: f64) -> String {
        let counted = matches!(
            self,
            Self::Budget | Self::Racks | Self::UnitsPerRack | Self::Zones | Self::Gateways | Self::Years
        );
        if counted || value <= 0.0 || !value.is_finite() {
            return self.shown(value);
        }
        let unit = match self {
            Self::Capacity => 1e12,
            Self::Throughput => 1e6,
            Self::P99 => 1e-3,
            _ => 1.0,
        };
        let scaled = value / unit;
        // As many digits as are shown.
        let digits = match self {
            Self::YearsToLoss | Self::PowerPerRack => 2.0,
            _ if (0.1..1.0).contains(&scaled) || scaled >= 1e7 => 1.0,
            _ => 2.0,
        };
        let step = 10f64.powf(scaled.log10().floor() - digits);
        let (steps, rounding) = (scaled / step, 1e-9);
        let rounded = match self.asks() {
            true => (steps + rounding).floor(),
            false => (steps - rounding).ceil(),
        };
        self.shown(rounded * step * unit)
    }

    /// Whether more of it is harder.
    pub fn asks(self) -> bool {
        matches!(
            self,
            Self::Capacity | Self::Throughput | Self::YearsToLoss | Self::Zones | Self::Gateways | Self::Years
        )
    }

    /// The value, loosened by a factor.
    pub fn loosened(self, value: f64, factor: f64) -> f64 {
        match (self, self.asks()) {
            (Self::Zones | Self::Gateways, _) => (value / factor).floor().max(1.0),
            // No more than an inventory may say.
            (Self::Racks, _) => (value * factor).ceil().min(f64::from(MOST_RACKS)),
            (Self::UnitsPerRack, _) => (value * factor).ceil().min(MOST_UNITS_PER_RACK),
            (Self::PowerPerRack, _) => (value * factor).min(MOST_POWER_PER_RACK),
            (_, true) => value / factor,
            // No multiple of nothing is more than nothing.
            (_, false) => value.max(1e-9) * factor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, Constraint};
    use crate::inventory::tests::starter;

    #[test]
    fn each_is_set_left_out_and_loosened() {
        let mut wanted = starter().wanted;
        wanted.gateways = 4;
        for constraint in ALL {
            let now = constraint.value(&wanted).unwrap();
            let looser = constraint.loosened(now, 2.0);
            assert!(
                if constraint.asks() { looser < now } else { looser > now },
                "{constraint:?}"
            );
            let mut changed = wanted.clone();
            constraint.set(&mut changed, Some(looser));
            assert_eq!(constraint.value(&changed), Some(looser), "{constraint:?}");
            assert!(constraint.shown(looser) != constraint.shown(now), "{constraint:?}");
            constraint.set(&mut changed, None);
            assert_eq!(constraint.value(&changed), None, "{constraint:?}");
        }
        // Digits that are not shown never make it stricter.
        for (constraint, value, shown) in [
            (Constraint::P99, 0.025_741, "25.8 ms"),
            (Constraint::P99, 0.025_7, "25.7 ms"),
            (Constraint::P99, 0.000_123_4, "0.13 ms"),
            (Constraint::Capacity, 512.7e12, "512 TB"),
            (Constraint::Throughput, 9.999e6, "9.99 MB/s"),
            (Constraint::YearsToLoss, 3.279e7, "3.27e7"),
            (Constraint::PowerPerRack, 8001.2, "8010 W"),
            (Constraint::Budget, 109_523.2, "109524"),
            (Constraint::Years, 1.239, "1.23"),
        ] {
            assert_eq!(constraint.shown_enough(value), shown);
        }
        // All of them are looked at.
        let mut keys: Vec<&str> = ALL.iter().map(|one| one.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), ALL.len());
    }
}
