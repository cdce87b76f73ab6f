//! How many racks servers need.
//!
//! A rack has so many units and watts, and a server stands in one rack as a whole: what is left of two racks is no room
//! for a third. Kinds follow each other by the share of a rack that one of them takes, the largest first, each server
//! into the first rack with room (first fit decreasing).
//! Always holds: with as many racks as this says every server has its place; a server that no empty rack has room for
//! has none anywhere.

/// Room that rounding may take.
const ROUNDING: f64 = 1e-9;

/// Servers of a kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RackedServers {
    /// How many.
    pub count: u32,
    /// Height of one.
    pub units: f64,
    /// Watts of one, with its drives.
    pub power: f64,
}

/// What an empty rack has; none has no bound.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RackRoom {
    /// Height.
    pub units: Option<f64>,
    /// Watts.
    pub power: Option<f64>,
}

impl RackRoom {
    /// How many servers of a kind still have a place.
    fn places(self, kind: RackedServers) -> u64 {
        let of = |room: Option<f64>, each: f64| match room {
            Some(room) if each > 0.0 => ((room + ROUNDING) / each).floor().max(0.0) as u64,
            _ => u64::MAX,
        };
        of(self.units, kind.units).min(of(self.power, kind.power))
    }

    /// What is left beside so many of them.
    fn less(self, count: u64, kind: RackedServers) -> Self {
        let left = |room: Option<f64>, each: f64| room.map(|room| room - count as f64 * each);
        Self {
            units: left(self.units, kind.units),
            power: left(self.power, kind.power),
        }
    }

    /// The larger share of an empty rack that one takes.
    fn share(self, kind: RackedServers) -> f64 {
        let of = |room: Option<f64>, each: f64| room.map_or(0.0, |room| each / room.max(f64::MIN_POSITIVE));
        of(self.units, kind.units).max(of(self.power, kind.power))
    }
}

/// Racks that are alike: how many, and what each still has room for.
type AlikeRacks = (u64, RackRoom);

/// Racks for all servers; none where one of them has no place in an empty rack.
pub fn racks_needed(empty: RackRoom, kinds: &[RackedServers]) -> Option<f64> {
    let mut kinds = kinds.to_vec();
    kinds.sort_by(|one, other| empty.share(*other).total_cmp(&empty.share(*one)));
    let mut racks: Vec<AlikeRacks> = vec![];
    for kind in kinds {
        let mut left = u64::from(kind.count);
        let mut filled = vec![];
        for (count, room) in racks {
            left -= fill(&mut filled, (count, room), (left, kind));
        }
        if left > 0 {
            let places = empty.places(kind);
            if places == 0 {
                return None;
            }
            fill(&mut filled, (left.div_ceil(places), empty), (left, kind));
        }
        racks = filled;
    }
    Some(racks.iter().map(|(count, _)| *count as f64).sum())
}

/// Puts servers into racks that are alike, and says how many found a place.
fn fill(filled: &mut Vec<AlikeRacks>, (count, room): AlikeRacks, (left, kind): (u64, RackedServers)) -> u64 {
    let places = room.places(kind).min(left);
    if places == 0 {
        filled.push((count, room));
        return 0;
    }
    let taken = left.min(places.saturating_mul(count));
    let (full, rest) = (taken / places, taken % places);
    let begun = u64::from(rest > 0);
    let all = [
        (full, room.less(places, kind)),
        (begun, room.less(rest, kind)),
        (count - full - begun, room),
    ];
    filled.extend(all.into_iter().filter(|(count, _)| *count > 0));
    taken
}

#[cfg(test)]
mod tests {
    use super::{RackRoom, RackedServers, racks_needed};

    fn servers(count: u32, units: f64, power: f64) -> RackedServers {
        RackedServers { count, units, power }
    }

    #[test]
    fn a_server_stands_in_one_rack_as_a_whole() {
        let room = |units, power| RackRoom {
            units: Some(units),
            power: Some(power),
        };
        // Three of four units each in ten, though two racks have twenty.
        assert_eq!(racks_needed(room(10.0, 1e4), &[servers(5, 4.0, 100.0)]), Some(3.0));
        // A gateway of one unit stands beside them.
        let mixed = [servers(3, 1.0, 100.0), servers(4, 4.0, 100.0)];
        assert_eq!(racks_needed(room(10.0, 1e4), &mixed), Some(2.0));
        // Watts end before units.
        assert_eq!(racks_needed(room(42.0, 1000.0), &[servers(9, 1.0, 450.0)]), Some(5.0));
        // None of them fits, whatever the number of racks.
        assert_eq!(racks_needed(room(1.0, 1e4), &mixed), None);
        assert_eq!(racks_needed(room(10.0, 99.0), &mixed), None);
        // Nothing is bounded, or nothing is there.
        assert_eq!(racks_needed(RackRoom::default(), &mixed), Some(1.0));
        assert_eq!(racks_needed(room(1.0, 1.0), &[]), Some(0.0));
        assert_eq!(racks_needed(room(1.0, 1.0), &[servers(7, 0.0, 0.0)]), Some(1.0));
    }

    #[test]
    fn every_server_has_its_place() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..2000 {
            let (height, watts) = (f64::from(random.u32(1..12)), f64::from(random.u32(100..900)));
            let mut kind = || {
                servers(
                    random.u32(0..20),
                    f64::from(random.u32(0..5)),
                    f64::from(random.u32(0..300)),
                )
            };
            let kinds = [kind(), kind(), kind()];
            let room = RackRoom {
                units: Some(height),
                power: Some(watts),
            };
            let Some(found) = racks_needed(room, &kinds) else {
                let fits = |kind: &RackedServers| kind.count == 0 || (kind.units <= height && kind.power <= watts);
                assert!(!kinds.iter().all(fits), "{room:?} {kinds:?}");
                continue;
            };
            // One by one, as a person would, in the same order of kinds.
            let mut order = kinds.to_vec();
            order.sort_by(|one, other| room.share(*other).total_cmp(&room.share(*one)));
            let mut racks: Vec<(f64, f64)> = vec![];
            for kind in order {
                for _ in 0..kind.count {
                    let has_room = |rack: &&mut (f64, f64)| {
                        rack.0 + kind.units <= height + 1e-9 && rack.1 + kind.power <= watts + 1e-9
                    };
                    match racks.iter_mut().find(has_room) {
                        Some(rack) => *rack = (rack.0 + kind.units, rack.1 + kind.power),
                        None => racks.push((kind.units, kind.power)),
                    }
                }
            }
            assert!(
                (found - racks.len() as f64).abs() < 1e-9,
                "{room:?} {kinds:?} {found} {racks:?}"
            );
        }
    }
}
