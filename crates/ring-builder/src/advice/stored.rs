//! How much is stored: what every advice about bytes needs to know, from options or assumptions it states.

use super::size;
use crate::options::{Declared, ParsedOptions, Takes, long};
use placement::{Device, RingBuilder};
use vocabulary::Fault;

/// The options that say it.
pub const STORED: Declared = long(
    "stored",
    Takes::Text,
    "bytes on all devices together, all replicas counted",
);
pub const USED: Declared = long(
    "used",
    Takes::Text,
    "how full devices are on average, in percent (default 70)",
);
pub const WEIGHT_UNIT: Declared = long(
    "weight-unit",
    Takes::Text,
    "what a weight of 1 stands for (default 1GB)",
);

/// What clusters are filled to before they grow, usually.
const USUAL_USE: f64 = 70.0;
/// What `plan` and most operators make a weight of 1.
const USUAL_UNIT: &str = "1GB";

/// What is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// On all devices together.
    pub bytes: f64,
    /// In one replica of one partition.
    pub per_part: f64,
    /// What a weight of 1 holds.
    unit: f64,
    /// What was assumed, for the operator to see.
    pub assumed: Option<String>,
}

impl Stored {
    /// By the options, for a ring.
    pub fn read(options: &ParsedOptions, builder: &RingBuilder) -> Result<Stored, Fault> {
        let named = options.text("weight-unit").unwrap_or(USUAL_UNIT);
        let unit = size::bytes(named)?;
        // What holds nothing yet has not been filled.
        let in_use = |device: &&Device| builder.parts_of(device.id).is_some_and(|parts| parts > 0);
        let capacity = builder
            .devices()
            .filter(in_use)
            .map(|device| device.weight)
            .sum::<f64>()
            * unit;
        let used = options.text("used").map(percent).transpose()?;
        let (bytes, assumed) = match (options.text("stored"), used) {
            (Some(_), Some(_)) => return Err(Fault::caller("say --stored or --used, not both")),
            (Some(text), None) => (size::bytes(text)?, None),
            (None, Some(percent)) => (capacity * percent / 100.0, None),
            (None, None) => {
                let why = format!("devices are {USUAL_USE:.0}% full and a weight of 1 is {named}");
                (capacity * USUAL_USE / 100.0, Some(why))
            }
        };
        let cells: usize = builder.assignments().iter().map(Vec::len).sum();
        Ok(Stored {
            bytes,
            per_part: bytes / (cells.max(1)) as f64,
            unit,
            assumed,
        })
    }

    /// The line that says what was assumed.
    pub fn assumption(&self) -> Option<String> {
        let assumed = self.assumed.as_ref()?;
        Some(format!(
            "Assumed: {assumed} (--stored, --used and --weight-unit say otherwise)."
        ))
    }

    /// How much a device can hold.
    pub fn capacity(&self, device: &Device) -> f64 {
        device.weight * self.unit
    }
}

fn percent(text: &str) -> Result<f64, Fault> {
    let number: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
    let valid = number.filter(|it| (0.0..=100.0).contains(it));
    valid.ok_or_else(|| Fault::caller(format!("'{text}' is no percentage: write a number from 0 to 100")))
}
