//! Years until an object is lost, and how long rebuilding takes.
//!
//! A set of n pieces on n drives is a chain of states: how many pieces are lost. Drives fail at a rate λ each, a lost
//! piece is rebuilt at a rate μ. The mean time to the state in which the object is gone has a closed form; as many sets
//! as are distinct lose independently. docs/advise.md has the formula, this file's tests compare it with simulations.
//! Always holds: failures are taken for independent. Fires, floods and faults of software are not in these figures.

use crate::model::cluster::ClusterModel;
use crate::model::workload::Protection;
use serde::Serialize;

/// Hours of a year.
pub const HOURS_A_YEAR: f64 = 8766.0;
/// Partitions for each drive that a ring is planned with.
const PARTS_PER_DRIVE: f64 = 100.0;

/// How fast places are made good again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RebuildTimes {
    /// Hours after the loss of a drive.
    pub drive: f64,
    /// Hours after the loss of a node.
    pub node: f64,
    /// Hours after the loss of a zone; none where too few zones are left to hold each piece apart.
    pub zone: Option<f64>,
}

/// What drives hold and how fast they are rebuilt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RebuildAssumptions {
    /// Bytes on a drive.
    pub stored: f64,
    /// Share of a drive's transfer, and of a node's network, that rebuilding may take.
    pub share: f64,
    /// Zones of the cluster.
    pub zones: u32,
}

/// Hours until lost pieces are whole again. All drives that are left take part: each byte of a piece is read (with an
/// erasure code as many times as fragments suffice) and written once.
pub fn rebuild_times(cluster: &ClusterModel, assumed: RebuildAssumptions) -> RebuildTimes {
    let storage = &cluster.storage;
    let moved = f64::from(cluster.protection.pieces_read()) + 1.0;
    let hours = |lost_drives: f64| {
        let left = f64::from(storage.all_drives()) - lost_drives;
        if left <= 0.0 {
            return f64::INFINITY;
        }
        let nodes_left = left / f64::from(storage.drives.max(1));
        let by_drives = left * storage.drive.transfer * assumed.share / moved;
        let by_network = nodes_left * storage.network * assumed.share / f64::from(cluster.protection.pieces_read());
        lost_drives * assumed.stored / by_drives.min(by_network) / 3600.0
    };
    let drives = f64::from(storage.drives);
    let zone_nodes = f64::from(storage.count.div_ceil(assumed.zones.max(1)));
    RebuildTimes {
        drive: hours(1.0),
        node: hours(drives),
        zone: (assumed.zones > 1).then(|| hours(drives * zone_nodes)),
    }
}

/// Hours until a set of pieces has lost more than it survives, from a state in which none is lost.
pub fn hours_to_loss(protection: Protection, failures_an_hour: f64, rebuild_hours: f64) -> f64 {
    if failures_an_hour <= 0.0 {
        return f64::INFINITY;
    }
    let (pieces, survived) = (protection.pieces(), protection.losses_survived());
    let fails = |lost: u32| f64::from(pieces - lost) * failures_an_hour;
    let rebuilt = |lost: u32| f64::from(lost) / rebuild_hours.max(1e-9);
    // Expected hours from `lost` to `lost + 1`: either the next drive fails, or a piece is rebuilt and the chain has to
    // come back first.
    let (mut step, mut sum) = (0.0, 0.0);
    for lost in 0..=survived {
        step = match lost {
            0 => 1.0 / fails(0),
            _ => (1.0 + rebuilt(lost) * step) / fails(lost),
        };
        sum += step;
    }
    sum
}

/// Sets of drives that hold an object together: partitions of the ring, or all sets where there are fewer.
pub fn distinct_sets(protection: Protection, drives: u32, part_power: u32) -> f64 {
    let chosen = (0..protection.pieces().min(drives)).fold(1.0, |sets, taken| {
        sets * f64::from(drives - taken) / f64::from(taken + 1)
    });
    chosen.max(1.0).min(2f64.powi(part_power as i32))
}

/// The part power that a ring for so many drives has.
pub fn usual_part_power(final_drives: f64) -> u32 {
    (final_drives * PARTS_PER_DRIVE).log2().ceil().clamp(1.0, 32.0) as u32
}

