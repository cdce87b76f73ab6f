//! What was written down before: a dispersion report, and an earlier look.

use super::arguments::unfit;
use crate::text_files::read_text;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use vocabulary::Fault;
use world::World;

/// Rings of a dispersion report.
const MOST_RINGS: usize = 64;

/// Of one ring: how many copies of the sample are where they should be.
#[derive(Debug)]
pub(super) struct DispersionSight {
    /// `object`, `container`.
    pub what: String,
    pub found: f64,
    pub expected: f64,
    pub path: String,
}

/// Reads what `dispersion-report --dump-json` has printed.
pub(super) fn dispersion(world: &World, path: &Path) -> Result<Vec<DispersionSight>, Fault> {
    let text = read_text(world, path)?;
    let read: Value = serde_json::from_str(&text).map_err(|error| unfit(path, error))?;
    let rows = read.as_object().into_iter().flatten().take(MOST_RINGS);
    let all: Vec<_> = rows
        .filter_map(|(what, row)| {
            let (found, expected) = (row["copies_found"].as_f64()?, row["copies_expected"].as_f64()?);
            Some(DispersionSight {
                what: what.clone(),
                found: found.clamp(0.0, expected),
                expected,
                path: path.display().to_string(),
            })
        })
        .collect();
    match all.is_empty() {
        true => Err(unfit(
            path,
            "expected what `martlet dispersion-report --dump-json` prints: copies_found and \
                                 copies_expected of each ring",
        )),
        false => Ok(all),
    }
}

/// Figures that a later look compares with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SeenFigures {
    /// In seconds since 1970.
    pub at: f64,
    /// Bytes on the devices of objects: all, and in use.
    pub size: f64,
    pub used: f64,
    /// Listing updates that wait.
    pub pending: f64,
}

/// The part of a report that is read again.
#[derive(Debug, Deserialize)]
struct EarlierReport {
    seen: SeenFigures,
}

/// An earlier look.
#[derive(Debug)]
pub(super) struct EarlierLook {
    pub path: String,
    pub seen: SeenFigures,
}

impl EarlierLook {
    /// Reads the JSON of a look.
    pub fn read(world: &World, path: &Path) -> Result<Self, Fault> {
        let report: EarlierReport = serde_json::from_str(&read_text(world, path)?).map_err(|error| {
            unfit(
                path,
                format!("expected what `martlet advise look --json` prints: {error}"),
            )
        })?;
        let seen = report.seen;
        let are_figures = [seen.at, seen.size, seen.used, seen.pending]
            .iter()
            .all(|one| one.is_finite() && *one >= 0.0);
        match are_figures {
            true => Ok(Self {
                path: path.display().to_string(),
                seen,
            }),
            false => Err(unfit(path, "its figures are below 0")),
        }
    }
}
