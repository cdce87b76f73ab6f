//! Which regions and zones a gateway prefers: `read_affinity` and `write_affinity`.

use crate::kinds::OptionValue;

/// A region, or a zone of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AffinityPlace {
    /// `r<N>`.
    pub region: u32,
    /// `z<M>`, or every zone of the region.
    pub zone: Option<u32>,
}

impl AffinityPlace {
    /// Whether a device in that region and zone is here.
    pub fn holds(&self, region: u32, zone: u32) -> bool {
        self.region == region && self.zone.is_none_or(|z| z == zone)
    }

    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('r')?;
        let (region, zone) = match text.split_once('z') {
            Some((region, zone)) => (region, Some(zone.parse().ok()?)),
            None => (text, None),
        };
        Some(Self {
            region: region.parse().ok()?,
            zone,
        })
    }
}

/// `read_affinity`: which places to ask first; the smallest number first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadAffinity(pub Vec<(AffinityPlace, u32)>);

impl ReadAffinity {
    /// The priority of a device, `u32::MAX` where none is given. The first place that fits counts
    /// least: a zone beats its region by having the smaller number, as in OpenStack.
    pub fn priority(&self, region: u32, zone: u32) -> u32 {
        let fitting = self.0.iter().filter(|(place, _)| place.holds(region, zone));
        fitting.map(|(_, priority)| *priority).min().unwrap_or(u32::MAX)
    }
}

impl OptionValue for ReadAffinity {
    const EXPECTS: &'static str = "places with priorities like `r1z1=100, r1z2=200, r2=300`";

    fn parse(text: &str) -> Option<Self> {
        places(text, |item| {
            let (place, priority) = item.split_once('=')?;
            Some((AffinityPlace::parse(place.trim())?, priority.trim().parse().ok()?))
        })
        .map(Self)
    }
}

/// `write_affinity`: which places count as local.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteAffinity(pub Vec<AffinityPlace>);

impl WriteAffinity {
    /// Whether the device is local; every device is when nothing is given.
    pub fn is_local(&self, region: u32, zone: u32) -> bool {
        self.0.is_empty() || self.0.iter().any(|place| place.holds(region, zone))
    }
}

impl OptionValue for WriteAffinity {
    const EXPECTS: &'static str = "places like `r1, r2z2`";

    fn parse(text: &str) -> Option<Self> {
        places(text, AffinityPlace::parse).map(Self)
    }
}

fn places<T>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(',').map(|item| read(item.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn affinities() {
        let read = ReadAffinity::parse("r1z1=100, r1=200, r2=300").unwrap();
        assert_eq!(
            [read.priority(1, 1), read.priority(1, 2), read.priority(3, 1)],
            [100, 200, u32::MAX]
        );
        for bad in ["r1", "r1=", "r1z=3", "=3", "r1=1,", "r1=-1", "r1=a", "r1z1=1,r1=0.5"] {
            assert_eq!(ReadAffinity::parse(bad), None, "{bad}");
        }
        let write = WriteAffinity::parse("r1, r2z2").unwrap();
        assert!(write.is_local(1, 9) && write.is_local(2, 2) && !write.is_local(2, 1));
        for bad in ["r", "r1,", "r1 z1", "r1=2"] {
            assert_eq!(WriteAffinity::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = (ReadAffinity::parse(&text), WriteAffinity::parse(&text));
        }
    }
}