/// Years until the first object of a cluster is lost, on average.
pub fn years_to_loss(
    protection: Protection,
    drives: u32,
    part_power: u32,
    failures_a_year: f64,
    rebuild_hours: f64,
) -> f64 {
    if drives < protection.pieces() {
        return 0.0;
    }
    let set = hours_to_loss(protection, failures_a_year / HOURS_A_YEAR, rebuild_hours);
    set / distinct_sets(protection, drives, part_power) / HOURS_A_YEAR
}

#[cfg(test)]
mod tests {
    use super::{HOURS_A_YEAR, distinct_sets, hours_to_loss, usual_part_power, years_to_loss};
    use crate::model::workload::Protection;

    fn exponential(random: &mut fastrand::Rng, rate: f64) -> f64 {
        -(1.0 - random.f64()).ln() / rate
    }

    /// Mean hours until a set is lost, played through.
    fn played(protection: Protection, fails: f64, rebuild: f64) -> f64 {
        let mut random = fastrand::Rng::with_seed(5);
        let games = 4000;
        let mut sum = 0.0;
        for _ in 0..games {
            let mut lost = 0;
            while lost <= protection.losses_survived() {
                let failing = f64::from(protection.pieces() - lost) * fails;
                let healing = f64::from(lost) / rebuild;
                sum += exponential(&mut random, failing + healing);
                match random.f64() < failing / (failing + healing) {
                    true => lost += 1,
                    false => lost -= 1,
                }
            }
        }
        sum / f64::from(games)
    }

    #[test]
    fn the_closed_form_is_what_happens() {
        for (protection, rebuild) in [
            (Protection::Replicas(1), 1.0),
            (Protection::Replicas(2), 10.0),
            (Protection::Replicas(3), 8.0),
            (Protection::Erasure { data: 4, parity: 2 }, 5.0),
        ] {
            let (closed, played) = (
                hours_to_loss(protection, 0.01, rebuild),
                played(protection, 0.01, rebuild),
            );
            assert!((closed / played - 1.0).abs() < 0.06, "{protection}: {closed} {played}");
        }
        // Two replicas: (3λ + μ) / 2λ², a formula of every textbook.
        let by_hand = (3.0 * 0.01 + 0.1) / (2.0 * 0.01 * 0.01);
        assert!((hours_to_loss(Protection::Replicas(2), 0.01, 10.0) / by_hand - 1.0).abs() < 1e-12);
        assert!(hours_to_loss(Protection::Replicas(3), 0.0, 1.0).is_infinite());
    }

    /// Whole drives fail and are rebuilt, partitions lie on random sets of them: when is the first one lost?
    #[test]
    fn sets_of_a_cluster_are_lost_as_often_as_drives_say() {
        let (drives, parts, fails, rebuild) = (30_usize, 64, 0.001, 2.0);
        let mut random = fastrand::Rng::with_seed(9);
        let (games, mut sum) = (600, 0.0);
        for _ in 0..games {
            let mut sets = std::collections::BTreeSet::new();
            while sets.len() < parts {
                let first = random.usize(0..drives - 1);
                sets.insert([first, random.usize(first + 1..drives)]);
            }
            let mut down = vec![false; drives];
            loop {
                let broken = down.iter().filter(|is_down| **is_down).count();
                let (failing, healing) = ((drives - broken) as f64 * fails, broken as f64 / rebuild);
                sum += exponential(&mut random, failing + healing);
                let fails_now = random.f64() < failing / (failing + healing);
                let candidates: Vec<usize> = (0..drives).filter(|drive| down[*drive] != fails_now).collect();
                down[candidates[random.usize(0..candidates.len())]] = fails_now;
                if sets.iter().any(|set| set.iter().all(|drive| down[*drive])) {
                    break;
                }
            }
        }
        let played = sum / f64::from(games) / HOURS_A_YEAR;
        let closed = years_to_loss(Protection::Replicas(2), 30, 6, fails * HOURS_A_YEAR, rebuild);
        assert!((closed / played - 1.0).abs() < 0.15, "{closed} {played}");
    }

    #[test]
    fn sets_are_counted() {
        // 4 drives have 4 sets of three; 1000 drives more than 2^17 partitions.
        assert_eq!(distinct_sets(Protection::Replicas(3), 4, 17) as u32, 4);
        assert_eq!(distinct_sets(Protection::Replicas(3), 1000, 17) as u32, 1 << 17);
        assert_eq!((usual_part_power(100.0), usual_part_power(1.0)), (14, 7));
        assert_eq!(years_to_loss(Protection::Replicas(3), 2, 10, 0.01, 1.0) as u32, 0);
    }
}
